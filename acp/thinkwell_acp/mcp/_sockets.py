"""Accepting connections without ending the listener on errors, and reading from them."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, Any, Protocol

import anyio
from anyio.abc import Listener, SocketAttribute, SocketListener, SocketStream

from thinkwell_acp._forks import socket_let_go_in_forks

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

MAX_CONNECTIONS = 256
"""Most open connections. Further ones are closed at once."""
ACCEPT_PAUSE = 0.1
"""Seconds to wait if the system has no file descriptor left for a connection."""

logger = logging.getLogger("thinkwell.acp")


class Stream(Protocol):
    """Carries bytes both ways."""

    async def receive(self) -> bytes:
        """Return the next bytes, at least one.

        Raises:
            anyio.EndOfStream, anyio.BrokenResourceError: The connection has ended.
        """
        ...

    async def send(self, item: bytes, /) -> None:
        """Send all the bytes.

        Raises:
            anyio.BrokenResourceError: The other side has closed.
        """
        ...


class UnixStream:
    """A Unix socket whose reader may be cancelled at any time.

    With asyncio, anyio's own stream leaves an exception to the event loop if it is cancelled at the moment
    when bytes arrive: this happens here when a program ends together with its session.

    Args:
        stream: The connection.
    """

    def __init__(self, stream: SocketStream) -> None:
        self._stream = stream
        self._socket = stream.extra(SocketAttribute.raw_socket)  # noqa: S610 - no Django

    async def receive(self) -> bytes:
        """Return the next bytes."""
        await anyio.wait_readable(self._socket)
        return await self._stream.receive()

    async def send(self, item: bytes, /) -> None:
        """Send all the bytes."""
        await self._stream.send(item)


async def accept_forever(
    listener: Listener[SocketStream],
    serve: Callable[[SocketStream], Awaitable[None]],
    max_connections: int = MAX_CONNECTIONS,
) -> None:
    """Serve every connection in its own task, until cancelled. An exception ends only its connection."""
    assert isinstance(listener, SocketListener)
    count = 0

    async def run(stream: SocketStream) -> None:
        nonlocal count
        count += 1
        try:
            async with stream:
                raw = stream.extra(SocketAttribute.raw_socket)  # noqa: S610 - no Django
                with socket_let_go_in_forks(raw.fileno):
                    if count <= max_connections:
                        await serve(stream)
        except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            logger.debug("an MCP client left")
        except Exception:  # pragma: no cover - that would be a defect of this package
            logger.warning("a connection of an MCP client failed", exc_info=True)
        finally:
            count -= 1

    raw = listener.extra(SocketAttribute.raw_socket)  # noqa: S610 - no Django
    with socket_let_go_in_forks(raw.fileno):
        await _accept(listener, run)


async def _accept(listener: SocketListener, run: Callable[[SocketStream], Coroutine[Any, Any, None]]) -> None:
    process = os.getpid()
    async with anyio.create_task_group() as tasks:
        while True:
            try:
                stream = await listener.accept()
            except (OSError, anyio.BrokenResourceError) as exc:  # the same error on asyncio and on trio
                if os.getpid() != process:
                    return  # pragma: no cover - in a fork, into which no tool looks
                logger.warning("cannot accept an MCP client: %s", exc)
                await anyio.sleep(ACCEPT_PAUSE)
                continue
            tasks.start_soon(run, stream)
