"""The waiting tasks of each run, and the local state of the runs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import anyio

if TYPE_CHECKING:
    from collections.abc import Iterator

LINGER: Final = 60.0
"""Seconds for which a run without a waiting task is still watched: mostly it is only being read."""


class Watch:
    """A run with waiting tasks."""

    def __init__(self) -> None:
        self.last = 0
        """Number of the last known entry."""
        self.over = False
        """Whether the run has ended or was deleted."""
        self.local = False
        """Whether it belongs to this process, which then needs no messages."""
        self.wanted = False
        """Whether the listener watches it."""
        self.stale = True
        """Whether a message may have been missed. Then Redis is asked once."""
        self.waiting = 0
        self.unused_since = 0.0
        self._news: anyio.Event | None = None

    def ring(self) -> None:
        """Wake all waiting tasks."""
        if self._news is not None:
            self._news.set()
            self._news = None

    def learn(self, last: int, *, over: bool) -> None:
        """Note the last entry of the run."""
        if last > self.last or over:
            self.last = max(last, self.last)
            self.over = over or self.over
            self.ring()

    def doubt(self) -> None:
        """Note that a message may have been missed."""
        self.stale = True
        self.ring()

    def disown(self) -> None:
        """Note that it no longer belongs to this process."""
        self.local = self.wanted = False
        self.doubt()

    async def wait(self) -> None:
        """Wait for changes."""
        if self._news is None:
            self._news = anyio.Event()
        await self._news.wait()


class Watches:
    """The runs with waiting tasks, now or a short time ago."""

    def __init__(self) -> None:
        self._watches: dict[str, Watch] = {}
        self._next_tidying = 0.0

    def __iter__(self) -> Iterator[tuple[str, Watch]]:
        return iter(self._watches.items())

    def get(self, run_id: str) -> Watch | None:
        """Return the state of a run with waiting tasks."""
        return self._watches.get(run_id)

    def add(self, run_id: str) -> Watch:
        """Begin with a run."""
        watch = self._watches[run_id] = Watch()
        return watch

    def drop_unused(self) -> list[str]:
        """Forget, now and then, those that were not waited for in some time, and return them."""
        now = time.monotonic()
        if now < self._next_tidying:
            return []
        self._next_tidying = now + LINGER / 10
        unused = [
            run_id
            for run_id, watch in self._watches.items()
            if not watch.waiting and (watch.over or now - watch.unused_since > LINGER)
        ]
        for run_id in unused:
            del self._watches[run_id]
        return unused
