"""The common part of journals that one process at a time has open: all waiting tasks are in that process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
from anyio.lowlevel import checkpoint
from msgspec.structs import replace

from thinkwell.journal._errors import JournalConflict, JournalError
from thinkwell.journal._types import Journal

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


class _Live:
    """A run that is running."""

    __slots__ = ("_changed", "last_seq", "owned", "running")

    def __init__(self, last_seq: int, *, owned: bool) -> None:
        self.last_seq = last_seq
        self.owned = owned
        """Whether its owner has the journal open."""
        self.running = True
        self._changed: anyio.Event | None = None

    async def wait(self) -> None:
        """Wait for changes."""
        if self._changed is None:
            self._changed = anyio.Event()
        await self._changed.wait()

    def wake(self) -> None:
        """Wake the waiting tasks."""
        if self._changed is not None:
            self._changed.set()
            self._changed = None


class LocalJournal(Journal):
    """Knows which runs are running and how many entries they have, so that a waiting task need not read.

    Subclasses report what they have stored, and call `_opened` and `_closed`.
    """

    def __init__(self, where: str) -> None:
        self._where = where
        self._live: dict[str, _Live] = {}
        self._orphans: list[RunRecord] = []
        self._handler: CallHandler | None = None
        self._is_open = False

    def __repr__(self) -> str:
        state = f"{len(self._live)} running" if self._is_open else "closed"
        return f"<{type(self).__name__} {self._where}, {state}>"

    def _opened(self, running: Iterable[RunRecord]) -> None:
        """Begin with the runs that were running when the journal was closed, or its process died."""
        self._is_open = True
        self._orphans = list(running)
        self._live = {record.id: _Live(record.last_seq, owned=False) for record in self._orphans}

    def _closed(self) -> None:
        self._is_open = False
        self._handler = None
        for run_id in tuple(self._live):
            self._ended(run_id)

    def _check_closed(self) -> None:
        if self._is_open:
            raise JournalError(self._where, "it is open already; make another journal for another server")

    def _begun(self, record: RunRecord) -> None:
        if self._is_open:
            self._live[record.id] = _Live(record.last_seq, owned=True)

    def _grown(self, run_id: str, last_seq: int) -> None:
        live = self._live.get(run_id)
        if live is not None:
            live.last_seq = last_seq
            live.wake()

    def _ended(self, run_id: str) -> None:
        live = self._live.pop(run_id, None)
        if live is not None:
            live.running = False
            live.wake()

    async def wait(self, run_id: str, after: int) -> None:
        await checkpoint()
        live = self._live.get(run_id)
        while live is not None and live.running and live.last_seq <= after:
            await live.wait()

    async def orphans(self) -> list[RunRecord]:
        await checkpoint()
        found = [record for record in self._orphans if record.id in self._live]
        self._orphans = []
        for record in found:
            self._live[record.id].owned = True
        return found

    async def call(self, run_id: str, body: bytes, *, timeout: float = 10.0) -> bytes:  # noqa: ASYNC109
        await checkpoint()
        live = self._live.get(run_id)
        if live is None:
            raise JournalConflict(self._where, f"run {run_id} has ended or was deleted; it cannot be asked")
        if not live.owned or self._handler is None:
            raise JournalConflict(
                self._where, f"the process that had run {run_id} has ended; try again later"
            )
        with anyio.move_on_after(timeout):
            return await self._handler(run_id, body)
        raise JournalConflict(self._where, f"run {run_id} has not answered within {timeout:g} s; try again")

    def serve(self, handler: CallHandler | None) -> None:
        self._handler = handler
