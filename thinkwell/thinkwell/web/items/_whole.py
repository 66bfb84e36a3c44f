"""The items of a run, made from its log at once."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from thinkwell._core.schema.json_schema import is_object
from thinkwell.web._records import EntryWriter, in_thread, read_entry
from thinkwell.web.items._log import RunItems

if TYPE_CHECKING:
    from thinkwell.journal import RunRecord
    from thinkwell.web._watching import Watcher


def begun_items(record: RunRecord, most: float = math.inf) -> RunItems:
    """Return a maker of the items of a run, without items so far.

    Args:
        record: The run.
        most: Approximate bytes of items that are kept.
    """
    about = record.meta.get("page")
    kept = about if is_object(about) else {}  # the page has stored it with the run, if it is not too long
    prompt = kept.get("prompt")
    asked = EntryWriter().text(prompt) if isinstance(prompt, str) else record.title
    return RunItems(record.agent, kept.get("output"), prompt=asked, alone=record.thread is None, most=most)


async def made_items(watcher: Watcher, last: int) -> RunItems:
    """Return all items of a run up to an entry, without blocking other tasks.

    Args:
        watcher: Reads the run from its beginning.
        last: Number of the entry.
    """
    items = begun_items(watcher.record)
    while items.store.seq < last and (batch := await watcher.next()) is not None:
        entries = (entry for entry in batch.entries if entry.seq <= last)
        await in_thread(partial(items.take_all, map(read_entry, entries)))
    while not items.is_drawn:
        await in_thread(items.draw)
    return items
