"""The items of a run for its watchers: made once for all, at most ten times a second."""

from __future__ import annotations

import math
import secrets
import weakref
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

import anyio
import msgspec

from thinkwell._core.exit import running_clock
from thinkwell.journal import MAX_PAGE
from thinkwell.web._records import in_thread
from thinkwell.web._sse import sse_frame
from thinkwell.web.items._whole import LAST, begun_items, end_items, made_items

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence

    from thinkwell.journal import Entry, RunRecord
    from thinkwell.web._watching import Watcher
    from thinkwell.web.items._store import ItemStore

QUIET: Final = 0.1
"""Least seconds between two drawings: the longest delay of a text."""

REST: Final = 9
"""The pause after a drawing, as a multiple of its duration."""

SHORT: Final = 8 * 1024
"""Bytes of entries that are processed in the event loop; more are processed in a thread."""

UNUSED: Final = 8
"""Runs without watchers whose items are kept."""

PIECE: Final = 64 * 1024
"""Approximate bytes of items that are sent at once."""

LONG: Final = 5_000
"""Entries of a run from which on its end is sent before the rest is made."""

MOST: Final = 8 * 1024 * 1024
"""Approximate bytes of a run's items that are kept.

Earlier ones are made again from its log when they are needed.
"""


class Pieces(list[bytes]):
    """Items as server-sent events, kept while they are being sent.

    Args:
        version: The version after them.
        frames: The events.
        last: Number of the last entry, if nothing up to it is missing.
    """

    def __init__(self, version: int, frames: Iterable[bytes], last: int = 0) -> None:
        super().__init__(frames)
        self.version = version
        self.last = last


class ItemFeed:
    """Makes the items of a run for its watchers in this process.

    It has no task: one of the waiting watchers makes them for all.

    Args:
        record: The run.
    """

    def __init__(self, record: RunRecord) -> None:
        self.name = secrets.token_hex(4)
        """The name of this maker. The versions of another one mean something else."""
        self._items = begun_items(record, MOST)
        self._is_led = False
        """Whether a watcher is making items."""
        self._is_busy = False
        """Whether a thread is making items, so that they must not be read."""
        self._changed = anyio.Event()
        self._due = -1.0
        """The earliest time of the next drawing."""
        self._undrawn = 0
        """Bytes of entries since the last drawing."""
        self._clock = running_clock()
        nothing = Pieces(0, ())
        self._last = 0, nothing
        """The items sent last, and the version before them."""
        self._again = weakref.ref(nothing)
        """The items made again."""
        self._is_making_again = False
        self._end = 0, b""
        """Number of the last entry when the end of the run was made, and the end."""
        self._end_lock = anyio.Lock()

    @property
    def is_over(self) -> bool:
        """Whether the run is over, and has all items."""
        return self._items.end is not None and self._items.is_drawn

    async def end(self, watcher: Watcher) -> bytes | None:
        """Return the last rows of a long run as an event; ``None``: it is short.

        A client shows them until it has all. It is made once for those who come at about the same time.

        Args:
            watcher: The client's own reader of the run.
        """
        last = watcher.record.last_seq
        if last < LONG:
            return None
        async with self._end_lock:
            if self._end[0] < last - LAST[0] // 2:
                items = await end_items(watcher.again())
                self._end = last, sse_frame(msgspec.json.encode(items), id=f"{secrets.token_hex(4)}.0")
            return self._end[1]

    async def next(self, version: int, watcher: Watcher) -> Pieces | None:
        """Wait for items after a version.

        Args:
            version: The version that the client has; 0: none.
            watcher: The client's own reader of the run.

        Returns:
            The items; ``None``: nothing more comes.
        """
        while True:
            if not self._is_busy and version < self._items.store.version:
                if version >= self._items.store.lost:
                    return self._taken(version)
                pieces = self._again()
                if pieces is not None and pieces.version > version:
                    return pieces
                if not self._is_making_again:
                    return await self._made_again(watcher)
                await self._changed.wait()
                continue
            if self._is_led:
                await self._changed.wait()
                continue
            self._is_led = True
            try:
                if not await self._advance(watcher):
                    return None
            finally:
                self._is_led = False
                self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    def _taken(self, version: int) -> Pieces:
        begin, pieces = self._last
        if begin != version or pieces.version == version:
            store = self._items.store
            end, items = store.after(version, PIECE)
            frame = sse_frame(msgspec.json.encode(items), id=f"{self.name}.{end}")
            is_all = end == store.version and self._items.is_drawn
            pieces = Pieces(end, (frame,), store.seq if is_all else 0)
            self._last = version, pieces
        return pieces

    async def _made_again(self, watcher: Watcher) -> Pieces:
        """Make the missing items for all watchers."""
        self._is_making_again = True
        try:
            store = self._items.store
            version, ids = store.lost, store.missing()
            whole = await made_items(watcher.again(), store.seq)
            frames = await in_thread(partial(_frames, whole.store, ids, f"{self.name}.{version}"))
            pieces = Pieces(version, frames)
            self._again = weakref.ref(pieces)
            return pieces
        finally:
            self._is_making_again = False
            self._wake()

    async def _advance(self, watcher: Watcher) -> bool:
        """Take entries and make their items, and return whether there may be more."""
        if self._items.is_drawn:
            if self._items.end is not None:
                return False
            watcher.skip(self._items.store.seq)
            if (batch := await watcher.next(MAX_PAGE)) is None:
                return False
            await self._take(batch.entries)
            while self._items.end is None:
                # All older entries are taken before the first drawing: the end of the run comes first.
                left = (
                    math.inf if self._items.store.seq < watcher.record.last_seq else self._due - self._clock()
                )
                if left <= 0:
                    break
                with anyio.move_on_after(left):
                    if (batch := await watcher.next(MAX_PAGE)) is None:
                        break
                    await self._take(batch.entries)
        await self._draw()
        return True

    async def _take(self, entries: Sequence[Entry]) -> None:
        size = sum(len(entry.data) for entry in entries)
        self._undrawn += size
        await self._do(partial(self._items.read, entries), size)

    async def _draw(self) -> None:
        began = self._clock()
        await self._do(self._items.draw, self._undrawn)
        ended = self._clock()
        if self._items.is_drawn:
            self._undrawn = 0
            self._due = ended + max(QUIET, REST * (ended - began))

    async def _do(self, work: Callable[[], None], size: int) -> None:
        """Make items, in a thread if there are many. Cancelling does not interrupt it."""
        if size <= SHORT:
            work()
            return
        self._is_busy = True
        try:
            with anyio.CancelScope(shield=True):  # otherwise it is unknown what was taken
                await in_thread(work)
        finally:
            self._is_busy = False


class ItemFeeds:
    """The feeds of the watched runs, and of those that were watched last."""

    def __init__(self) -> None:
        self._feeds: dict[str, tuple[ItemFeed, int]] = {}
        """The feeds by run, with their number of watchers; the last used ones at the end."""

    @contextmanager
    def feed(self, record: RunRecord) -> Generator[ItemFeed]:
        """Return the feed of a run during a block."""
        feed, watchers = self._feeds.pop(record.id, (None, 0))
        if feed is None:
            feed = ItemFeed(record)
        self._feeds[record.id] = feed, watchers + 1
        try:
            yield feed
        finally:
            _, watchers = self._feeds.pop(record.id)
            self._feeds[record.id] = feed, watchers - 1
            unused = [id_ for id_, (_, watchers) in self._feeds.items() if not watchers]
            for id_ in unused[: max(len(unused) - UNUSED, 0)]:
                del self._feeds[id_]


def _frames(store: ItemStore, ids: set[str], end: str) -> list[bytes]:
    """Return the items with some ids as events; the last event has an id to resume from."""
    name = secrets.token_hex(4)
    pieces = [*store.part(ids, PIECE)]
    names = [*(f"{name}.{number}" for number in range(1, len(pieces))), end]
    return [sse_frame(msgspec.json.encode(piece), id=id_) for piece, id_ in zip(pieces, names, strict=True)]
