"""Server-sent events over ASGI: a response that ends as soon as its client has disconnected."""

from __future__ import annotations

import math
import random
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

import anyio
from starlette.responses import Response

from thinkwell._core.exit import running_clock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from starlette.types import Message, Receive, Scope, Send

KEEP_ALIVE: Final = 15.0
"""Seconds of silence after which something is sent. Proxies close silent connections after 30 to 60."""

COMMENT: Final = b": keep-alive\n\n"
"""A comment, which `EventSource` ignores (HTML, Server-sent events)."""

CLOSE_TIMEOUT: Final = 5.0
"""Seconds that a source gets to close, when there is no client left."""

RETRY: Final = (1000, 3000)
"""Milliseconds after which a browser reconnects, chosen at random between these: otherwise all would
reconnect to a restarted server at once."""

_LINE_END: Final = re.compile("\r\n|\r|\n")


class _GoneError(Exception):
    """The client has disconnected."""


@runtime_checkable
class _Closable(Protocol):
    async def aclose(self) -> None: ...


class Frames(Protocol):
    """Events that are already encoded."""

    @property
    def sse(self) -> bytes:
        """The encoded events."""
        ...


def sse_frame(data: bytes, *, id: str | int | None = None, event: str | None = None) -> bytes:  # noqa: A002 - the field's name
    r"""Encode an event (HTML, Server-sent events).

    Args:
        data: Its data, in UTF-8. Several lines become several ``data:`` fields.
        id: The value that `EventSource` sends as ``Last-Event-ID`` when it reconnects.
        event: Name of the event; ``None``: ``message``.
    """
    frame = b""
    if id is not None:
        frame += b"id: %s\n" % _LINE_END.sub(" ", str(id)).encode()
    if event is not None:
        frame += b"event: %s\n" % _LINE_END.sub(" ", event).encode()
    if b"\n" in data or b"\r" in data:
        data = b"\ndata: ".join(data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"))
    return b"%sdata: %s\n\n" % (frame, data)


def retry_field() -> bytes:
    """The line that says when a browser reconnects; an event or an empty line follows."""
    return b"retry: %d\n" % random.randint(*RETRY)  # noqa: S311 - nothing secret


class EventStream(Response):
    """A response of Starlette that sends what a source yields, as a stream of server-sent events.

    It reads the source in the task of the request, as fast as the client reads. It closes the source in
    that task, at its end and as soon as the client disconnects, even while the source yields nothing. An
    error of the source aborts the connection, which clients can tell from an end.

    Args:
        source: Whole events to send, as bytes (see `sse_frame`) or as objects with `sse`.
            It has to let other tasks run from time to time. A generator may have its own task groups.
        first: Sent first, at once, so that the client knows that it is connected.
        keep_alive: Sent after a silence, or a function that creates it; ``None`` for nothing.
        interval: Seconds of silence after which to send it.
        headers: Headers in addition to the usual ones.
        status: The HTTP status.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        source: AsyncIterator[bytes | Frames],
        *,
        first: bytes = b"",
        keep_alive: bytes | Callable[[], bytes] | None = COMMENT,
        interval: float = KEEP_ALIVE,
        headers: Mapping[str, str] | None = None,
        status: int = 200,
    ) -> None:
        # Not that of the base, which has a body of a known length.
        self.status_code = status
        self.background: None = None
        self.init_headers(
            {
                # `no-transform`: compressing proxies hold events back until they have enough of them.
                "Cache-Control": "no-store, no-transform",
                "X-Accel-Buffering": "no",  # nginx, ngx_http_proxy_module: proxy_buffering
                **(headers or {}),
            }
        )
        self._source = source
        self._first = first
        self._keep_alive = keep_alive
        self._interval = interval
        self._is_sending = False
        self._sent: anyio.Event | None = None
        """Set when the client has taken the current message, if the other task waits for that."""
        self._clock: Callable[[], float]
        self._last = 0.0
        self._failure: Exception | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, as an ASGI application."""
        start = {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        if scope["method"] == "HEAD":
            await self._close()
            await send(start)
            await send({"type": "http.response.body", "body": b""})
            return
        self._clock = running_clock()
        complete = False
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._listen, receive, send, tasks.cancel_scope)
            try:
                complete = await self._run(start, send)
            except Exception as exc:  # raised below, outside of a group
                self._failure = exc
            tasks.cancel_scope.cancel()
        if self._failure is not None:
            raise self._failure
        if complete:
            # When the client is gone: a server may report the end of the answer as a disconnect while
            # it is still about to close the connection, and is not to be cancelled in that.
            with suppress(_GoneError):
                await _tell(send, {"type": "http.response.body", "body": b""})

    async def _run(self, start: Message, send: Send) -> bool:
        """Send everything but the end. Return whether the client was connected."""
        try:
            await _tell(send, start)
            # Even if it is empty: a server may hold the head back until there is a body (ASGI, HTTP).
            await self._put(send, self._first)
            async for piece in self._source:
                await self._put(send, piece if isinstance(piece, bytes) else piece.sse)
                del piece  # otherwise it stays in memory until the next one
        except _GoneError:
            return False
        finally:
            await self._close()
        return True

    async def _put(self, send: Send, body: bytes) -> None:
        # A lock, in a tenth of the time that one of anyio's takes: it is taken for each event of each client.
        while self._is_sending:
            self._sent = anyio.Event()
            await self._sent.wait()
        self._is_sending = True
        try:
            await _tell(send, {"type": "http.response.body", "body": body, "more_body": True})
            self._last = self._clock()
        finally:
            self._is_sending = False
            if self._sent is not None:
                self._sent.set()
                self._sent = None

    async def _listen(self, receive: Receive, send: Send, scope: anyio.CancelScope) -> None:
        """Send something after silences, until the client disconnects. Then end the response."""
        try:
            due = self._clock() + self._interval
            while True:
                with anyio.CancelScope(deadline=math.inf if self._keep_alive is None else due):
                    if (await receive())["type"] == "http.disconnect":
                        break
                    continue  # a part of the request's body
                due = await self._break_silence(send)
        except _GoneError:
            pass
        except Exception as exc:  # the task of the request raises it
            self._failure = exc
        scope.cancel()

    async def _break_silence(self, send: Send) -> float:
        """Send a sign of life if it is due, and return the time of the next one."""
        if self._is_sending:  # the client has not yet taken the last message
            return self._clock() + self._interval
        if self._clock() >= self._last + self._interval:
            made = self._keep_alive
            await self._put(send, made() if callable(made) else made or b"")
        return self._last + self._interval

    async def _close(self) -> None:
        """Close the source, in the task that has read it."""
        if isinstance(self._source, _Closable):
            with anyio.move_on_after(CLOSE_TIMEOUT, shield=True):
                await self._source.aclose()


async def _tell(send: Send, message: Message) -> None:
    """Send a message.

    Raises:
        _GoneError: The client has disconnected.
    """
    try:
        await send(message)
    except OSError as exc:  # servers raise these then (ASGI, HTTP, disconnected client)
        raise _GoneError from exc
