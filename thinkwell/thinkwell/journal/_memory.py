"""A journal that ends with its process."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

import anyio
from anyio.lowlevel import checkpoint
from msgspec.structs import replace

from thinkwell.journal._errors import JournalConflict
from thinkwell.journal._types import MAX_PAGE, Entry, Journal, RunEnd, RunRecord, RunStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkwell.journal._types import CallHandler

__all__ = ("MemoryJournal",)

WHERE = "the journal in memory"


class _Kept:
    """A run."""

    def __init__(self, record: RunRecord) -> None:
        self.record = record
        self.entries: list[Entry] = []
        self.changed: anyio.Event | None = None

    def notify(self) -> None:
        """Wake those who wait."""
        if self.changed is not None:
            self.changed.set()
            self.changed = None


class MemoryJournal(Journal):
    """Keeps runs in memory: for tests, and for servers whose runs need not outlive them."""

    def __init__(self) -> None:
        self._runs: dict[str, _Kept] = {}
        """In the order in which they were created."""
        self._keys: dict[tuple[str, str], str] = {}
        self._pieces: dict[str, dict[str, bytes]] = {}
        self._handler: CallHandler | None = None
        self._open = False
        self._unowned: set[str] = set()
        """Runs that were running when the journal was closed."""

    async def open(self) -> None:
        await checkpoint()
        self._open = True

    async def close(self) -> None:
        self._open = False
        self._handler = None
        for id_, kept in self._runs.items():
            kept.notify()
            if kept.record.status == "running":
                self._unowned.add(id_)

    async def create(self, record: RunRecord) -> RunRecord:
        await checkpoint()
        if record.key is not None:
            known = self._keys.setdefault((record.caller, record.key), record.id)
            if known != record.id:
                return self._runs[known].record
        self._runs[record.id] = _Kept(record)
        return record

    async def append(self, run_id: str, entries: Sequence[Entry]) -> None:
        await checkpoint()
        self._add(run_id, entries)

    async def finish(self, run_id: str, end: Entry, status: RunEnd, at: float) -> None:
        await checkpoint()
        self._add(run_id, (end,), status, at)

    def _add(
        self, run_id: str, entries: Sequence[Entry], status: RunStatus = "running", at: float | None = None
    ) -> None:
        kept = self._runs.get(run_id)
        if kept is None or kept.record.status != "running":
            raise JournalConflict(WHERE, f"run {run_id} has ended or is gone; nothing can be added to it")
        first, last = kept.record.last_seq + 1, kept.record.last_seq + len(entries)
        if [entry.seq for entry in entries] != list(range(first, last + 1)):
            raise JournalConflict(WHERE, f"the next entry of run {run_id} has to be number {first}")
        kept.entries += entries
        size = kept.record.size + sum(len(entry.data) for entry in entries)
        kept.record = replace(kept.record, last_seq=last, size=size, status=status, ended=at)
        kept.notify()

    async def get(self, run_id: str) -> RunRecord | None:
        await checkpoint()
        kept = self._runs.get(run_id)
        return None if kept is None else kept.record

    async def runs(
        self,
        *,
        caller: str | None = None,
        thread: str | None = None,
        status: RunStatus | None = None,
        before: str | None = None,
        limit: int = 100,
    ) -> list[RunRecord]:
        await checkpoint()
        found: list[RunRecord] = []
        if before is not None and before not in self._runs:
            return found
        behind = before is None
        for record in reversed([kept.record for kept in self._runs.values()]):
            wanted = (
                behind
                and caller in (None, record.caller)
                and thread in (None, record.thread)
                and status in (None, record.status)
            )
            if wanted and len(found) < limit:
                found.append(record)
            behind = behind or record.id == before
        return found

    async def read(self, run_id: str, after: int = 0, *, most: int = MAX_PAGE) -> list[Entry]:
        await checkpoint()
        page: list[Entry] = []
        kept = self._runs.get(run_id)
        if kept is not None:
            size = 0
            for entry in kept.entries[bisect_right(kept.entries, after, key=_seq_of) :]:
                size += len(entry.data)
                if page and size > most:
                    break
                page.append(entry)
        return page

    async def wait(self, run_id: str, after: int) -> None:
        await checkpoint()
        kept = self._runs.get(run_id)
        while (
            self._open
            and kept is not None
            and self._runs.get(run_id) is kept
            and kept.record.status == "running"
            and kept.record.last_seq <= after
        ):
            if kept.changed is None:
                kept.changed = anyio.Event()
            await kept.changed.wait()

    async def delete(self, run_id: str) -> bool:
        await checkpoint()
        kept = self._runs.get(run_id)
        if kept is None:
            return False
        record = kept.record
        if record.status == "running":
            raise JournalConflict(WHERE, f"run {run_id} is running; cancel it first")
        del self._runs[run_id]
        if record.key is not None:
            del self._keys[record.caller, record.key]
        kept.notify()
        return True

    async def oldest(self, limit: int = 100) -> list[RunRecord]:
        await checkpoint()
        ended = [kept.record for kept in self._runs.values() if kept.record.ended is not None]
        return sorted(ended, key=lambda record: record.ended or 0.0)[:limit]

    async def size(self) -> int:
        await checkpoint()
        return sum(kept.record.size for kept in self._runs.values())

    async def orphans(self) -> list[RunRecord]:
        await checkpoint()
        found, self._unowned = self._unowned, set()
        return [self._runs[id_].record for id_ in self._runs if id_ in found]

    async def call(self, run_id: str, body: bytes, *, timeout: float = 10.0) -> bytes:  # noqa: ASYNC109
        await checkpoint()
        kept = self._runs.get(run_id)
        if self._handler is None or kept is None or kept.record.status != "running":
            raise JournalConflict(WHERE, f"run {run_id} has ended or is gone; nobody can be asked")
        with anyio.move_on_after(timeout):
            return await self._handler(run_id, body)
        raise JournalConflict(WHERE, f"run {run_id} has not answered within {timeout:g} s; try again")

    def serve(self, handler: CallHandler | None) -> None:
        self._handler = handler

    async def put(self, kind: str, name: str, data: bytes | None) -> None:
        await checkpoint()
        pieces = self._pieces.setdefault(kind, {})
        if data is None:
            pieces.pop(name, None)
        else:
            pieces[name] = data

    async def pick(self, kind: str, name: str) -> bytes | None:
        await checkpoint()
        return self._pieces.get(kind, {}).get(name)

    async def pick_all(self, kind: str) -> list[tuple[str, bytes]]:
        await checkpoint()
        return list(self._pieces.get(kind, {}).items())


def _seq_of(entry: Entry) -> int:
    return entry.seq
