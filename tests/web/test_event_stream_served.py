"""Streams of server-sent events behind real servers: uvicorn, and hypercorn on both event loops."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from real_servers import ERROR_LOGS, SERVERS, Listening, ServerKind, backend_of, listening

from thinkwell.web._sse import EventStream

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, MutableMapping

    from anyio.abc import SocketStream
    from starlette.types import Receive, Scope, Send


@pytest.fixture(params=SERVERS)
def kind(request: pytest.FixtureRequest) -> ServerKind:
    """Which server."""
    found: ServerKind = request.param
    return found


@pytest.fixture
def anyio_backend(kind: ServerKind) -> str:
    """The event loop of the server."""
    return backend_of(kind)


class App:
    """Serves one stream at a time, and tells what becomes of it."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.endless = True
        self.interval = 15.0
        self.given = 0
        self.task = 0
        self.began = anyio.Event()
        self.waits = anyio.Event()
        self.closed = anyio.Event()
        self.returned = anyio.Event()
        self.closed_in = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
            return
        try:
            stream = EventStream(self._run(), first=b"retry: 10\n\n", interval=self.interval)
            await stream(scope, receive, send)
        finally:
            self.returned.set()

    async def _run(self) -> AsyncIterator[bytes]:
        self.task = anyio.get_current_task().id
        self.began.set()
        try:
            async with anyio.create_task_group():
                for piece in self.pieces:
                    yield piece
                    self.given += len(piece)
                self.waits.set()
                if self.endless:
                    await anyio.sleep_forever()
        finally:
            self.closed_in = anyio.get_current_task().id
            self.closed.set()


async def _lifespan(receive: Receive, send: Send) -> None:
    message: MutableMapping[str, Any] = await receive()
    await send({"type": "lifespan.startup.complete"})
    message = await receive()
    assert message["type"] == "lifespan.shutdown"
    await send({"type": "lifespan.shutdown.complete"})


@pytest.fixture
def app() -> App:
    return App()


@pytest.fixture
async def server(app: App, kind: ServerKind, caplog: pytest.LogCaptureFixture) -> AsyncGenerator[Listening]:
    """The application, served; no server has seen an error of it."""
    with anyio.fail_after(30):
        async with listening(app, kind) as address:
            yield address
    assert [r for r in caplog.records if r.name in ERROR_LOGS and r.levelno > logging.INFO] == []


async def ask(connection: SocketStream, method: str = "GET", *headers: str) -> None:
    await connection.send("\r\n".join((f"{method} / HTTP/1.1", "Host: x", *headers, "", "")).encode())


async def read_until(connection: SocketStream, end: bytes) -> bytes:
    text = b""
    while end not in text:
        text += await connection.receive()
    return text


async def read_all(connection: SocketStream) -> bytes:
    text = bytearray()
    while True:
        try:
            text += await connection.receive()
        except anyio.EndOfStream:
            return bytes(text)


async def test_a_stream_is_served_to_its_end(app: App, server: Listening) -> None:
    app.pieces, app.endless = [b"data: %d\n\n" % number for number in range(3)], False
    async with await server.connect() as connection:
        await ask(connection, "GET", "Connection: close")
        text = await read_all(connection)
    head, _, body = text.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    assert b"text/event-stream; charset=utf-8" in head
    assert body.endswith(b"data: 2\n\n\r\n0\r\n\r\n")
    await app.returned.wait()


async def test_the_head_and_the_beginning_come_before_there_is_an_event(app: App, server: Listening) -> None:
    async with await server.connect() as connection:
        await ask(connection)
        await read_until(connection, b"retry: 10\n\n\r\n")
    await app.closed.wait()


async def test_a_client_that_vanishes_is_noticed_while_nothing_is_sent(app: App, server: Listening) -> None:
    async with await server.connect() as connection:
        await ask(connection)
        await app.waits.wait()
    await app.returned.wait()
    assert app.closed_in == app.task != 0


async def test_a_client_that_vanishes_without_reading_is_noticed(app: App, server: Listening) -> None:
    app.pieces = [b"data: %s\n\n" % (b"x" * 65536)] * 1000
    async with await server.connect() as connection:
        await ask(connection)
        await app.began.wait()
        await read_until(connection, b"retry: 10\n\n\r\n")
    await app.returned.wait()
    assert app.closed_in == app.task != 0


async def test_who_reads_slowly_is_given_no_more_than_is_on_the_way(app: App, server: Listening) -> None:
    app.pieces, app.endless = [b"data: %s\n\n" % (b"x" * 65536)] * 600, False
    async with await server.connect() as connection:
        await ask(connection, "GET", "Connection: close")
        await app.began.wait()
        given = -1
        while given != app.given:
            given = app.given
            await anyio.sleep(0.1)  # real time: the system's buffers fill up
        assert 0 < given < 16_000_000
        text = await read_all(connection)
    assert text.count(b"x" * 65536) == 600
    assert app.given == sum(map(len, app.pieces))


async def test_signs_of_life(app: App, server: Listening) -> None:
    app.interval = 0.05
    async with await server.connect() as connection:
        await ask(connection)
        await read_until(connection, b": keep-alive\n\n\r\n")
        await read_until(connection, b": keep-alive\n\n\r\n")
    await app.returned.wait()


async def test_who_has_asked_for_more_and_vanishes_is_noticed_by_the_next_sign_of_life(
    app: App, server: Listening
) -> None:
    app.interval = 0.05
    async with await server.connect() as connection:
        # A server reads no further than to the second request, and so does not see the end of the connection.
        await ask(connection)
        await ask(connection)
        await app.waits.wait()
    await app.returned.wait()
    assert app.closed_in == app.task != 0


async def test_head(app: App, server: Listening) -> None:
    async with await server.connect() as connection:
        await ask(connection, "HEAD", "Connection: close")
        text = await read_all(connection)
    assert text.endswith(b"\r\n\r\n")
    assert text.count(b"\r\n\r\n") == 1
    assert app.task == 0


async def test_an_error_breaks_the_stream_off(
    app: App, kind: ServerKind, caplog: pytest.LogCaptureFixture
) -> None:
    async def failing(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
            return

        async def source() -> AsyncIterator[bytes]:
            yield b"data: 1\n\n"
            raise ValueError("broken")

        await EventStream(source())(scope, receive, send)

    with anyio.fail_after(30):
        async with listening(failing, kind) as server, await server.connect() as connection:
            await ask(connection)
            text = await read_all(connection)
    assert text.endswith(b"data: 1\n\n\r\n")  # no last chunk: it is not complete
    (record,) = [r for r in caplog.records if r.name in ERROR_LOGS and r.levelno > logging.INFO]
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], ValueError)
