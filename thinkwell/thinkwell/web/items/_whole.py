"""The items of a run, made from its log at once."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Final

from thinkwell import events as ev
from thinkwell._core.schema.json_schema import is_object
from thinkwell.journal import MAX_PAGE
from thinkwell.web._records import EntryWriter, in_thread, read_entries
from thinkwell.web.items._log import RunItems

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkwell.journal import Entry, RunRecord
    from thinkwell.web._records import LogEntry
    from thinkwell.web._watching import Watcher
    from thinkwell.web.items._store import Item

LAST: Final = (1_000, 100, 10)
"""How many entries the end of a run has: the most that are not too long."""

MOST: Final = 256 * 1024
"""Bytes of entries that are not too long."""

UNKNOWN: Final = frozenset({"changes", "terminal"})
"""Places that show something of all entries."""


def begun_items(record: RunRecord, most: float = math.inf, *, is_end: bool = False) -> RunItems:
    """Return a maker of the items of a run, without items so far.

    Args:
        record: The run.
        most: Approximate bytes of items that are kept.
        is_end: Whether it will only get the last entries.
    """
    about = record.meta.get("page")
    kept = about if is_object(about) else {}  # the page has stored it with the run, if it is not too long
    prompt = kept.get("prompt")
    asked = EntryWriter().text(prompt) if isinstance(prompt, str) else record.title
    return RunItems(
        record.agent,
        kept.get("output"),
        prompt=asked,
        alone=record.thread is None,
        most=most,
        is_end=is_end,
    )


async def made_items(watcher: Watcher, last: int) -> RunItems:
    """Return all items of a run up to an entry, without blocking other tasks.

    Args:
        watcher: Reads the run from its beginning.
        last: Number of the entry.
    """
    items = begun_items(watcher.record)
    while items.store.seq < last and (batch := await watcher.next(MAX_PAGE)) is not None:
        entries = [entry for entry in batch.entries if entry.seq <= last]
        await in_thread(partial(items.read, entries))
    while not items.is_drawn:
        await in_thread(items.draw)
    return items


async def end_items(watcher: Watcher) -> list[Item]:
    """Return the items of the last rows of a run, made from its last entries alone.

    Some may differ from those made of all entries: a text that began before is cut, and counts are missing.

    Args:
        watcher: Reads the run from its beginning.

    Returns:
        Nothing, if its last entries are very long.
    """
    first = await watcher.next()
    opened = [] if first is None else [*filter(_is_opening, read_entries(first.entries))]
    entries = await _last_entries(watcher)

    def made() -> list[Item]:
        items = begun_items(watcher.record, is_end=True)
        items.take_all([*opened[:1], *read_entries(entries)])
        items.draw()  # once: the latest rows, if there is not enough time for all
        return [item for item in items.store.after(0, math.inf)[1] if item.place[0] not in UNKNOWN]

    return await in_thread(made) if entries else []


async def _last_entries(watcher: Watcher) -> Sequence[Entry]:
    last = watcher.record.last_seq
    for number in LAST:
        reader = watcher.again()
        reader.skip(last - number)
        entries: list[Entry] = []
        while sum(len(entry.data) for entry in entries) < MOST:
            if reader.seq >= last or (batch := await reader.next()) is None:
                return entries
            entries += batch.entries
    return ()


def _is_opening(entry: LogEntry) -> bool:
    return isinstance(entry, ev.SessionOpened)
