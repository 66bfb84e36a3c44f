"""Accepting connections so that none of them ends the listener."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import anyio
from anyio.abc import Listener, SocketListener, SocketStream

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

MAX_CONNECTIONS = 256
"""Connections that are open at once. Beyond it new ones are closed at once."""
ACCEPT_PAUSE = 0.1
"""Seconds to wait where the system has no file descriptor left for a connection."""

logger = logging.getLogger("thinkwell.acp")


async def accept_forever(
    listener: Listener[SocketStream],
    serve: Callable[[SocketStream], Awaitable[None]],
    max_connections: int = MAX_CONNECTIONS,
) -> None:
    """Serve every connection in a task of its own, until cancelled. What one raises ends that one only."""
    assert isinstance(listener, SocketListener)
    count = 0

    async def run(stream: SocketStream) -> None:
        nonlocal count
        count += 1
        try:
            async with stream:
                if count <= max_connections:
                    await serve(stream)
        except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            logger.debug("an MCP client went away")
        except Exception:  # pragma: no cover - that would be a defect of this package
            logger.warning("a connection of an MCP client failed", exc_info=True)
        finally:
            count -= 1

    async with anyio.create_task_group() as tasks:
        while True:
            try:
                stream = await listener.accept()
            except (OSError, anyio.BrokenResourceError) as exc:  # the same thing on asyncio and on trio
                logger.warning("cannot accept an MCP client: %s", exc)
                await anyio.sleep(ACCEPT_PAUSE)
                continue
            tasks.start_soon(run, stream)
