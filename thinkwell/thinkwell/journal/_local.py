"""The common part of journals that one process at a time has open: all waiting tasks are in that process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
from anyio.lowlevel import checkpoint
from msgspec.structs import replace

from thinkwell.journal._errors import JournalConflict, JournalError
from thinkwell.journal._types import Journal
from thinkwell.journal._watch import Watch

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from thinkwell.journal._types import CallHandler, Entry, RunRecord


def extended(where: str, record: RunRecord, entries: Sequence[Entry]) -> RunRecord:
    """Return the record of a run with more entries.

    Raises:
        JournalConflict: They do not follow the last one.
    """
    first, last = record.last_seq + 1, record.last_seq + len(entries)
    if [entry.seq for entry in entries] != list(range(first, last + 1)):
        raise JournalConflict(where, f"the next entry of run {record.id} has to be number {first}")
    return replace(record, last_seq=last, size=record.size + sum(len(entry.data) for entry in entries))


class LocalJournal(Journal):
    """Knows which runs are running and how many entries they have, so that a waiting task need not read.

    Subclasses report what they have stored, and call `_opened`.
    """

    def __init__(self, where: str) -> None:
        self._where = where
        self._live: dict[str, Watch] = {}
        """The runs that are running."""
        self._orphans: dict[str, RunRecord] = {}
        """Those whose owner has closed the journal, or has died."""
        self._handler: CallHandler | None = None
        self._is_open = False

    def __repr__(self) -> str:
        state = f"{len(self._live)} running" if self._is_open else "closed"
        return f"<{type(self).__name__} {self._where}, {state}>"

    def _opened(self, running: Iterable[RunRecord]) -> None:
        """Begin with the runs that were running when the journal was closed, or its process died."""
        self._is_open = True
        self._orphans = {record.id: record for record in running}
        self._live = {record.id: Watch(record.last_seq) for record in self._orphans.values()}

    async def close(self) -> None:
        self._is_open = False
        self._handler = None
        for run_id in tuple(self._live):
            self._stored(run_id, over=True)

    def _check_closed(self) -> None:
        if self._is_open:
            raise JournalError(self._where, "it is open already; make another journal for another server")

    def _begun(self, record: RunRecord) -> None:
        if self._is_open:
            self._live[record.id] = Watch(record.last_seq)

    def _stored(self, run_id: str, last_seq: int = 0, *, over: bool = False) -> None:
        live = self._live.get(run_id)
        if live is not None:
            live.learn(last_seq, over=over)
        if over:
            self._live.pop(run_id, None)
            self._orphans.pop(run_id, None)

    async def wait(self, run_id: str, after: int) -> None:
        await checkpoint()
        live = self._live.get(run_id)
        while live is not None and not live.over and live.last <= after:
            await live.wait()

    async def orphans(self) -> list[RunRecord]:
        await checkpoint()
        found, self._orphans = self._orphans, {}
        return list(found.values())

    async def call(self, run_id: str, body: bytes, *, timeout: float = 10.0) -> bytes:  # noqa: ASYNC109
        await checkpoint()
        if run_id not in self._live:
            raise JournalConflict(self._where, f"run {run_id} has ended or was deleted; it cannot be asked")
        if run_id in self._orphans or self._handler is None:
            raise JournalConflict(
                self._where, f"the process that had run {run_id} has ended; try again later"
            )
        with anyio.move_on_after(timeout):
            return await self._handler(run_id, body)
        raise JournalConflict(self._where, f"run {run_id} has not answered within {timeout:g} s; try again")

    def serve(self, handler: CallHandler | None) -> None:
        self._handler = handler
