"""A journal that ends with its process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anyio.lowlevel import checkpoint
from msgspec.structs import replace

from thinkwell.journal._errors import JournalConflict
from thinkwell.journal._local import LocalJournal, extended
from thinkwell.journal._types import MAX_PAGE, Entry, RunEnd, RunRecord, RunStatus

if TYPE_CHECKING:
    from collections.abc import Sequence


class _Kept:
    """A run."""

    __slots__ = ("entries", "record")

    def __init__(self, record: RunRecord) -> None:
        self.record = record
        self.entries: list[Entry] = []


class MemoryJournal(LocalJournal):
    """Stores runs in memory, for tests, and for servers whose runs may be lost at the end.

    The runs survive closing the journal, but not the process. Methods that do not wait also work while it is
    closed.
    """

    def __init__(self) -> None:
        super().__init__("the journal in memory")
        self._runs: dict[str, _Kept] = {}
        """In the order in which they were created."""
        self._keys: dict[tuple[str, str], str] = {}
        self._pieces: dict[str, dict[str, bytes]] = {}

    async def open(self) -> None:
        await checkpoint()
        self._check_closed()
        records = [kept.record for kept in self._runs.values()]
        self._opened(record for record in records if record.status == "running")

    async def close(self) -> None:
        self._closed()

    async def create(self, record: RunRecord) -> RunRecord:
        await checkpoint()
        key = None if record.key is None else (record.caller, record.key)
        if key is not None and key in self._keys:
            return self._runs[self._keys[key]].record
        if record.id in self._runs:
            raise JournalConflict(
                self._where, f"there is a run {record.id} already; give each run an id of its own"
            )
        if key is not None:
            self._keys[key] = record.id
        self._runs[record.id] = _Kept(record)
        self._begun(record)
        return record

    async def append(self, run_id: str, entries: Sequence[Entry]) -> None:
        await checkpoint()
        self._add(run_id, entries)
        self._grown(run_id, self._runs[run_id].record.last_seq)

    async def finish(self, run_id: str, end: Entry, status: RunEnd, at: float) -> None:
        await checkpoint()
        kept = self._add(run_id, (end,))
        kept.record = replace(kept.record, status=status, ended=at)
        self._ended(run_id)

    def _add(self, run_id: str, entries: Sequence[Entry]) -> _Kept:
        kept = self._runs.get(run_id)
        if kept is None or kept.record.status != "running":
            raise JournalConflict(
                self._where, f"run {run_id} has ended or was deleted; nothing can be added to it"
            )
        kept.record = extended(self._where, kept.record, entries)
        kept.entries += entries
        return kept

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
        behind = before is None
        for kept in reversed(self._runs.values()):
            if len(found) >= limit:
                break
            record = kept.record
            wanted = (
                behind
                and caller in (None, record.caller)
                and thread in (None, record.thread)
                and status in (None, record.status)
            )
            if wanted:
                found.append(record)
            behind = behind or record.id == before
        return found

    async def read(self, run_id: str, after: int = 0, *, most: int = MAX_PAGE) -> list[Entry]:
        await checkpoint()
        page: list[Entry] = []
        kept = self._runs.get(run_id)
        if kept is not None:
            size = 0
            for place in range(max(after, 0), len(kept.entries)):
                entry = kept.entries[place]
                size += len(entry.data)
                if page and size > most:
                    break
                page.append(entry)
        return page

    async def delete(self, run_id: str) -> bool:
        await checkpoint()
        kept = self._runs.get(run_id)
        if kept is None:
            return False
        record = kept.record
        if record.status == "running":
            raise JournalConflict(self._where, f"run {run_id} is running; cancel it first")
        del self._runs[run_id]
        if record.key is not None:
            del self._keys[record.caller, record.key]
        return True

    async def oldest(self, limit: int = 100) -> list[RunRecord]:
        await checkpoint()
        ended = [kept.record for kept in self._runs.values() if kept.record.ended is not None]
        return sorted(ended, key=lambda record: record.ended or 0.0)[: max(limit, 0)]

    async def size(self) -> int:
        await checkpoint()
        return sum(kept.record.size for kept in self._runs.values())

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
