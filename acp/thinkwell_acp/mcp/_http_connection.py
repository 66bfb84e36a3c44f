"""One HTTP connection: h11 parses, a byte stream carries, and every wait for a client is limited."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import anyio
import h11
from msgspec import Struct

from thinkwell_acp.mcp._sockets import MAX_CONNECTIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from anyio.abc import ByteStream

READ_SIZE = 64 * 1024
MAX_HEAD = 32 * 1024
"""Most bytes of a request's head."""
MAX_PIPELINED = 64 * 1024
"""Most bytes that a client may send ahead while its request is served. It sends no more, or we stop reading
and cannot notice when it leaves."""
LINGER = 1.0
"""Seconds for which a refused request is still read: closing at once would reset the connection and lose the
answer."""

Header = tuple[str, str]


class HttpLimits(Struct, frozen=True, kw_only=True):
    """The limits of a client."""

    request_time: float = 30.0
    """Seconds for a request to arrive, head and body each, and for the first bytes of a new connection."""
    write_time: float = 60.0
    """Seconds for a client to read an answer."""
    max_body: int = 64 * 1024 * 1024
    """Most bytes of a request's body."""
    max_connections: int = MAX_CONNECTIONS
    """Most open connections. Further ones are closed at once."""


class HttpError(Exception):
    """The request is answered with this status, and not served."""

    def __init__(self, status: int, reason: str, *headers: Header) -> None:
        super().__init__(status, reason)
        self.status = status
        self.reason = reason
        self.headers = headers


class HttpRequest(Struct, frozen=True):
    """The head of a request. Names of headers are lower case; repeated headers are joined by a comma."""

    method: str
    target: str
    headers: dict[str, str]

    @property
    def content_type(self) -> str:
        """The type of the body, without parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    def accepts(self, kind: str) -> bool:
        """Whether the client accepts a type of content. A client that does not say accepts everything."""
        accept = self.headers.get("accept", "*/*")
        ranges = {part.partition(";")[0].strip().lower() for part in accept.split(",")}
        return not ranges.isdisjoint((kind, kind.partition("/")[0] + "/*", "*/*"))


class HttpConnection:
    """The server's side of a connection."""

    def __init__(self, stream: ByteStream, limits: HttpLimits) -> None:
        self._stream = stream
        self._limits = limits
        self._h11 = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD)
        self._method = ""
        self._length = 0

    async def next_request(self, idle: float | None) -> HttpRequest | None:
        """Return the head of the next request, or ``None`` if there is no more.

        Args:
            idle: Seconds for it to begin.

        Raises:
            HttpError: It is not HTTP, too long, or too slow.
        """
        if self._h11.their_state is h11.DONE:
            self._h11.start_next_cycle()
        if not self._h11.trailing_data[0]:
            with anyio.move_on_after(idle) as waiting:
                await self._fill()
            if waiting.cancelled_caught:
                return None
        self._method = ""
        event = await self._event()
        if not isinstance(event, h11.Request):
            return None
        headers: dict[str, str] = {}
        for raw_name, raw_value in event.headers:
            name, value = raw_name.decode("ascii"), raw_value.decode("latin-1")
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        self._method = event.method.decode("ascii")
        self._length = int(headers.get("content-length", "0"))
        return HttpRequest(self._method, event.target.decode("latin-1"), headers)

    async def read_body(self) -> bytes:
        """Return the body of the request.

        Raises:
            HttpError: It is too long or too slow, or the client has left.
        """
        if self._length > self._limits.max_body:
            raise HttpError(413, "The body is too long")
        if self._h11.they_are_waiting_for_100_continue:
            await self._send(h11.InformationalResponse(status_code=100, headers=[]))
        pieces: list[bytes] = []
        size = 0
        with anyio.move_on_after(self._limits.request_time):
            while True:
                event = await self._event()
                if not isinstance(event, h11.Data):
                    return b"".join(pieces)
                pieces.append(bytes(event.data))
                size += len(event.data)
                if size > self._limits.max_body:
                    raise HttpError(413, "The body is too long")
        raise HttpError(408, "The body took too long")

    async def respond(self, status: int, body: bytes = b"", *headers: Header) -> bool:
        """Answer the request, and return whether the connection can serve another one."""
        if self._h11.their_state is h11.SEND_BODY:
            # This completes a request without a body, and its connection can be kept.
            with contextlib.suppress(h11.RemoteProtocolError):
                self._h11.next_event()
        fields = [*headers, ("content-length", str(len(body)))]
        if self._h11.their_state is not h11.DONE:
            fields.append(("connection", "close"))
        events: list[h11.Event] = [h11.Response(status_code=status, headers=fields)]
        if body and self._method != "HEAD":
            events.append(h11.Data(data=body))
        await self._send(*events, h11.EndOfMessage())
        return self._reusable

    @property
    def _reusable(self) -> bool:
        return self._h11.our_state is h11.DONE and self._h11.their_state is h11.DONE

    async def start_events(self, *headers: Header) -> None:
        """Begin an answer that is a stream of events."""
        fields: Sequence[Header] = (
            ("content-type", "text/event-stream"),
            ("cache-control", "no-cache, no-transform"),
            *headers,
        )
        await self._send(h11.Response(status_code=200, headers=list(fields)))

    async def send_event(self, message: bytes) -> None:
        """Send a message as an event."""
        await self._send(h11.Data(data=b"event: message\ndata: %b\n\n" % message.rstrip(b"\n")))

    async def send_comment(self) -> None:
        """Send a comment, which readers of event streams ignore, so that the connection is not silent."""
        await self._send(h11.Data(data=b": still here\n\n"))

    async def end_events(self) -> bool:
        """End the stream of events, and return whether the connection can serve another request."""
        await self._send(h11.EndOfMessage())
        return self._reusable

    async def wait_gone(self) -> None:
        """Return when the client has left. Bytes that it sends meanwhile are kept for the next request."""
        try:
            while len(self._h11.trailing_data[0]) < MAX_PIPELINED:
                if not await self._fill():
                    return
        except anyio.BrokenResourceError:
            return
        await anyio.sleep_forever()

    async def linger(self) -> None:
        """End our side of the connection, and read on briefly so that the last answer arrives."""
        with anyio.move_on_after(LINGER):
            await self._stream.send_eof()
            while True:
                await self._stream.receive(READ_SIZE)

    async def _event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        try:
            with anyio.move_on_after(self._limits.request_time):
                while True:
                    event = self._h11.next_event()
                    if event is not h11.NEED_DATA:
                        return event
                    await self._fill()
        except h11.RemoteProtocolError as exc:
            raise HttpError(exc.error_status_hint, str(exc)) from exc
        raise HttpError(408, "The request took too long")

    async def _fill(self) -> bool:
        """Read more, and return whether there was any."""
        try:
            data = await self._stream.receive(READ_SIZE)
        except anyio.EndOfStream:
            data = b""
        self._h11.receive_data(data)
        return bool(data)

    async def _send(self, *events: h11.Event) -> None:
        data = b"".join(self._h11.send(event) or b"" for event in events)
        with anyio.fail_after(self._limits.write_time):
            await self._stream.send(data)
