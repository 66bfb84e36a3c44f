"""Connections of ``thinkwell serve``: who says nothing is let go, and there are only so many."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import anyio.lowlevel
import pytest
import uvicorn
from uvicorn.server import ServerState

from thinkwell.cli._serve_connections import TOLD, Connection

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.types import Receive, Scope, Send

LIMIT = 20


class Impatient(Connection):
    """One that waits for less than a blink."""

    head_time = 0.05


class Holding:
    """An application that answers when it is let to, and by two pieces."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.asked = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.asked.set()
        headers = [(b"content-length", b"2")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"o", "more_body": True})
        await self.go.wait()
        await send({"type": "http.response.body", "body": b"k"})


@asynccontextmanager
async def serving(
    app: Holding, kind: type[Connection] = Impatient, most: int = 1000
) -> AsyncGenerator[tuple[int, ServerState]]:
    """An application behind connections of a kind, at a port."""
    config = uvicorn.Config(
        app, http=kind, ws="none", lifespan="off", log_config=None, limit_concurrency=most
    )
    config.load()
    state = ServerState()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: kind(config, state, {}), "127.0.0.1", 0)
    async with asyncio.timeout(LIMIT):
        async with server:
            yield server.sockets[0].getsockname()[1], state
            for connection in tuple(state.connections):
                connection.transport.abort()
        while state.connections or state.tasks:
            await anyio.lowlevel.checkpoint()


async def ended(reader: asyncio.StreamReader) -> bytes:
    """Return what still comes until the connection is closed."""
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""


async def closed_unasked(said: bytes) -> bytes:
    """Say something that is no whole head, and return what is answered before the connection is closed."""
    async with serving(Holding()) as (port, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(said)
        answer = await ended(reader)
        writer.close()
    return answer


@pytest.mark.parametrize("said", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: localhost\r\nX-A: 1\r\n"])
def test_a_head_that_does_not_come(said: bytes) -> None:
    assert asyncio.run(closed_unasked(said)) == b""


def test_a_second_head_that_does_not_come() -> None:
    async def asked() -> bytes:
        app = Holding()
        app.go.set()
        async with serving(app) as (port, _):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\nGET / HTTP/1.1\r\nHost: loc")
            answer = await ended(reader)
            writer.close()
        return answer

    answer = asyncio.run(asked())
    assert answer.startswith(b"HTTP/1.1 200 OK")
    assert answer.endswith(b"ok")


def test_an_answer_may_take_its_time_and_what_is_asked_meanwhile_is_answered() -> None:
    async def asked() -> bytes:
        app = Holding()
        async with serving(app) as (port, _):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(
                b"GET /1 HTTP/1.1\r\nHost: localhost\r\n\r\nGET /2 HTTP/1.1\r\nHost: localhost\r\n\r\n"
            )
            await app.asked.wait()
            idle, other = await asyncio.open_connection("127.0.0.1", port)
            assert await ended(idle) == b"", "so much time has gone by"
            other.close()
            app.go.set()
            answer = await ended(reader)
            writer.close()
        return answer

    answer = asyncio.run(asked())
    assert answer.count(b"HTTP/1.1 200 OK") == 2
    assert answer.count(b"ok") == 2


def test_there_are_only_so_many() -> None:
    async def connected() -> tuple[int, bytes, bytes]:
        async with serving(Holding(), Connection, most=2) as (port, state), AsyncExitStack() as stack:
            for _ in range(2 + TOLD):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                stack.callback(writer.close)
            while len(state.connections) < 2 + TOLD:
                await anyio.lowlevel.checkpoint()
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            beyond = await ended(reader)
            writer.close()
            first = next(iter(state.connections))
            first.transport.abort()
            while len(state.connections) > 1 + TOLD:
                await anyio.lowlevel.checkpoint()
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            told = await ended(reader)
            writer.close()
            return len(state.connections), beyond, told

    count, beyond, told = asyncio.run(connected())
    assert count <= 2 + TOLD
    assert beyond == b""
    assert told.startswith(b"HTTP/1.1 503 ")
