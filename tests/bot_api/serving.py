"""Ways to reach a `BotApi`: in memory, or on a loopback port."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import anyio
import httpx
import uvicorn
from bot_api.exchange import BREAK_OFF

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Generator

    from bot_api.exchange import Message, Receive, Scope, Send
    from bot_api.server import BotApi

__all__ = ("MemoryTransport", "client", "serving")


class MemoryTransport(httpx.AsyncBaseTransport):
    """Requests to a `BotApi` without a connection, whatever the host of their address.

    Unlike `httpx.ASGITransport`, it keeps to timeouts of reading, and tells connections that fail. A request
    that is cancelled is cancelled on the server, as both run in one task.
    """

    def __init__(self, api: BotApi) -> None:
        self._api = api

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Return the answer.

        Raises:
            httpx.ReadTimeout: It did not come in time.
            httpx.ConnectError: The connection failed before anything was done.
            httpx.ReadError: The connection failed afterwards.
        """
        exchange = _MemoryExchange(request, await request.aread())
        with anyio.move_on_after(request.extensions.get("timeout", {}).get("read")) as patience:
            await self._api(exchange.scope, exchange.receive, exchange.send)
        if patience.cancelled_caught:
            raise httpx.ReadTimeout("no answer in time", request=request)
        return exchange.response()


class _MemoryExchange:
    def __init__(self, request: httpx.Request, body: bytes) -> None:
        self.scope: Scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": request.method,
            "scheme": request.url.scheme,
            "path": request.url.path,
            "query_string": request.url.query,
            "headers": [(name.lower(), value) for name, value in request.headers.raw],
            "extensions": {BREAK_OFF: {}},
        }
        self._request = request
        self._body = body
        self._start: Message = {}
        self._content = b""
        self._failed: Message = {}

    async def receive(self) -> Message:
        return {"type": "http.request", "body": self._body}

    async def send(self, message: Message) -> None:
        match message["type"]:
            case "http.response.start":
                self._start = message
            case "http.response.body":
                self._content += message["body"]
            case _:
                self._failed = message

    def response(self) -> httpx.Response:
        if self._failed:
            if self._failed["before"]:
                raise httpx.ConnectError("all connection attempts failed", request=self._request)
            raise httpx.ReadError("connection reset by peer", request=self._request)
        return httpx.Response(
            self._start["status"],
            headers=self._start["headers"],
            content=self._content,
            request=self._request,
        )


def client(api: BotApi) -> httpx.AsyncClient:
    """Return a client that reaches the server in memory, whatever the host of an address.

    It works on both event loops, and in virtual time.
    """
    return httpx.AsyncClient(transport=MemoryTransport(api), base_url="https://api.telegram.org")


@contextmanager
def serving(api: BotApi) -> Generator[str]:
    """Serve on a free loopback port, by a thread of its own; return the address of the server.

    For clients that need a real socket: those for asyncio only, and other processes.
    """
    listener = socket.create_server(("127.0.0.1", 0))
    port: int = listener.getsockname()[1]
    server = _Server(api)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name=f"Bot API, port {port}")
    thread.start()
    try:
        server.up.wait()
        yield f"http://127.0.0.1:{port}"
    finally:
        server.stop()
        thread.join()


class _Server(uvicorn.Server):
    def __init__(self, api: BotApi) -> None:
        config = uvicorn.Config(
            self._answer,
            interface="asgi3",
            loop="asyncio",
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
        )
        super().__init__(config)
        self.up = threading.Event()
        self._api = api
        self._running: set[anyio.CancelScope] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, *args: Any, **options: Any) -> None:
        import asyncio

        self._loop = asyncio.get_running_loop()
        await super().startup(*args, **options)
        self.up.set()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        with anyio.CancelScope() as running:
            self._running.add(running)
            try:
                await self._api(scope, receive, send)
            finally:
                self._running.remove(running)

    def stop(self) -> None:
        """End requests that wait, and the server."""
        assert self._loop is not None, "it is up"
        self._loop.call_soon_threadsafe(self._stop)

    def _stop(self) -> None:
        self.should_exit = True
        for running in self._running:
            running.cancel()
