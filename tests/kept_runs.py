"""Runs that have ended, put into a journal event by event: logs as no agent would make them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace
from web_stage import written

if TYPE_CHECKING:
    from collections.abc import Iterable

    from thinkwell import events as ev
    from thinkwell.journal import Journal, RunRecord
    from thinkwell.web import RunEnded

__all__ = ("keep_run",)


async def keep_run(
    journal: Journal, record: RunRecord, log: Iterable[ev.ThoughtEvent], end: RunEnded
) -> None:
    """Put a run into a journal. The entries of its log are numbered."""
    await journal.create(record)
    *entries, last = [written(replace(entry, seq=seq)) for seq, entry in enumerate((*log, end), 1)]
    await journal.append(record.id, entries)
    await journal.finish(record.id, last, end.status, record.created + end.at)
