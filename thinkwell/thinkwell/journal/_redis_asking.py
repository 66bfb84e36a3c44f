"""Sends commands to Redis without blocking the event loop, and again while it cannot be reached."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

import anyio
import anyio.to_thread
from anyio.lowlevel import checkpoint

from thinkwell.journal._errors import JournalError
from thinkwell.journal._redis_link import RedisAway
from thinkwell.journal._redis_listener import FIRST_PAUSE, LONGEST_PAUSE

if TYPE_CHECKING:
    from collections.abc import Callable

    from thinkwell.journal._redis_link import RedisLink, Reply

T = TypeVar("T")

THREADS: Final = 16
"""Threads for reading, and as many for writing: the most connections to Redis."""


class Asker:
    """Sends commands to Redis, in its own threads.

    Args:
        link: The connection to Redis.
        patience: Seconds for which a command is repeated.
    """

    def __init__(self, link: RedisLink, patience: float) -> None:
        self._link = link
        self._patience = patience
        self._readers = anyio.CapacityLimiter(THREADS)
        self._writers = anyio.CapacityLimiter(THREADS)
        self._changes = 0
        self._unchanging = anyio.Event()
        self._closing = False

    async def read(self, script: str, *args: str | bytes | float, patience: float | None = None) -> Reply:
        """Run a script that may run any number of times. A cancelled caller does not wait for it.

        Raises:
            JournalError: Redis cannot be reached, or it failed.
        """
        return await self._try(lambda _: self._link.run(script, *args), patience=patience)

    async def change(self, script: str, *args: str | bytes | float) -> Reply:
        """Run a script whose first argument says that it may have run before.

        A cancelled caller still waits for it, and gets its outcome.

        Raises:
            JournalError: Redis cannot be reached, or it failed.
        """
        await checkpoint()
        self._changes += 1
        reply: Reply = None
        try:
            with anyio.CancelScope(shield=True):
                reply = await self._try(lambda again: self._link.run(script, int(again), *args), changes=True)
        finally:
            self._changes -= 1
            if not self._changes:
                self._unchanging.set()
                self._unchanging = anyio.Event()
        return reply

    async def send(self, channel: str, data: bytes) -> None:
        """Send a message to the current listeners of a channel.

        Raises:
            JournalError: Redis cannot be reached.
        """
        await self._try(lambda _: self._link.publish(channel, data))

    async def close(self) -> None:
        """Wait for running changes. Nothing is repeated from now on."""
        self._closing = True
        while self._changes:
            await self._unchanging.wait()

    async def _try(
        self, do: Callable[[bool], T], *, changes: bool = False, patience: float | None = None
    ) -> T:
        patience = self._patience if patience is None else patience
        pause, until, again = FIRST_PAUSE, anyio.current_time() + patience, False
        while True:
            try:
                return await anyio.to_thread.run_sync(
                    do,
                    again,
                    abandon_on_cancel=not changes,
                    limiter=self._writers if changes else self._readers,
                )
            except RedisAway as exc:
                if self._closing:
                    raise JournalError(exc.where, exc.reason) from None
                if anyio.current_time() + pause > until:
                    raise JournalError(exc.where, f"{exc.reason} (tried for {patience:g} s)") from None
            await anyio.sleep(pause)
            pause, again = min(LONGEST_PAUSE, pause * 2), True
