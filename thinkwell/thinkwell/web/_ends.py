"""The ends of runs. If the journal has no room for one, it is kept here until there is."""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import anyio
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from thinkwell.journal import JournalConflict, JournalError, JournalUnwritable
from thinkwell.web._records import EntryWriter, RunEnded, read_entry
from thinkwell.web._waiting import forget_waiting
from thinkwell.web._watching import Tail

if TYPE_CHECKING:
    from thinkwell.journal import Journal, RunRecord, RunStatus

logger = logging.getLogger("thinkwell")


class Unstored(Struct, frozen=True):
    """The end of a run that is running according to the journal."""

    end: RunEnded
    at: float
    """When it ended, in seconds since the epoch."""
    tail: Tail
    """The end of the run's log, for its watchers."""


class Ends:
    """Ends runs: at once for callers, and in the journal as soon as it has room.

    Args:
        journal: Stores the runs.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._unstored: dict[str, Unstored] = {}
        self._lock = anyio.Lock()

    def get(self, run_id: str) -> Unstored | None:
        """Return the end of a run, if it is not stored."""
        return self._unstored.get(run_id)

    def shown(self, record: RunRecord) -> RunRecord:
        """Return the record of a run, with its end."""
        unstored = self._unstored.get(record.id)
        if unstored is None or record.status != "running":
            return record
        end = unstored.end
        return replace(record, status=end.status, ended=unstored.at, last_seq=end.seq)

    async def runs(
        self, *, caller: str, thread: str | None, status: RunStatus | None, before: str | None, limit: int
    ) -> list[RunRecord]:
        """Return runs as `Journal.runs` does, with their ends."""
        if status is None or not self._unstored:
            records = await self._journal.runs(
                caller=caller, thread=thread, status=status, before=before, limit=limit
            )
            return [*map(self.shown, records)]
        found: list[RunRecord] = []
        page_is_full = True
        while page_is_full and len(found) < limit:
            page = await self._journal.runs(caller=caller, thread=thread, before=before, limit=limit)
            page_is_full = len(page) == limit
            before = page[-1].id if page else None
            found += [record for record in map(self.shown, page) if record.status == status]
        return found[:limit]

    async def end(self, record: RunRecord, end: RunEnded, tail: Tail) -> None:
        """End a run.

        Args:
            record: The run.
            end: Its end.
            tail: The end of its log, to which the entry is added.

        Raises:
            JournalError: The journal cannot be used, for another reason than a lack of room.
        """
        entry, at = await EntryWriter().end(end), time.time()
        try:
            await forget_waiting(self._journal, record.id)
            await self._journal.finish(record.id, entry, end.status, at)
        except JournalUnwritable as exc:
            logger.error("The end of run %s cannot be stored yet: %s", record.id, exc)
            self._unstored[record.id] = Unstored(end, at, tail)
        tail.push([entry])

    async def interrupt(self, record: RunRecord) -> None:
        """End a run that its server has abandoned.  Raises: JournalError: As in `end`."""
        at = 0.0
        with suppress(JournalError):  # it has lost entries, but ends
            for entry in await self._journal.read(record.id, record.last_seq - 1):
                with suppress(msgspec.ValidationError):  # from another version
                    at = max(at, read_entry(entry).at)
        end = RunEnded(seq=record.last_seq + 1, at=at, status="interrupted")
        await self.end(record, end, Tail(record.last_seq))

    async def store(self) -> None:
        """Store the ends that were not stored.

        Raises:
            JournalUnwritable: There is still no room.
            JournalError: The journal cannot be used.
        """
        async with self._lock:
            for run_id, unstored in tuple(self._unstored.items()):
                entry = await EntryWriter().end(unstored.end)
                with suppress(JournalConflict):  # another server has ended it
                    await forget_waiting(self._journal, run_id)
                    await self._journal.finish(run_id, entry, unstored.end.status, unstored.at)
                del self._unstored[run_id]
