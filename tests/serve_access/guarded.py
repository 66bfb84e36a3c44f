"""A guarded application, asked in memory with whatever a server could hand to it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from thinkwell.journal import MemoryJournal
from thinkwell.web import Access, Limits
from thinkwell.web.access import AccessGuard

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from thinkwell.journal import Journal

__all__ = ("ADA", "BOB", "HOST", "Echo", "Guarded", "Reply", "access", "asked", "is_shared")

ADA = "ada-has-this-token-1"
BOB = "bob-has-this-token-2"

HOST = "127.0.0.1:8283"


def access(**options: Any) -> Access:
    """Let Ada and Bob in."""
    return Access({ADA: "ada", BOB: "bob"}, **options)


@dataclass
class Reply:
    """What was answered."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        values = [value for key, value in self.headers if key == name]
        assert len(values) <= 1, values
        return values[0] if values else None

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The code of the error."""
        code: str = self.json()["error"]["code"]
        return code

    @property
    def cookie(self) -> str:
        """What a browser sends back."""
        text = self.header("set-cookie")
        assert text is not None
        return text.partition(";")[0]


@dataclass
class Echo:
    """An application that takes what it is sent, and says so."""

    scopes: list[Scope] = field(default_factory=list["Scope"])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scopes.append(scope)
        length, more = 0, True
        while more:
            message = await receive()
            length += len(message.get("body", b""))
            more = message.get("more_body", False)
        body = json.dumps({"caller": scope["state"]["caller"], "path": scope["path"], "length": length})
        await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.body", "body": body.encode()})


class Guarded:
    """An application behind a guard."""

    def __init__(
        self,
        app: ASGIApp | None = None,
        *,
        who: Access | None = None,
        journal: Journal | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.echo = Echo()
        self.guard = AccessGuard(
            app or self.echo, who or access(), journal=journal or MemoryJournal(), limits=limits or Limits()
        )

    async def ask(
        self,
        method: str = "GET",
        path: str = "/api",
        *,
        token: str | None = None,
        cookie: str | None = None,
        host: str | None = HOST,
        headers: Iterable[tuple[str, str]] | None = None,
        body: bytes | Sequence[bytes] = b"",
        sends: object = None,
        **scope: Any,
    ) -> Reply:
        """Send a request.

        Args:
            token: Of the caller.
            cookie: Of a browser.
            host: As which the server is asked.
            headers: Other headers. By default, with a cookie, what our own page says.
            body: All of it, or its pieces. The first one of several is never said to be long.
            sends: The body as JSON, with the type that it has then.
            scope: What else the server says.
        """
        given = [] if host is None else [("host", host)]
        if headers is None:
            headers = () if cookie is None else [("sec-fetch-site", "same-origin")]
        given += headers
        if token is not None:
            given.append(("authorization", f"Bearer {token}"))
        if cookie is not None:
            given.append(("cookie", cookie))
        if sends is not None:
            body = json.dumps(sends).encode()
            given.append(("content-type", "application/json"))
        pieces = [body] if isinstance(body, bytes) else list(body)
        if isinstance(body, bytes) and body:
            given.append(("content-length", str(len(body))))
        whole: dict[str, Any] = {
            "type": "http",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in given],
            "server": ("127.0.0.1", 8283),
            "client": ("127.0.0.1", 50_000),
            "state": {},
            **scope,
        }
        return await self.raw(whole, pieces)

    async def raw(self, scope: Scope, pieces: Sequence[bytes] = (b"",)) -> Reply:
        """Hand a request over as a server does. Where there are no pieces, nothing ever comes."""
        left = list(pieces)
        sent: list[Message] = []

        async def receive() -> Message:
            if not left:
                await anyio.sleep_forever()
            return {"type": "http.request", "body": left.pop(0), "more_body": bool(left)}

        async def send(message: Message) -> None:
            sent.append(message)

        with anyio.fail_after(600):
            await self.guard(scope, receive, send)
        start, *rest = sent
        headers = [(name.decode(), value.decode()) for name, value in start["headers"]]
        return Reply(start["status"], headers, b"".join(message.get("body", b"") for message in rest))

    async def log_in(self, secret: str = ADA, **options: Any) -> Reply:
        """Give a secret as the page does."""
        return await self.ask("POST", "/api/session", sends={"secret": secret}, **options)


def asked(guarded: Guarded, **request: Any) -> Reply:
    """Send a request, in a test that waits for nothing."""
    return anyio.run(partial(guarded.ask, **request))


def is_shared(who: Access, origin: str) -> bool:
    """Return whether a page of a place may read what the server answers."""
    reply = asked(Guarded(who=who), token=ADA, headers=[("origin", origin)])
    return reply.header("access-control-allow-origin") is not None
