"""Ways to reach a `BotApi`: in memory, or on a loopback port."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    import httpx

    from bot_api.server import BotApi


def client(api: BotApi) -> httpx.AsyncClient:
    """Return a client that reaches the server in memory, whatever the host of an URL; timeouts hold.

    It works on both event loops and in virtual time. A request that is cancelled is cancelled on the server.
    """
    raise NotImplementedError


def serving(api: BotApi) -> AbstractContextManager[str]:
    """Serve on a free loopback port, by a thread of its own, for the time of a block; return the base URL.

    For clients that need a real socket: asyncio only ones, and other processes.
    """
    raise NotImplementedError
