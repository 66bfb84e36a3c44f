"""Those who watch a run: each reads its log at a pace of his own, and only what the journal has.

Whoever keeps up reads from a window in memory that all of them share, with frames made once; whoever falls
behind it reads the journal. Nobody waits for anybody.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from typing import TYPE_CHECKING, Final

import anyio
from anyio.lowlevel import checkpoint

from thinkwell.web._records import is_end

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkwell.journal import Entry, Journal, RunRecord

__all__ = ("Batch", "Tail", "Watcher")

WINDOW: Final = 256 * 1024
"""Bytes of a run's last entries that are kept in memory for those who keep up. Always the last batch."""


class Batch:
    """Entries of a run that follow each other; at least one."""

    __slots__ = ("_sse", "entries")

    def __init__(self, entries: tuple[Entry, ...]) -> None:
        self.entries = entries
        self._sse: bytes | None = None

    @property
    def last(self) -> int:
        """Number of the last entry."""
        return self.entries[-1].seq

    @property
    def size(self) -> int:
        """Bytes of the entries."""
        return sum(len(entry.data) for entry in self.entries)

    @property
    def sse(self) -> bytes:
        """The entries as server-sent events, made once for all who watch."""
        if self._sse is None:
            self._sse = b"".join(map(_frame, self.entries))
        return self._sse

    def after(self, seq: int) -> Batch:
        """Return what is behind a number, which is below the last one."""
        entries = self.entries
        if seq < entries[0].seq:
            return self
        return Batch(entries[bisect_right(entries, seq, key=_seq_of) :])


class Tail:
    """The end of a run's log, as those who watch it in this process share it.

    Args:
        last: Number of the entry behind which it begins.
    """

    def __init__(self, last: int = 0) -> None:
        self.last = last
        """Number of the last entry."""
        self.over = False
        """Whether nothing more comes: the end is there, or the server closes."""
        self._begin = last
        """Number of the entry behind which the window begins."""
        self._window: deque[Batch] = deque()
        self._size = 0
        self._changed: anyio.Event | None = None

    def push(self, entries: Sequence[Entry]) -> None:
        """Add entries that the journal has, and wake those who wait."""
        batch = Batch(tuple(entries))
        self._window.append(batch)
        self._size += batch.size
        self.last = batch.last
        while self._size > WINDOW and len(self._window) > 1:
            gone = self._window.popleft()
            self._size -= gone.size
            self._begin = gone.last
        self.over = self.over or is_end(batch.entries[-1])
        self._wake()

    def close(self) -> None:
        """Let nobody wait any longer."""
        self.over = True
        self._wake()

    def has(self, seq: int) -> bool:
        """Return whether all that is behind a number is in the window."""
        return seq >= self._begin

    def after(self, seq: int) -> Batch | None:
        """Return what comes behind a number that the window has; ``None``: nothing yet."""
        if seq >= self.last:
            return None
        window = self._window
        if window[-1].entries[0].seq <= seq + 1:  # nearly always
            return window[-1].after(seq)
        return next(batch for batch in window if batch.last > seq).after(seq)

    async def wait(self) -> None:
        """Wait for news."""
        if self._changed is None:
            self._changed = anyio.Event()
        await self._changed.wait()

    def _wake(self) -> None:
        if self._changed is not None:
            self._changed.set()
            self._changed = None


class Watcher:
    """One who watches a run. Made by `RunServer.watch`."""

    def __init__(self, journal: Journal, record: RunRecord, tail: Tail | None, after: int) -> None:
        self.record = record
        """What was known of the run when he came."""
        self.ended = record.ended is not None and after >= record.last_seq
        """Whether he has everything, the end included."""
        self._journal = journal
        self._tail = tail
        self._seq = max(after, 0)
        self._closed = False

    @property
    def seq(self) -> int:
        """Number of the last entry that he has."""
        return self._seq

    @property
    def shares(self) -> bool:
        """Whether he shares the end of the log with others."""
        return self._tail is not None

    def close(self) -> None:
        """Give him nothing more."""
        self._closed = True

    async def next(self) -> Batch | None:
        """Wait for entries, and take them. Cancelling loses none.

        Returns:
            ``None``: everything was given (`ended`), or the server closes, or the run was deleted.

        Raises:
            JournalError: The journal cannot be read.
        """
        while not (self.ended or self._closed):
            await checkpoint()
            batch = await self._look()
            if batch is not None:
                self._seq = batch.last
                self.ended = is_end(batch.entries[-1])
                return batch
        return None

    async def _look(self) -> Batch | None:
        tail = self._tail
        if tail is None or not tail.has(self._seq):
            entries = await self._journal.read(self.record.id, self._seq)
            if entries:
                return Batch(tuple(entries))
            self._closed = True  # it was deleted, or there is no such number
            return None
        batch = tail.after(self._seq)
        if batch is None:
            if tail.over:
                self._closed = True
            else:
                await tail.wait()
        return batch


def _frame(entry: Entry) -> bytes:
    name = b"event: end\n" if is_end(entry) else b""
    return b"id: %d\n%sdata: %s\n\n" % (entry.seq, name, entry.data)


def _seq_of(entry: Entry) -> int:
    return entry.seq
