"""A server of the Bot API that says what it was told to say, and remembers what it was asked."""

from __future__ import annotations

import json
from collections import deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import httpx
from anyio.abc import SocketAttribute

from thinkwell.channels.telegram import TelegramApi

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable

    from anyio.abc import SocketStream

SECRET = "AAExampleSecret-of_a-bot_0123456789"
TOKEN = f"4839574812:{SECRET}"


class Canned:
    """Answers in memory: with what is waiting, else with ``true``."""

    def __init__(self, *answers: httpx.Response) -> None:
        self.answers = deque(answers)
        self.asked: list[tuple[str, dict[str, Any]]] = []
        """The method and the parameters of each request."""
        self.paths: list[str] = []
        self.client = httpx.AsyncClient(transport=httpx.MockTransport(self._answer))

    def api(self, **options: Any) -> TelegramApi:
        return TelegramApi(TOKEN, client=self.client, **options)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.paths.append(request.url.path)
        self.asked.append((request.url.path.rpartition("/")[2], json.loads(request.content)))
        return self.answers.popleft() if self.answers else done(True)


def done(result: object) -> httpx.Response:
    """What Telegram answers to a request that was fulfilled."""
    return httpx.Response(200, json={"ok": True, "result": result})


def failed(code: int, description: str, **parameters: object) -> httpx.Response:
    """What Telegram answers to a request that was not."""
    body: dict[str, object] = {"ok": False, "error_code": code, "description": description}
    if parameters:
        body["parameters"] = parameters
    return httpx.Response(code, json=body)


async def repeated(chunk: bytes, times: int, pause: float = 0.0) -> AsyncIterator[bytes]:
    """A body that takes a while, or is long."""
    for _ in range(times):
        await anyio.sleep(pause)
        yield chunk


def http(body: bytes, status: str = "200 OK", headers: str = "") -> bytes:
    """An answer as it goes over the wire."""
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body


async def request_of(stream: SocketStream) -> bytes:
    """Read one request: its head, and a body of the length that it tells."""
    taken = b""
    while b"\r\n\r\n" not in taken:
        taken += await stream.receive()
    head, _, body = taken.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
    while len(body) < length:
        body += await stream.receive()
    return head + b"\r\n\r\n" + body


@asynccontextmanager
async def listening(handle: Callable[[SocketStream], Awaitable[None]]) -> AsyncGenerator[str]:
    """Serve connections on this machine, and yield the address."""

    async def one(stream: SocketStream) -> None:
        async with stream:
            await handle(stream)

    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        anyio.create_task_group() as group,
    ):
        group.start_soon(listener.serve, one)
        yield f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}"
        group.cancel_scope.cancel()
