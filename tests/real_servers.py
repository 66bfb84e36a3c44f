"""Applications behind real HTTP servers on the loopback: uvicorn, and hypercorn on both event loops."""

from __future__ import annotations

import logging
import socket
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import anyio
import pytest
import uvicorn
from hypercorn.config import Config

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from anyio.abc import SocketStream

ServerKind: TypeAlias = Literal["uvicorn", "hypercorn-asyncio", "hypercorn-trio"]

SERVERS: Final[tuple[ServerKind, ...]] = ("uvicorn", "hypercorn-asyncio", "hypercorn-trio")

ONE_OR_ALL: Final = ("uvicorn", *(pytest.param(kind, marks=pytest.mark.long) for kind in SERVERS[1:]))
"""Parameters of a fixture: one server, and with the cases that take long each of them."""

ERROR_LOGS: Final = ("uvicorn.error", "hypercorn.error")
"""Where the servers tell of what an application has raised."""


def backend_of(kind: ServerKind) -> str:
    """The event loop that a server runs on: for an ``anyio_backend`` fixture."""
    return "trio" if kind == "hypercorn-trio" else "asyncio"


@dataclass(frozen=True)
class Listening:
    """A server that listens."""

    port: int

    @property
    def url(self) -> str:
        """Its address, without a slash at the end."""
        return f"http://127.0.0.1:{self.port}"

    async def connect(self) -> SocketStream:
        """Open a connection."""
        return await anyio.connect_tcp("127.0.0.1", self.port)


@asynccontextmanager
async def listening(app: Any, kind: ServerKind) -> AsyncGenerator[Listening]:
    """Serve an application, its lifespan included, on the event loop that runs."""
    # Said to be of TCP: only then does asyncio send what is written at once (TCP_NODELAY).
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen(512)
    address = Listening(listener.getsockname()[1])
    if kind == "uvicorn":
        settings = uvicorn.Config(
            app, http="h11", ws="none", log_config=None, lifespan="on", timeout_graceful_shutdown=5
        )
        settings.load()
        server = uvicorn.Server(settings)  # its parts, without the one that takes signals
        server.lifespan = settings.lifespan_class(settings)
        await server.startup(sockets=[listener])
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.main_loop)
            try:
                yield address
            finally:
                server.should_exit = True
                with anyio.CancelScope(shield=True):
                    await server.shutdown(sockets=[listener])
        return
    config = Config()
    config.bind = [f"fd://{listener.detach()}"]
    config.errorlog = logging.getLogger("hypercorn.error")
    over = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_hypercorn, app, config, over, kind)
        try:
            yield address
        finally:
            over.set()


async def _hypercorn(app: Any, config: Config, over: anyio.Event, kind: ServerKind) -> None:
    serve = import_module(kind.replace("-", ".")).serve
    await serve(app, config, shutdown_trigger=over.wait, mode="asgi")
