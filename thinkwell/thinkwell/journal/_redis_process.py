"""A process among those that use the same Redis: its lease, its runs, and its messages."""

from __future__ import annotations

import logging
import secrets
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Literal, cast

import anyio
import anyio.to_thread
from anyio.lowlevel import current_token

from thinkwell.journal import _redis_scripts as scripts
from thinkwell.journal._errors import JournalError
from thinkwell.journal._event_loop import call_soon
from thinkwell.journal._redis_asking import Asker
from thinkwell.journal._redis_calls import TO, Calls
from thinkwell.journal._redis_link import as_text
from thinkwell.journal._redis_threads import LeaseKeeper, Listener
from thinkwell.journal._redis_watches import Watches

if TYPE_CHECKING:
    from collections.abc import Callable

    from thinkwell.journal._redis_link import RedisLink
    from thinkwell.journal._redis_threads import Heard
    from thinkwell.journal._redis_watches import Watch

POLL: Final = 15.0
"""Seconds after which a waiting task checks for itself, in case a message was lost."""

OPENING: Final = 5.0
"""Seconds for which `open` tries to reach Redis: an early error is better than silence."""

CHANGED: Final = "changed:"

logger = logging.getLogger("thinkwell")


class RedisProcess:
    """One process, while its journal is open.

    Args:
        link: The connection to Redis.
        lease: Seconds without news of it after which its runs may be taken.
        patience: Seconds for which commands are repeated.
        timeout: Seconds of silence after which the connection is tested.
    """

    def __init__(self, link: RedisLink, *, lease: float, patience: float, timeout: float) -> None:
        self.owner = secrets.token_hex(8)
        self.lease = max(1, round(lease * 1000))
        """In milliseconds."""
        self.asker = Asker(link, patience)
        self.calls = Calls(self.owner, self.asker, link)
        self.mine: set[str] = set()
        """The runs that this process knows to be its own."""
        self._link = link
        self._patience = patience
        self._watches = Watches()
        self._loop: Any = current_token().native_token
        self._inbox: deque[Heard | Literal["lost"]] = deque()
        self._is_rung = False
        self._closing = False
        self._own = link.channel(TO + self.owner)
        self._changed = link.channel(CHANGED)
        self._keeper = LeaseKeeper(
            link, self.owner, lease, is_needed=self._has_loop, on_lost=lambda: self._hear("lost")
        )
        self._listener = Listener(link, self._own, patience=timeout, on_heard=self._hear)

    async def start(self) -> None:
        """Get a lease, and start renewing it and listening.

        Raises:
            JournalError: Redis cannot be reached.
        """
        await self.asker.read(scripts.RENEW, self.owner, self.lease, patience=min(OPENING, self._patience))
        await self._check_policy()
        self._keeper.start()
        self._listener.start()

    async def _check_policy(self) -> None:
        """Warn if Redis deletes runs when its memory is full. It may refuse to say."""
        with suppress(JournalError):
            policy = cast("bytes | None", await self.asker.read(scripts.POLICY, patience=0))
            if policy is not None and policy.startswith(b"allkeys"):
                about = "%s: its maxmemory-policy is %s, so it may delete runs; set noeviction"
                logger.warning(about, self._link.where, policy.decode())

    async def close(self) -> None:
        """End all waits; give up the lease when running changes are stored."""
        self._closing = True
        self.calls.close()
        for _, watch in self._watches:
            watch.ring()
        await self.asker.close()
        self._keeper.stop()
        self._listener.stop()
        await anyio.to_thread.run_sync(self._keeper.join)  # otherwise it might renew the lease afterwards
        with suppress(JournalError):  # otherwise it ends by itself
            await self.asker.read(scripts.RELEASE, self.owner)
            await self.asker.send(TO + self.owner, b"")
        await anyio.to_thread.run_sync(self._end)

    def _end(self) -> None:
        self._listener.join()
        self._link.close()

    # Messages

    def _hear(self, heard: Heard | Literal["lost"]) -> None:
        """Take a message, in another thread."""
        self._inbox.append(heard)
        if not self._is_rung:
            self._is_rung = True
            self._call_soon(self._take_all)

    def _call_soon(self, function: Callable[[], None]) -> bool:
        """Call a function in the event loop, and return whether there still is one."""
        try:
            call_soon(self._loop, function)
        except RuntimeError:
            return False
        return True

    def _has_loop(self) -> bool:
        return self._call_soon(_nothing)

    def _take_all(self) -> None:
        self._is_rung = False  # before the inbox is emptied: a message that comes now rings again
        while self._inbox:
            self._take(self._inbox.popleft())
        self._tidy()

    def _take(self, heard: Heard | Literal["lost"]) -> None:
        if heard == "lost":
            for _, watch in self._watches:
                if watch.local:
                    watch.disown()
        else:
            channel, data = heard
            if channel != self._own:
                self._take_news(channel, data)
            elif data is not None and not self._closing:
                self.calls.take(data)

    def _take_news(self, channel: bytes, data: bytes | None) -> None:
        watch = self._watches.get(as_text(channel.removeprefix(self._changed)))
        if watch is None:  # pragma: no cover - it was on its way when the wait ended
            return
        if data is None:  # earlier messages were missed
            watch.doubt()
        elif data.isdigit():
            watch.learn(int(data), over=False)
        else:
            watch.learn(0, over=data == b"over")

    def _tidy(self) -> None:
        """Stop listening for runs without a waiting task."""
        for run_id in self._watches.drop_unused():
            self._listener.unwant(self._link.channel(CHANGED + run_id))

    # Waiting

    async def wait(self, run_id: str, after: int) -> None:
        """Wait until a run has an entry after a number, or is over, or the journal is closed."""
        watch = self._watches.get(run_id)
        if watch is None:
            self._tidy()
            watch = self._watches.add(run_id)
            watch.local = watch.wanted = run_id in self.mine
        watch.waiting += 1
        try:
            while not (self._closing or watch.over or watch.last > after):
                if watch.stale:
                    await self._look(run_id, watch)
                elif not watch.wanted:
                    watch.wanted = True
                    self._listener.want(self._link.channel(CHANGED + run_id))
                    await self._wake_listener()
                else:
                    with anyio.move_on_after(POLL) as waiting:
                        await watch.wait()
                    if waiting.cancelled_caught:
                        watch.stale = True
        finally:
            watch.waiting -= 1
            watch.unused_since = time.monotonic()

    def learn(self, run_id: str, last: int, *, over: bool) -> None:
        """Note the last entry of a run of this process."""
        watch = self._watches.get(run_id)
        if watch is not None:
            watch.learn(last, over=over)

    def lose(self, run_id: str) -> None:
        """Note that a run was taken from this process."""
        self.mine.discard(run_id)
        watch = self._watches.get(run_id)
        if watch is not None and watch.local:
            watch.disown()

    async def _look(self, run_id: str, watch: Watch) -> None:
        """Ask Redis for the last entry of a run. Only one of the waiting tasks does that."""
        watch.stale = False
        try:
            status, last = cast("list[bytes | None]", await self.asker.read(scripts.PEEK, run_id))
        except BaseException:
            watch.doubt()
            raise
        watch.learn(int(last or 0), over=status != b"running")

    async def _wake_listener(self) -> None:
        with suppress(JournalError):  # without a connection, or it checks soon
            await self.asker.send(TO + self.owner, b"")


def _nothing() -> None:
    """Note that the event loop can be reached."""
