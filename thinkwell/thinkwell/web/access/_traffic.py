"""The answers of a guarded application: the right headers, and a bounded number of event streams."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from thinkwell.web._http import Fitted, refusal_answer
from thinkwell.web._refusals import TooManyWatchers

if TYPE_CHECKING:
    from starlette.types import Message, Scope, Send

    from thinkwell.web._bodies import Body
    from thinkwell.web._refusals import Refusal
    from thinkwell.web._requests import Limits

HEADERS: Final = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
)
"""Headers of every answer that does not set them itself."""


class Watchers:
    """Counts the open event streams."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._open: Counter[str] = Counter()

    def enter(self, caller: str) -> None:
        """Count one more.

        Raises:
            TooManyWatchers: The maximum number is reached.
        """
        if self._open[caller] >= self._limits.max_watchers_per_caller:
            raise TooManyWatchers("you watch as many runs as you may; close a stream, and try again")
        if self._open.total() >= self._limits.max_watchers:
            raise TooManyWatchers("the server has as many watchers as it may; try again later")
        self._open[caller] += 1

    def leave(self, caller: str) -> None:
        """Count one less."""
        self._open[caller] -= 1
        if not self._open[caller]:
            del self._open[caller]


class TurnedAwayError(OSError):
    """An application's client has disconnected: another part has answered it (ASGI, HTTP)."""


class Outgoing:
    """The `send` of an ASGI application."""

    def __init__(self, send: Send, scope: Scope, body: Body, watchers: Watchers) -> None:
        self._send = send
        self._body = body
        self._closes = False
        self._scope = scope
        self._watchers = watchers
        self._more: list[tuple[bytes, bytes]] = []
        self._watches = False
        self.caller = ""
        self.begun = False
        """Whether something was sent."""
        self.is_turned_away = False
        """Whether an answer was sent in place of that of the application."""

    def vary(self) -> None:
        """Add the header for answers that depend on the origin."""
        self._more.append((b"vary", b"Origin"))

    def share_with(self, origin: str) -> None:
        """Let the pages of an origin read the answer (Fetch, CORS protocol)."""
        self._more += (
            (b"access-control-allow-origin", origin.encode("latin-1")),
            (b"access-control-allow-credentials", b"true"),
            (b"access-control-expose-headers", b"Location, Retry-After"),
        )

    async def __call__(self, message: Message) -> None:
        """Send the next message.

        Raises:
            TurnedAwayError: The answer was that there are too many watchers.
        """
        if self.is_turned_away:
            raise TurnedAwayError
        if message["type"] == "http.response.start":
            headers = [(name.lower(), value) for name, value in message.get("headers", ())]
            said = dict(headers)
            if said.get(b"content-type", b"").startswith(b"text/event-stream"):
                await self._watch()
            self.begun = True
            self._closes = said.get(b"connection", b"").lower() == b"close"
            headers += (header for header in HEADERS if header[0] not in said)
            message = {**message, "headers": [*headers, *self._more]}
        elif self._closes and not message.get("more_body", False):
            await self._send({**message, "more_body": True})
            await self._body.drain()
            message = {"type": "http.response.body", "body": b""}
        await self._send(message)

    def end(self) -> None:
        """Note that it is over."""
        if self._watches:
            self._watchers.leave(self.caller)

    async def _watch(self) -> None:
        try:
            self._watchers.enter(self.caller)
        except TooManyWatchers as exc:
            await self.refuse(exc)
            self.is_turned_away = True
            raise TurnedAwayError from None
        self._watches = True

    async def empty(self, *headers: tuple[bytes, bytes]) -> None:
        """Answer that it is done."""
        await self({"type": "http.response.start", "status": 204, "headers": list(headers)})
        await self({"type": "http.response.body", "body": b""})

    async def refuse(self, refusal: Refusal) -> None:
        """Answer with the reason, in a form that the caller can read."""
        answer = refusal_answer(refusal, self._scope)
        await answer(self._scope, self._body, Fitted(self._scope, self))
