"""What a process knows of a run, for its tasks that wait for it."""

from __future__ import annotations

import anyio


class Watch:
    """A run that tasks may wait for."""

    def __init__(self, last: int = 0) -> None:
        self.last = last
        """Number of the last known entry."""
        self.over = False
        """Whether the run has ended or was deleted."""
        self._news: anyio.Event | None = None

    def learn(self, last: int, *, over: bool = False) -> None:
        """Note the last entry of the run."""
        if last > self.last or over:
            self.last = max(last, self.last)
            self.over = over or self.over
            self.ring()

    def ring(self) -> None:
        """Wake all waiting tasks."""
        if self._news is not None:
            self._news.set()
            self._news = None

    async def wait(self) -> None:
        """Wait for changes."""
        if self._news is None:
            self._news = anyio.Event()
        await self._news.wait()
