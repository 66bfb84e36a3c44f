"""Clients that read slowly, vanish, send too much or send junk, over real connections to real servers."""

from __future__ import annotations

import json
import logging
import socket
import struct
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest
from real_servers import ERROR_LOGS, ONE_OR_ALL, Listening, ServerKind, backend_of, listening
from web_stage import Sse, frames_of, scripted_agent, started

from thinkwell.web import Limits, RunServer, web_app

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from anyio.abc import SocketStream
    from scripted import Turn
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

PIECE = "x" * 64_000
PIECES = 180
LAST = "That is all."


@pytest.fixture(params=ONE_OR_ALL)
def kind(request: pytest.FixtureRequest) -> ServerKind:
    """Which server."""
    found: ServerKind = request.param
    return found


@pytest.fixture
def anyio_backend(kind: ServerKind) -> str:
    """The event loop of the server."""
    return backend_of(kind)


class Counting:
    """An application that counts what is being answered, and what is given to each connection."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.given: dict[int, int] = {}
        """Bytes, by the port of the client."""
        self.begun = 0
        """Answers that have begun and not ended."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = 0

        async def counted(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = 1
                self.begun += 1
            await send(message)
            if message["type"] == "http.response.body":
                port = scope["client"][1]
                self.given[port] = self.given.get(port, 0) + len(message.get("body", b""))

        try:
            await self._app(scope, receive, counted)
        finally:
            self.begun -= begun


class World:
    """A server of runs behind an HTTP server."""

    def __init__(self, server: RunServer, counting: Counting, address: Listening) -> None:
        self.server = server
        self.counting = counting
        self.address = address

    async def start(self, prompt: str = "Go.") -> str:
        """Start a run and return the path of its events."""
        return f"/api/runs/{(await started(self.server, prompt, caller='')).id}/events"

    async def connect(self, *, receives: int | None = None) -> SocketStream:
        """Open a connection, with room for about some bytes that were received and not read."""
        raw = socket.socket()
        if receives is not None:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receives)
        raw.connect(("127.0.0.1", self.address.port))
        raw.setblocking(False)
        return await anyio.abc.SocketStream.from_socket(raw)

    async def get(self, path: str, *headers: str) -> bytes:
        """Ask for something, and return the body of the answer."""
        async with await self.connect() as connection:
            await connection.send(request("GET", path, "Connection: close", *headers))
            return body_of(await rest(connection))


@asynccontextmanager
async def world(kind: ServerKind, *scripts: Any, **options: Any) -> AsyncGenerator[World]:
    server = RunServer({"scripted": scripted_agent(*scripts)[0]}, **options)
    counting = Counting(web_app(server))
    with anyio.fail_after(30):
        async with server, listening(counting, kind) as address:
            yield World(server, counting, address)


@pytest.fixture(autouse=True)
async def nothing_is_logged(caplog: pytest.LogCaptureFixture) -> AsyncGenerator[None]:
    """Whatever a client does is no mistake of the application."""
    yield
    assert [record for record in caplog.records if record.name in ERROR_LOGS and record.exc_info] == []
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


def request(method: str, path: str, *headers: str, body: bytes = b"") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: x", *headers]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join((*lines, "", "")).encode("latin-1") + body


async def rest(connection: SocketStream) -> bytes:
    """All that comes until the connection is closed."""
    found = bytearray()
    while True:
        try:
            found += await connection.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return bytes(found)


async def until(connection: SocketStream, end: bytes) -> bytes:
    found = bytearray()
    while end not in found:
        found += await connection.receive()
    return bytes(found)


def body_of(answer: bytes) -> bytes:
    """The body of an answer, put together where it is in chunks."""
    head, _, body = answer.partition(b"\r\n\r\n")
    if b"transfer-encoding: chunked" not in head.lower():
        return body
    whole = bytearray()
    while body:
        size, _, body = body.partition(b"\r\n")
        whole += body[: int(size, 16)]
        body = body[int(size, 16) + 2 :]
    return bytes(whole)


def events_of(body: bytes) -> list[Sse]:
    return frames_of(body.decode())


async def wait_for(true: Callable[[], bool]) -> None:
    """Wait in real time, as the system has a part in it."""
    while not true():  # noqa: ASYNC110
        await anyio.sleep(0.01)


async def hello(turn: Turn) -> None:
    turn.think("Who is there?")
    turn.say("Hello ")
    turn.say("Ada.")


async def for_ever(turn: Turn) -> None:
    turn.say("I begin.")
    await anyio.sleep_forever()


@pytest.mark.long
async def test_a_slow_reader_holds_up_no_other_and_misses_nothing(kind: ServerKind) -> None:
    go = anyio.Event()

    async def talk(turn: Turn) -> None:
        turn.say("I begin.")
        await go.wait()
        for number in range(PIECES):
            turn.say(PIECE, message_id=f"m{number}")
            await anyio.lowlevel.checkpoint()

    async with world(kind, talk) as here:
        path = await here.start()
        async with await here.connect(receives=4096) as slow, await here.connect() as quick:
            port = slow.extra(anyio.abc.SocketAttribute.local_port)
            for connection in (slow, quick):
                await connection.send(request("GET", path, "Connection: close"))
            await wait_for(lambda: here.counting.begun == 2)
            go.set()
            seen = events_of(body_of(await rest(quick)))
            assert seen[-1].json()["status"] == "completed"

            # The run is over and was seen by others. What waits for the slow one is in the journal, and
            # not on its way: the system has taken some megabytes at most.
            assert here.counting.given[port] < 8_000_000
            held = events_of(body_of(await rest(slow)))
        assert held == seen
        assert sum(event.data.count(PIECE) for event in held) == PIECES + 1  # and once in the result
        assert [int(event.id or "") for event in held] == list(range(1, len(held) + 1))


@pytest.mark.parametrize("how", ["close", "reset"])
@pytest.mark.parametrize("reads", [True, False])
async def test_who_vanishes_leaves_nothing_behind(kind: ServerKind, how: str, *, reads: bool) -> None:
    async def talk(turn: Turn) -> None:
        for _ in range(1 if reads else 200):
            turn.say(PIECE)
            await anyio.lowlevel.checkpoint()
        turn.say(LAST)
        await anyio.sleep_forever()

    async with world(kind, talk) as here:
        path = await here.start()
        run_id = path.split("/")[3]
        await here.get("/healthz")
        async with here.server.watch(run_id, caller="") as watcher:
            while (batch := await watcher.next()) and LAST.encode() not in batch.entries[-1].data:
                pass
        before = len(anyio.get_running_tasks())
        connections = [await here.connect(receives=4096) for _ in range(5)]
        for connection in connections:
            await connection.send(request("GET", path))
        await wait_for(lambda: here.counting.begun == 5)
        for connection in connections:
            if reads:
                await until(connection, PIECE[:1000].encode())
            if how == "reset":
                raw = connection.extra(anyio.abc.SocketAttribute.raw_socket)
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            await connection.aclose()
        await wait_for(lambda: here.counting.begun == 0)
        await wait_for(lambda: len(anyio.get_running_tasks()) <= before)
        assert (await here.server.get(run_id, caller="")).status == "running"


async def test_resuming_at_every_number(kind: ServerKind) -> None:
    async with world(kind, hello) as here:
        path = await here.start()
        whole = events_of(await here.get(path))
        assert [int(event.id or "") for event in whole] == list(range(1, len(whole) + 1))
        for after in range(len(whole)):
            assert events_of(await here.get(path, f"Last-Event-ID: {after}")) == whole[after:]
        assert await here.get(path, f"Last-Event-ID: {len(whole)}") == b""


async def test_coming_back_again_and_again_while_the_run_goes_on(kind: ServerKind) -> None:
    async def talk(turn: Turn) -> None:
        for number in range(100):
            turn.say(f"{number} ")
            await anyio.sleep(0.002)

    async with world(kind, talk) as here:
        path = await here.start()
        seen: list[Sse] = []
        while not seen or seen[-1].event != "end":
            last = f"Last-Event-ID: {len(seen)}"
            async with await here.connect() as connection:
                await connection.send(request("GET", path, last))
                text = await until(connection, b"id: ")
                text += await connection.receive() if not text.endswith(b"\r\n") else b""
            # What was cut off in the middle of an event is no event.
            head, _, chunks = text.partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200")
            whole = body_of(head + b"\r\n\r\n" + chunks[: chunks.rfind(b"\n\n\r\n") + 4])
            seen += events_of(whole)
        assert [int(event.id or "") for event in seen] == list(range(1, len(seen) + 1))
        text_of = [event.json()["text"] for event in seen if event.json()["type"] == "message"]
        assert "".join(text_of) == "".join(f"{number} " for number in range(100))


async def test_a_body_that_is_too_long(kind: ServerKind) -> None:
    answer = b""
    async with world(kind, hello, limits=Limits(max_request=10_000)) as here:
        async with await here.connect() as connection, anyio.create_task_group() as tasks:

            async def send() -> None:
                with suppress(anyio.BrokenResourceError):  # the server has seen enough
                    await connection.send(request("POST", "/api/runs", body=b"x" * 5_000_000))

            tasks.start_soon(send)
            answer = await rest(connection)
        assert answer.startswith(b"HTTP/1.1 413 ")
        assert json.loads(body_of(answer))["error"]["code"] == "too_large"
        assert b'"runs":[]' in await here.get("/api/runs")


async def test_a_body_that_never_ends(kind: ServerKind) -> None:
    answer = b""
    async with world(kind, hello, limits=Limits(max_request=10_000)) as here:
        async with await here.connect() as connection, anyio.create_task_group() as tasks:
            await connection.send(request("POST", "/api/runs", "Transfer-Encoding: chunked"))

            async def go_on() -> None:
                with suppress(anyio.BrokenResourceError):
                    while True:
                        await connection.send(b"400\r\n" + b"x" * 1024 + b"\r\n")

            tasks.start_soon(go_on)
            answer = await rest(connection)
            tasks.cancel_scope.cancel()
        assert answer.startswith(b"HTTP/1.1 413 ")
        assert b'"status":"ok"' in await here.get("/healthz")


async def test_a_client_that_goes_in_the_middle_of_its_body(kind: ServerKind) -> None:
    async with world(kind, hello) as here:
        async with await here.connect() as connection:
            await connection.send(request("POST", "/api/runs", "Content-Length: 1000") + b'{"prompt": "x')
        await here.get("/healthz")
        assert b'"runs":[]' in await here.get("/api/runs")


async def test_requests_in_a_row_are_answered_in_their_order(kind: ServerKind) -> None:
    async with world(kind, hello) as here:
        path = await here.start()
        whole = events_of(await here.get(path))
        async with await here.connect() as connection:
            await connection.send(
                request("GET", "/healthz")
                + request("POST", "/api/runs", body=b"nonsense")
                + request("GET", path)
                + request("GET", "/nothing", "Connection: close")
            )
            text = await rest(connection)
        healthy, wrong, watched, nothing = text.split(b"HTTP/1.1 ")[1:]
        assert (healthy[:3], wrong[:3], watched[:3], nothing[:3]) == (b"200", b"400", b"200", b"404")
        assert events_of(body_of(watched)) == whole


async def test_a_request_behind_a_stream_waits_for_its_end(kind: ServerKind) -> None:
    async with world(kind, for_ever) as here:
        path = await here.start()
        async with await here.connect() as connection:
            await connection.send(request("GET", path) + request("GET", "/healthz", "Connection: close"))
            text = await until(connection, b"I begin.")
            await here.server.cancel(path.split("/")[3], caller="")
            text += await rest(connection)
        assert text.count(b"HTTP/1.1 200") == 2
        assert text.index(b"event: end") < text.index(b'"status":"ok"')


JUNK = {
    "no head": b"\r\n\r\n\r\n",
    "no request": b"nonsense\r\n\r\n",
    "binary": bytes(range(256)) * 10 + b"\r\n\r\n",
    "no host": b"GET /api HTTP/1.1\r\n\r\n",
    "NUL in a header": b"GET /api HTTP/1.1\r\nHost: x\r\nX-A: \x00\r\n\r\n",
    "bytes in a header": b"GET /api HTTP/1.1\r\nHost: x\r\nX-A: \xff\xfe\r\nConnection: close\r\n\r\n",
    "a name with a space": b"GET /api HTTP/1.1\r\nHost: x\r\nX A: 1\r\n\r\n",
    "a long header": b"GET /api HTTP/1.1\r\nHost: x\r\nX-A: " + b"a" * 200_000 + b"\r\n\r\n",
    "many headers": b"GET /api HTTP/1.1\r\nHost: x\r\n" + b"X-A: 1\r\n" * 20_000 + b"\r\n",
    "a long path": b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    "bytes in a path": b"GET /api/runs/%ff%00%0d%0a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    "bytes in a query": b"GET /api/runs?thread=%ff%00&before=%f0 HTTP/1.1\r\nHost: x\r\n"
    b"Connection: close\r\n\r\n",
    "two lengths": b"POST /api/runs HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
    "a length that is none": b"POST /api/runs HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n{}",
    "a length below zero": b"POST /api/runs HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n{}",
    "a length beyond all": b"POST /api/runs HTTP/1.1\r\nHost: x\r\nContent-Length: "
    + b"9" * 18
    + b"\r\n\r\n{}",
    "a broken chunk": b"POST /api/runs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n",
    "an odd method": b"get /api HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    "an old version": b"GET /api/runs/none/events HTTP/1.0\r\n\r\n",
    "a target with a host": b"GET http://other.example/api HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    "the same header twice": (
        b"GET /api/runs/none/events HTTP/1.1\r\nHost: x\r\nLast-Event-ID: 1\r\nLast-Event-ID: 2\r\n"
        b"Connection: close\r\n\r\n"
    ),
}


async def test_junk(kind: ServerKind) -> None:
    async with world(kind, hello) as here:
        for name, junk in JUNK.items():
            async with await here.connect() as connection:
                with suppress(anyio.BrokenResourceError, OSError):  # it has seen enough
                    await connection.send(junk)
                    await connection.send_eof()
                answer = await rest(connection)
            assert answer == b"" or answer.startswith((b"HTTP/1.1 2", b"HTTP/1.1 4")), (name, answer[:200])
            assert b"Traceback" not in answer, name
            assert b'"status":"ok"' in await here.get("/healthz"), name
        assert await here.server.runs(caller="") == []
