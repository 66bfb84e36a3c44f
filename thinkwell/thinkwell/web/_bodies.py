"""The bodies of requests, within limits of length and time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import anyio
from starlette.requests import ClientDisconnect

from thinkwell.web._refusals import RequestTooLarge, RequestTooSlow

if TYPE_CHECKING:
    from starlette.types import Message, Receive

PATIENCE: Final = 30.0
"""Most seconds that the body of a request may take, whatever its length."""

SLOWEST: Final = 10_000
"""Least bytes of it in each further second."""

LINGER: Final = 2.0
"""Seconds for which an unwanted body is still read."""

DRAINED: Final = 20_000_000
"""Most bytes of it."""


class Body:
    """The body of a request, within limits. It is the `receive` of an ASGI application.

    Args:
        receive: Receives it.
        most: Maximum bytes.
    """

    def __init__(self, receive: Receive, most: int) -> None:
        self._receive = receive
        self._most = most
        self._length = 0
        self._begun: float | None = None
        self._complete = False

    def check(self, length: str | None) -> None:
        """Check its declared length, if there is one.

        Raises:
            RequestTooLarge: It is longer than the limit.
        """
        if length is not None and length.isdecimal():  # a server refuses other values
            self._check(int(length[:20]))

    async def __call__(self) -> Message:
        """Receive the next message.

        Raises:
            RequestTooLarge: It is too long, whatever length it declares.
            RequestTooSlow: It does not arrive in time.
        """
        if self._complete:
            return await self._receive()
        if self._begun is None:
            self._begun = anyio.current_time()
        with anyio.CancelScope(deadline=self._begun + PATIENCE + self._length / SLOWEST):
            message = self._taken(await self._receive())
            self._check(self._length)
            return message
        raise RequestTooSlow("the body of the request has not come in time", {"Connection": "close"})

    async def whole(self) -> bytes:
        """Return all of it.

        Raises:
            RequestTooLarge: It is too long.
            RequestTooSlow: It does not arrive in time.
            ClientDisconnect: The client has disconnected.
        """
        pieces: list[bytes] = []
        while not self._complete:
            message = await self()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            pieces.append(message.get("body", b""))
        return b"".join(pieces)

    async def drain(self) -> None:
        """Read the rest for a while, and drop it.

        A client that still sends when the connection is closed may never read the answer (RFC 9112,
        section 9.6).
        """
        most = self._length + DRAINED
        with anyio.move_on_after(LINGER):
            while not self._complete and self._length < most:
                self._taken(await self._receive())

    def _taken(self, message: Message) -> Message:
        self._length += len(message.get("body", b""))
        self._complete = message["type"] != "http.request" or not message.get("more_body", False)
        return message

    def _check(self, length: int) -> None:
        if length > self._most:
            # The rest is not read, so the connection cannot serve another request.
            words = f"the body of a request may have {self._most:,} bytes here"
            raise RequestTooLarge(words, {"Connection": "close"})
