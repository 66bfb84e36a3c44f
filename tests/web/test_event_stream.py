"""Streams of server-sent events: what is sent, and how they end when their client has gone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest

from thinkwell.testing import virtual_backend
from thinkwell.web._sse import COMMENT, KEEP_ALIVE, EventStream, sse_frame

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, MutableMapping

    from thinkwell.testing import Backend


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> Backend:
    """An event loop with virtual time."""
    return virtual_backend(request.param)


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
