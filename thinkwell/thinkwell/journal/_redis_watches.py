"""Who waits for which run, and what is known of it here."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import anyio

if TYPE_CHECKING:
    from collections.abc import Iterator

LINGER: Final = 60.0
"""Seconds for which a run that is not waited for is listened to: mostly it is only being read."""


class Watch:
    """A run that is waited for."""

    def __init__(self) -> None:
        self.last = 0
        """Number of the last entry, as far as is known."""
        self.over = False
        """Whether the run has ended, or is gone."""
        self.local = False
        """Whether it belongs to this process, which then knows without being told."""
        self.wanted = False
        """Whether the listener knows of it."""
        self.stale = True
        """Whether something may have been missed. Then Redis is to be asked, once."""
        self.waiting = 0
        self.unused_since = 0.0
        self._news: anyio.Event | None = None

    def ring(self) -> None:
        """Let all that wait look again."""
        if self._news is not None:
            self._news.set()
            self._news = None

    def learn(self, last: int, *, over: bool) -> None:
        """Take in how far the run is."""
        if last > self.last or over:
            self.last = max(last, self.last)
            self.over = over or self.over
            self.ring()

    def doubt(self) -> None:
        """Something may have been missed."""
        self.stale = True
        self.ring()

    def disown(self) -> None:
        """It belongs to this process no more."""
        self.local = self.wanted = False
        self.doubt()

    async def wait(self) -> None:
        """Wait for news."""
        if self._news is None:
            self._news = anyio.Event()
        await self._news.wait()


class Watches:
    """The runs that are waited for, or were a short time ago."""

    def __init__(self) -> None:
        self._watches: dict[str, Watch] = {}
        self._next_tidying = 0.0

    def __iter__(self) -> Iterator[tuple[str, Watch]]:
        return iter(self._watches.items())

    def get(self, run_id: str) -> Watch | None:
        """Return what is known of a run that is waited for."""
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
