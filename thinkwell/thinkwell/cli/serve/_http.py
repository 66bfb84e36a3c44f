"""The HTTP server of ``thinkwell serve``: its port, its connections, its end, and its log of requests.

uvicorn answers when there are too many connections, and has no time limit: by itself it never drops clients
that send nothing, or one header per minute (slow loris).
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import sys
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final, cast

import anyio
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from thinkwell._core.exit import background_tasks
from thinkwell._display.text import line

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from starlette.types import ASGIApp, Message, Receive, Scope, Send
    from uvicorn.protocols.http.h11_impl import RequestResponseCycle
    from uvicorn.server import ServerState

__all__ = ("HttpServer", "ListenError", "listen", "make_room")

HEAD_TIME: Final = 20.0
"""Seconds from the connection, or the last answer, until the head of a request must have come. The limit for
its body comes later."""

TOLD: Final = 64
"""Most connections that get the answer that there are too many. More are closed at once: each is an open
file, and agents need some."""


ANSWERING: Final = 2.0
"""Seconds that requests get to be answered after a signal. Streams of events end at once."""

LETTING_GO: Final = 0.5
"""Seconds that they get where no client is left."""

LONGEST_PATH: Final = 200
"""Characters of a path that are noted."""

RESERVE: Final = 256
"""Files that are needed for other things than connections: agents, the journal, modules."""

BACKLOG: Final = 1024
"""Most connections that wait to be accepted."""

_ABSENT: Final = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})
"""The message about an address that this machine does not have, such as one of IPv6 without IPv6."""

logger = logging.getLogger("thinkwell")


class ListenError(OSError):
    """Listening is not possible there. The message says why, and what to do."""


def listen(host: str, port: int) -> list[socket.socket]:
    """Return sockets that listen on a port: one for each address of a name on this machine.

    Args:
        host: A name or an address.
        port: The port; 0: any that is free.

    Raises:
        ListenError: The address does not exist, or the port is taken.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise ListenError(f"there is no host {host}; give --host an address of this machine") from None
    sockets: list[socket.socket] = []
    absent: OSError | None = None
    with ExitStack() as opened:
        for family, address in dict.fromkeys((family, address) for family, _, _, _, address in found):
            try:
                # Marked as TCP: only then does asyncio send data at once (TCP_NODELAY), without waiting some
                # 40 ms for more.
                own = opened.enter_context(socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP))
                _prepare(own)
                own.bind((address[0], port, *address[2:]))
                own.listen(BACKLOG)
            except OSError as exc:
                if exc.errno not in _ABSENT:
                    raise ListenError(_words(exc, host, port)) from None
                absent = exc
                continue
            port = own.getsockname()[1]  # the same for all addresses
            sockets.append(own)
        if absent is not None and not sockets:
            raise ListenError(f"this machine has no address {host}; give --host one that it has") from None
        opened.pop_all()
    return sockets


def _prepare(own: socket.socket) -> None:
    if sys.platform == "win32":
        own.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)  # on Windows, reuse means sharing
    else:
        own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # despite connections that just ended
    if own.family == socket.AF_INET6:
        own.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    own.setblocking(False)


def _words(error: OSError, host: str, port: int) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return (
                f"port {port} of {host} is taken by another program, maybe by another thinkwell serve. End "
                f"that, or give another one: --port {port - 1 if port == 65_535 else port + 1}, or 0 for any"
            )
        case errno.EACCES:
            return (
                f"port {port} of {host} needs administrator rights; give one from 1024 on, such as "
                "--port 8283"
            )
        case _:
            return f"it cannot be listened on port {port} of {host}: {error.strerror}"


def make_room(connections: int) -> int:
    """Raise this process's limit of open files for so many connections; return how many it can have."""
    if sys.platform == "win32":
        return connections
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + RESERVE
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        return max(1, soft - RESERVE)
    return connections


class HttpServer(uvicorn.Server):
    """A server for an application. It leaves signals to us.

    Args:
        app: The application.
        connections: The limit of connections.
        ready: Called once it takes connections.
        noted: Whether to log each request.
    """

    def __init__(self, app: ASGIApp, connections: int, ready: Callable[[], None], *, noted: bool) -> None:
        config = uvicorn.Config(
            _Noted(app) if noted else app,
            http=_Connection,
            lifespan="off",  # the server of runs is entered already
            ws="none",
            log_config=None,
            access_log=False,  # it contains queries
            proxy_headers=False,  # the guard trusts only the configured proxies
            server_header=False,
            limit_concurrency=connections,
        )
        super().__init__(config)
        self.servers = []  # unset until it listens
        self._ready = ready

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Capture no signals: see `Ending`."""
        yield

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until the end. If the wait for the end is cancelled, all clients are still disconnected."""
        try:
            await super().serve(sockets)
        finally:
            for listener in self.servers:
                listener.close()
            self._break_off()
            if self.server_state.tasks:
                with anyio.CancelScope(shield=True):
                    await asyncio.wait(self.server_state.tasks, timeout=LETTING_GO)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to take connections."""
        await super().startup(sockets)
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End after the current requests are answered."""
        async with background_tasks() as tasks:
            tasks.start_soon(self._break_off_late)
            await super().shutdown(sockets)

    async def _break_off_late(self) -> None:
        await anyio.sleep(ANSWERING)
        self._break_off()

    def _break_off(self) -> None:
        """Disconnect all clients. Their requests are told, and end."""
        for connection in tuple(self.server_state.connections):
            connection.transport.abort()


class _Noted:
    """Logs each request, without its query and body. It is an ASGI middleware."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                path = line(scope["path"], LONGEST_PATH)  # it may contain line ends
                logger.info("%s %s: %s", scope["method"], path, message["status"])
            await send(message)

        await self._app(scope, receive, noted)


class _Connection(H11Protocol):
    """One connection. It reads HTTP with h11 whatever else is installed: its limits are known."""

    head_time = HEAD_TIME

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, object],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start to wait for a request, if there is room for one more connection."""
        super().connection_made(transport)
        most = self.config.limit_concurrency
        if most is not None and len(self.connections) > most + TOLD:
            transport.abort()
        else:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the wait."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Stop the wait if the head is complete."""
        super().data_received(data)
        if self._is_asked:
            self._stop_waiting()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()  # which may start a request that came meanwhile
        self._stop_waiting()
        if not self._is_asked:
            self._wait()

    @property
    def _is_asked(self) -> bool:
        """Whether a request is being answered."""
        cycle = cast("RequestResponseCycle | None", self.cycle)  # None before the first request
        return cycle is not None and not cycle.response_complete

    def _wait(self) -> None:
        self._waiting = self.loop.call_later(self.head_time, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
