"""Streams of server-sent events: what is sent, and how they end when their client has gone."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest
from real_servers import ERROR_LOGS, ONE_OR_ALL, Listening, ServerKind, backend_of, listening

from thinkwell.web import EventStream, sse_frame

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, MutableMapping

    from anyio.abc import SocketStream
    from starlette.types import Receive, Scope, Send


pytestmark = pytest.mark.virtual_time

KEEP_ALIVE = 15.0
COMMENT = b": keep-alive\n\n"


class Client:
    """What a server is to an application: it takes what is sent, and says when the client has gone."""

    def __init__(self) -> None:
        self.start: MutableMapping[str, Any] = {}
        self.sent: list[bytes] = []
        self.times: list[float] = []
        self.complete = False
        self.reads = True
        """Whether the client takes what is sent."""
        self._asks: list[MutableMapping[str, Any]] = [
            {"type": "http.request", "body": b"", "more_body": False}
        ]
        self._gone = anyio.Event()
        self._news = anyio.Event()

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the answer."""
        return {name.decode(): value.decode() for name, value in self.start["headers"]}

    @property
    def text(self) -> bytes:
        """All that was sent."""
        return b"".join(self.sent)

    def go(self) -> None:
        """Close the connection."""
        self._gone.set()
        self._tell()

    async def until(self, count: int) -> None:
        """Wait for a number of pieces."""
        while len(self.sent) < count:
            await self._news.wait()

    async def receive(self) -> MutableMapping[str, Any]:
        if self._asks:
            return self._asks.pop()
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: MutableMapping[str, Any]) -> None:
        await anyio.lowlevel.checkpoint()
        if message["type"] == "http.response.start":
            self.start = message
            return
        while message["body"] and not (self.reads or self._gone.is_set()):
            await self._news.wait()
        self.complete = not message.get("more_body", False)
        if message["body"]:
            self.sent.append(message["body"])
            self.times.append(anyio.current_time())
        self._tell()

    def _tell(self) -> None:
        self._news.set()
        self._news = anyio.Event()


async def serve(stream: EventStream, client: Client, method: str = "GET") -> None:
    """Answer a request with a stream."""
    with anyio.fail_after(3600):
        await stream({"type": "http", "method": method}, client.receive, client.send)


async def pieces(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        await anyio.lowlevel.checkpoint()
        yield part


class Endless:
    """A source that gives some pieces and then nothing, and tells what becomes of it."""

    def __init__(self, *parts: bytes) -> None:
        self.parts = parts
        self.task = 0
        self.closed_in = 0
        self.waits = anyio.Event()
        self.closed = anyio.Event()

    async def run(self) -> AsyncGenerator[bytes]:
        self.task = anyio.get_current_task().id
        try:
            async with anyio.create_task_group():  # one may be open while a piece is sent
                for part in self.parts:
                    yield part
                self.waits.set()
                await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(1)  # closing takes time
            self.closed_in = anyio.get_current_task().id
            self.closed.set()


async def test_what_the_source_gives_is_sent_as_it_is() -> None:
    client = Client()
    await serve(EventStream(pieces(b"data: 1\n\n", b"data: 2\n\n"), first=b"retry: 10\n\n"), client)
    assert client.sent == [b"retry: 10\n\n", b"data: 1\n\n", b"data: 2\n\n"]
    assert client.complete
    assert client.start["status"] == 200
    assert client.headers == {
        "content-type": "text/event-stream; charset=utf-8",
        "cache-control": "no-store, no-transform",
        "x-accel-buffering": "no",
    }


async def test_what_has_its_frames_is_sent_too() -> None:
    class Batch:
        sse = b"data: 1\n\n"

    async def batches() -> AsyncIterator[Batch]:
        yield Batch()
        await anyio.lowlevel.checkpoint()

    client = Client()
    await serve(EventStream(batches()), client)
    assert client.sent == [b"data: 1\n\n"]


async def test_headers_and_status_can_be_said() -> None:
    client = Client()
    await serve(
        EventStream(pieces(), headers={"X-More": "1", "Cache-Control": "no-cache"}, status=201), client
    )
    assert client.start["status"] == 201
    assert client.headers["x-more"] == "1"
    assert client.headers["cache-control"] == "no-cache"


async def test_a_client_that_goes_ends_a_silent_source_at_once_and_in_its_own_task() -> None:
    client, source = Client(), Endless(b"data: 1\n\n")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve, EventStream(source.run()), client)
        await source.waits.wait()
        before = anyio.current_time()
        client.go()
        await source.closed.wait()
        assert anyio.current_time() - before == pytest.approx(1.0)  # what closing takes
    assert source.task == source.closed_in != 0
    assert client.sent == [b"data: 1\n\n"]


async def test_a_client_that_goes_without_reading_ends_the_source_too() -> None:
    client, source = Client(), Endless(b"data: 1\n\n")
    client.reads = False
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve, EventStream(source.run()), client)
        await anyio.wait_all_tasks_blocked()
        assert source.task != 0
        assert not source.waits.is_set()
        client.go()
        await source.closed.wait()
    assert source.task == source.closed_in


async def test_a_stream_that_is_cancelled_closes_its_source() -> None:
    client, source = Client(), Endless(b"data: 1\n\n")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve, EventStream(source.run()), client)
        await source.waits.wait()
        tasks.cancel_scope.cancel()
    assert source.task == source.closed_in
    assert not client.complete


async def test_a_source_that_does_not_close_is_given_up() -> None:
    async def stubborn() -> AsyncIterator[bytes]:
        try:
            yield b"data: 1\n\n"
            await anyio.sleep_forever()
        finally:
            await anyio.sleep_forever()

    client = Client()
    client.reads = False
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve, EventStream(stubborn()), client)
        await anyio.wait_all_tasks_blocked()
        client.go()
    assert not client.complete


async def test_a_source_need_not_be_a_generator() -> None:
    class Numbers:
        def __init__(self) -> None:
            self.left = 2

        def __aiter__(self) -> Numbers:
            return self

        async def __anext__(self) -> bytes:
            await anyio.lowlevel.checkpoint()
            self.left -= 1
            if self.left < 0:
                raise StopAsyncIteration
            return b"data: %d\n\n" % self.left

    client = Client()
    await serve(EventStream(Numbers()), client)
    assert client.sent == [b"data: 1\n\n", b"data: 0\n\n"]


async def test_silence_is_broken() -> None:
    async def slow() -> AsyncIterator[bytes]:
        await anyio.sleep(10)
        yield b"data: 1\n\n"
        await anyio.sleep(40)
        yield b"data: 2\n\n"

    client = Client()
    began = anyio.current_time()
    await serve(EventStream(slow()), client)
    assert client.sent == [b"data: 1\n\n", COMMENT, COMMENT, b"data: 2\n\n"]
    assert [round(time - began, 3) for time in client.times] == [
        10,
        10 + KEEP_ALIVE,
        10 + 2 * KEEP_ALIVE,
        50,
    ]


async def test_signs_of_life_can_be_made_or_left_out() -> None:
    async def silent() -> AsyncIterator[bytes]:
        await anyio.sleep(7)
        yield b"data: end\n\n"

    numbers = iter(range(10))
    client = Client()
    await serve(EventStream(silent(), keep_alive=lambda: b"data: %d\n\n" % next(numbers), interval=3), client)
    assert client.sent == [b"data: 0\n\n", b"data: 1\n\n", b"data: end\n\n"]
    client = Client()
    await serve(EventStream(silent(), keep_alive=None, interval=3), client)
    assert client.sent == [b"data: end\n\n"]


async def test_who_does_not_read_is_sent_no_signs_of_life() -> None:
    client, source = Client(), Endless(b"data: 1\n\n")
    client.reads = False
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve, EventStream(source.run()), client)
        await anyio.sleep(100)
        client.reads = True
        client._tell()
        await client.until(2)
        client.go()
    assert client.sent == [b"data: 1\n\n", COMMENT]


async def test_an_event_waits_for_a_sign_of_life_that_is_being_taken() -> None:
    async def slow() -> AsyncIterator[bytes]:
        await anyio.sleep(20)
        yield b"data: 1\n\n"
        yield b"data: 2\n\n"

    client = Client()
    client.reads = False
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve, EventStream(slow()), client)
        await anyio.sleep(30)
        client.reads = True
        client._tell()
    assert client.sent == [COMMENT, b"data: 1\n\n", b"data: 2\n\n"]
    assert client.complete


async def test_parts_of_a_body_that_come_late_change_nothing() -> None:
    client, source = Client(), Endless()
    client._asks = [{"type": "http.request", "body": b"x", "more_body": True}] * 5
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve, EventStream(source.run()), client)
        await source.waits.wait()
        client.go()
    assert source.closed.is_set()


async def test_an_error_of_the_source_breaks_the_answer_off() -> None:
    async def failing() -> AsyncIterator[bytes]:
        yield b"data: 1\n\n"
        raise ValueError("broken")

    client = Client()
    with pytest.raises(ValueError, match="broken"):
        await serve(EventStream(failing()), client)
    assert client.sent == [b"data: 1\n\n"]
    assert not client.complete


@pytest.mark.parametrize("after", range(4))
async def test_a_server_that_says_by_an_error_that_the_client_has_gone(after: int) -> None:
    class Broken(Client):
        left = after

        async def send(self, message: MutableMapping[str, Any]) -> None:
            self.left -= 1
            if self.left < 0:
                raise BrokenPipeError
            await super().send(message)

    closed = anyio.Event()

    async def one() -> AsyncIterator[bytes]:
        try:
            yield b"data: 1\n\n"
        finally:
            closed.set()

    client = Broken()
    await serve(EventStream(one(), first=b": first\n\n"), client)
    assert not client.complete
    assert closed.is_set() or after < 3  # a generator that was not begun has nothing to close


async def test_a_sign_of_life_finds_out_that_the_client_has_gone() -> None:
    class Breaking(Client):
        async def send(self, message: MutableMapping[str, Any]) -> None:
            if self.sent:
                raise BrokenPipeError
            await super().send(message)

    client, source = Breaking(), Endless(b"data: 1\n\n")
    await serve(EventStream(source.run()), client)
    assert source.closed.is_set()


async def test_a_server_that_fails_is_not_hushed_up() -> None:
    class Failing(Client):
        async def receive(self) -> MutableMapping[str, Any]:
            raise RuntimeError("no such connection")

    source = Endless()
    with pytest.raises(RuntimeError, match="no such connection"):
        await serve(EventStream(source.run()), Failing())


async def test_head_gets_the_headers_and_the_source_is_not_read() -> None:
    source = Endless(b"data: 1\n\n")
    client = Client()
    await serve(EventStream(source.run()), client, method="HEAD")
    assert client.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert client.sent == []
    assert client.complete
    assert source.task == 0


def test_frames() -> None:
    assert sse_frame(b"{}") == b"data: {}\n\n"
    assert sse_frame(b"{}", id=7, event="end") == b"id: 7\nevent: end\ndata: {}\n\n"
    assert sse_frame(b"a\r\nb\rc\nd") == b"data: a\ndata: b\ndata: c\ndata: d\n\n"
    assert sse_frame(b"", id="a\r\nid: 9", event="x\ndata: y") == b"id: a id: 9\nevent: x data: y\ndata: \n\n"


# Behind servers


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


class TestServed:
    """Behind uvicorn, and hypercorn on both event loops."""

    @pytest.fixture(params=ONE_OR_ALL)
    def kind(self, request: pytest.FixtureRequest) -> ServerKind:
        """Which server."""
        found: ServerKind = request.param
        return found

    @pytest.fixture
    def anyio_backend(self, kind: ServerKind) -> str:
        """The event loop of the server."""
        return backend_of(kind)

    @pytest.fixture
    def app(self) -> App:
        return App()

    @pytest.fixture
    async def server(
        self, app: App, kind: ServerKind, caplog: pytest.LogCaptureFixture
    ) -> AsyncGenerator[Listening]:
        """The application, served; no server has seen an error of it."""
        with anyio.fail_after(30):
            async with listening(app, kind) as address:
                yield address
        assert [r for r in caplog.records if r.name in ERROR_LOGS and r.levelno > logging.INFO] == []

    async def test_a_stream_is_served_to_its_end(self, app: App, server: Listening) -> None:
        app.pieces, app.endless = [b"data: %d\n\n" % number for number in range(3)], False
        async with await server.connect() as connection:
            await ask(connection, "GET", "Connection: close")
            text = await read_all(connection)
        head, _, body = text.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200")
        assert b"text/event-stream; charset=utf-8" in head
        assert body.endswith(b"data: 2\n\n\r\n0\r\n\r\n")
        await app.returned.wait()

    async def test_the_head_and_the_beginning_come_before_there_is_an_event(
        self, app: App, server: Listening
    ) -> None:
        async with await server.connect() as connection:
            await ask(connection)
            await read_until(connection, b"retry: 10\n\n\r\n")
        await app.closed.wait()

    async def test_a_client_that_vanishes_is_noticed_while_nothing_is_sent(
        self, app: App, server: Listening
    ) -> None:
        async with await server.connect() as connection:
            await ask(connection)
            await app.waits.wait()
        await app.returned.wait()
        assert app.closed_in == app.task != 0

    async def test_a_client_that_vanishes_without_reading_is_noticed(
        self, app: App, server: Listening
    ) -> None:
        app.pieces = [b"data: %s\n\n" % (b"x" * 65536)] * 1000
        async with await server.connect() as connection:
            await ask(connection)
            await app.began.wait()
            await read_until(connection, b"retry: 10\n\n\r\n")
        await app.returned.wait()
        assert app.closed_in == app.task != 0

    async def test_who_reads_slowly_is_given_no_more_than_is_on_the_way(
        self, app: App, server: Listening
    ) -> None:
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

    async def test_signs_of_life(self, app: App, server: Listening) -> None:
        app.interval = 0.05
        async with await server.connect() as connection:
            await ask(connection)
            await read_until(connection, b": keep-alive\n\n\r\n")
            await read_until(connection, b": keep-alive\n\n\r\n")
        await app.returned.wait()

    async def test_who_has_asked_for_more_and_vanishes_is_noticed_by_the_next_sign_of_life(
        self, app: App, server: Listening
    ) -> None:
        app.interval = 0.05
        async with await server.connect() as connection:
            # A server reads no further than to the second request: it does not see the end of the connection.
            await ask(connection)
            await ask(connection)
            await app.waits.wait()
        await app.returned.wait()
        assert app.closed_in == app.task != 0

    async def test_head(self, app: App, server: Listening) -> None:
        async with await server.connect() as connection:
            await ask(connection, "HEAD", "Connection: close")
            text = await read_all(connection)
        assert text.endswith(b"\r\n\r\n")
        assert text.count(b"\r\n\r\n") == 1
        assert app.task == 0

    async def test_an_error_breaks_the_stream_off(
        self, app: App, kind: ServerKind, caplog: pytest.LogCaptureFixture
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
