"""The watchers of a run. Each reads its log at its own pace, and only stored entries.

A watcher that keeps up reads from a window in memory, which all share, with frames that are made once. One
that falls behind reads the journal. No watcher waits for another.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from itertools import takewhile
from typing import TYPE_CHECKING, Final, TypeVar

import anyio
from anyio.lowlevel import checkpoint

from thinkwell.web._records import is_end

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence

    from thinkwell.journal import Entry, Journal, RunRecord

X = TypeVar("X")

WINDOW: Final = 256 * 1024
"""Bytes of a run's last entries in memory, for watchers that keep up. Always the last batch."""

PIECE: Final = 64 * 1024
"""Approximate bytes of entries that a watcher gets at once: each may hold that much while its client is slow.

A longer entry comes alone.
"""


class Batch:
    """Consecutive entries of a run, at least one."""

    __slots__ = ("_sse", "entries")

    def __init__(self, entries: tuple[Entry, ...]) -> None:
        self.entries: tuple[Entry, ...] = entries
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
        """The entries as server-sent events, made once for all watchers."""
        if self._sse is None:
            self._sse = b"".join(map(_frame, self.entries))
        return self._sse

    def after(self, seq: int) -> Batch:
        """Return the entries after a number, which is less than the last one."""
        entries = self.entries
        if seq < entries[0].seq:
            return self
        return Batch(entries[bisect_right(entries, seq, key=lambda entry: entry.seq) :])


class Tail:
    """The end of a run's log, shared by its watchers in this process.

    Args:
        last: Number of the entry after which it begins.
    """

    def __init__(self, last: int = 0) -> None:
        self.last: int = last
        """Number of the last entry."""
        self.over: bool = False
        """Whether nothing more comes: the end is here, or the server is closing."""
        self._begin = last
        """Number of the entry after which the window begins."""
        self._window: deque[Batch] = deque()
        self._size = 0
        self._joined: Batch | None = None
        """The batches for several watchers that are equally late."""
        self._changed: anyio.Event | None = None

    def push(self, entries: Sequence[Entry]) -> None:
        """Add stored entries, and wake the waiting watchers."""
        batch = Batch(tuple(entries))
        self._window.append(batch)
        self._size += batch.size
        self._joined = None
        self.last = batch.last
        while self._size > WINDOW and len(self._window) > 1:
            gone = self._window.popleft()
            self._size -= gone.size
            self._begin = gone.last
        self.over = self.over or is_end(batch.entries[-1])
        self._wake()

    def close(self) -> None:
        """End all waits."""
        self.over = True
        self._wake()

    def has(self, seq: int) -> bool:
        """Return whether the window has everything after a number."""
        return seq >= self._begin

    def after(self, seq: int) -> Batch | None:
        """Return the entries after a number in the window; ``None``: there are none yet."""
        if seq >= self.last:
            return None
        newest = self._window[-1]
        if newest.entries[0].seq <= seq + 1:  # nearly always
            return newest.after(seq)
        if self._joined is None or self._joined.entries[0].seq != seq + 1:
            self._joined = self._join(seq)
        return self._joined

    def _join(self, seq: int) -> Batch:
        """Return the batches after a number as one, up to a size, since each send is expensive."""
        behind = list(takewhile(lambda batch: batch.last > seq, reversed(self._window)))
        first = behind.pop().after(seq)
        entries, size = list(first.entries), first.size
        while behind and (size := size + behind[-1].size) <= PIECE:
            entries += behind.pop().entries
        return Batch(tuple(entries))

    async def wait(self) -> None:
        """Wait for entries."""
        if self._changed is None:
            self._changed = anyio.Event()
        await self._changed.wait()

    def _wake(self) -> None:
        if self._changed is not None:
            self._changed.set()
            self._changed = None


class Watcher:
    """A watcher of a run. Created by `RunServer.watch`."""

    def __init__(self, journal: Journal, record: RunRecord, tail: Tail | None, after: int) -> None:
        self.record = record
        """The state of the run at the start."""
        self.ended: bool = record.ended is not None and after >= record.last_seq
        """Whether it has everything, the end included."""
        self._journal = journal
        self._tail = tail
        self._seq = max(after, 0)
        self._closed = False

    @property
    def seq(self) -> int:
        """Number of its last entry."""
        return self._seq

    def again(self) -> Watcher:
        """Return another watcher of the same run, from its beginning."""
        return Watcher(self._journal, self.record, self._tail, 0)

    def skip(self, seq: int) -> None:
        """Continue after a number."""
        self._seq = max(self._seq, seq)

    def close(self) -> None:
        """Give it nothing more."""
        self._closed = True

    async def next(self, most: int = PIECE) -> Batch | None:
        """Wait for entries, and take them. Cancelling loses none.

        Args:
            most: Approximate bytes of entries to get at once.

        Returns:
            ``None``: it has everything (`ended`), the server is closing, or the run was deleted.

        Raises:
            JournalError: The journal cannot be read.
        """
        tail, rested = self._tail, False
        while not (self.ended or self._closed):
            if tail is None or not tail.has(self._seq):
                batch = await self._read(most)
            else:
                batch = tail.after(self._seq)
                if batch is None and not tail.over:
                    await tail.wait()
                    rested = True
                    continue
                if not rested:  # other tasks get a turn, even if there are entries
                    await checkpoint()
                    rested = True
                    continue
            if batch is None:
                self._closed = True
            else:
                self._seq = batch.last
                self.ended = is_end(batch.entries[-1])
                return batch
        return None

    async def _read(self, most: int) -> Batch | None:
        """Read entries that are no longer in memory.

        ``None``: they were deleted, or the number does not exist.
        """
        entries = await self._journal.read(self.record.id, self._seq, most=most)
        return Batch(tuple(entries)) if entries else None


def in_pieces(values: Iterable[X], size_of: Callable[[X], int], most: int) -> Generator[list[X]]:
    """Yield values in lists of at most some bytes; a longer value comes alone.

    Without values, yield one empty list.
    """
    piece: list[X] = []
    left = most
    for value in values:
        size = size_of(value)
        if piece and size > left:
            yield piece
            piece, left = [], most
        piece.append(value)
        left -= size
    yield piece


def _frame(entry: Entry) -> bytes:
    name = b"event: end\n" if is_end(entry) else b""
    return b"id: %d\n%sdata: %s\n\n" % (entry.seq, name, entry.data)
