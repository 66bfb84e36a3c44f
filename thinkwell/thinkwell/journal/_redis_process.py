"""A process among those that use the same Redis: its lease, its runs, and its messages.

Two threads work for it: one listens, one renews the lease. They are not tasks: redis-py's asynchronous client
is for asyncio only, and a blocked event loop must not cost a process its runs.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

import anyio
import anyio.to_thread
from anyio.lowlevel import current_token

from thinkwell.journal import _redis_scripts as scripts
from thinkwell.journal._errors import JournalError
from thinkwell.journal._event_loop import call_soon
from thinkwell.journal._redis_asking import Asker
from thinkwell.journal._redis_calls import TO, Calls
from thinkwell.journal._redis_link import as_text
from thinkwell.journal._redis_listener import LONGEST_PAUSE, Listener
from thinkwell.journal._watch import Watch

if TYPE_CHECKING:
    from collections.abc import Callable

    from thinkwell.journal._redis_link import RedisLink

POLL: Final = 15.0
"""Seconds after which a waiting task checks for itself, in case a message was lost."""

OPENING: Final = 5.0
"""Seconds for which `open` tries to reach Redis: an early error is better than silence."""

LINGER: Final = 60.0
"""Seconds for which a run without a waiting task is still watched: mostly it is only being read."""

JOIN: Final = 1.0
"""Seconds for a thread to end. One that waits for a dead connection ends later, by its timeout."""

CHANGED: Final = "changed:"

logger = logging.getLogger("thinkwell")


class _Watch(Watch):
    """A run of any process, with waiting tasks now or a short time ago."""

    def __init__(self, *, local: bool) -> None:
        super().__init__()
        self.local = local
        """Whether it belongs to this process, which then needs no messages."""
        self.wanted = local
        """Whether the listener watches it, or need not."""
        self.stale = True
        """Whether a message may have been missed. Then Redis is asked once."""
        self.waiting = 0
        self.unused_since = 0.0

    def doubt(self) -> None:
        """Note that a message may have been missed."""
        self.stale = True
        self.ring()

    def disown(self) -> None:
        """Note that it does not belong to this process, or no longer."""
        if self.local:
            self.local = self.wanted = False
            self.doubt()


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
        self._watches: dict[str, _Watch] = {}
        self._next_tidying = 0.0
        self._loop: Any = current_token().native_token
        self._closing = False
        self._own = link.channel(TO + self.owner)
        self._changed = link.channel(CHANGED)
        self._stopping = threading.Event()
        self._listener = Listener(
            link, self._own, patience=timeout, stopping=self._stopping, on_heard=self._hear
        )
        self._listening = threading.Thread(target=self._listener.run, name="thinkwell listener", daemon=True)
        self._renewing = threading.Thread(target=self._renew, name="thinkwell lease", daemon=True)

    async def start(self) -> None:
        """Get a lease, and start renewing it and listening.

        Raises:
            JournalError: Redis cannot be reached.
        """
        await self.asker.read(scripts.RENEW, self.owner, self.lease, patience=min(OPENING, self._patience))
        await self._check_policy()
        self._renewing.start()
        self._listening.start()

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
        for watch in self._watches.values():
            watch.ring()
        await self.asker.close()
        self._stopping.set()
        await anyio.to_thread.run_sync(self._renewing.join, JOIN)  # or it might renew the lease afterwards
        with suppress(JournalError):  # otherwise it ends by itself
            await self.asker.read(scripts.RELEASE, self.owner)
            await self.asker.send(TO + self.owner, b"")
        await anyio.to_thread.run_sync(self._listening.join, JOIN)
        await anyio.to_thread.run_sync(self._link.close)

    def _renew(self) -> None:
        """Renew the lease, without which others take the runs, as long as there is an event loop."""
        pause = third = self.lease / 3000
        while not self._stopping.wait(pause) and self._call_soon(_nothing):
            pause = third
            try:
                known = self._link.run(scripts.RENEW, self.owner, self.lease)
            except JournalError:  # the listener reports it
                pause = min(LONGEST_PAUSE, third)
            else:
                if not known:
                    self._call_soon(self._lose_all)

    # Messages

    def _hear(self, channel: bytes, data: bytes | None) -> None:
        """Take a message, in the thread of the listener."""
        self._call_soon(partial(self._take, channel, data))

    def _call_soon(self, function: Callable[[], None]) -> bool:
        """Call a function in the event loop, and return whether there still is one."""
        try:
            call_soon(self._loop, function)
        except RuntimeError:
            return False
        return True

    def _lose_all(self) -> None:
        for watch in self._watches.values():
            watch.disown()

    def _take(self, channel: bytes, data: bytes | None) -> None:
        if channel != self._own:
            self._take_news(channel, data)
            self._tidy()
        elif data is not None and not self._closing:
            self.calls.take(data)

    def _take_news(self, channel: bytes, data: bytes | None) -> None:
        watch = self._watches.get(as_text(channel.removeprefix(self._changed)))
        if watch is None:  # pragma: no cover - it was on its way when the wait ended
            return
        if data is None:  # earlier messages were missed
            watch.doubt()
        elif data.isdigit():
            watch.learn(int(data))
        else:
            watch.learn(0, over=data == b"over")

    def _tidy(self) -> None:
        """Stop listening, now and then, for runs that no task has waited for in some time."""
        now = time.monotonic()
        if now < self._next_tidying:
            return
        self._next_tidying = now + LINGER / 10
        for run_id, watch in list(self._watches.items()):
            if not watch.waiting and (watch.over or now - watch.unused_since > LINGER):
                del self._watches[run_id]
                self._listener.unwant(self._link.channel(CHANGED + run_id))

    # Waiting

    async def wait(self, run_id: str, after: int) -> None:
        """Wait until a run has an entry after a number, or is over, or the journal is closed."""
        watch = self._watches.get(run_id)
        if watch is None:
            self._tidy()
            watch = self._watches[run_id] = _Watch(local=run_id in self.mine)
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
        if watch is not None:
            watch.disown()

    async def _look(self, run_id: str, watch: _Watch) -> None:
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
