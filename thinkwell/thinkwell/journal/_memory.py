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


class MemoryJournal(LocalJournal):
    """Stores runs in memory, for tests, and for servers whose runs may be lost at the end.

    The runs survive closing the journal, but not the process. Methods that do not wait also work while it is
    closed.
    """

    def __init__(self) -> None:
        super().__init__("the journal in memory")
        self._runs: dict[str, RunRecord] = {}
        """In the order in which they were created."""
        self._entries: dict[str, list[Entry]] = {}
        self._keys: dict[tuple[str, str], str] = {}
        self._pieces: dict[str, dict[str, bytes]] = {}

    async def open(self) -> None:
        await checkpoint()
        self._check_closed()
        self._opened(record for record in self._runs.values() if record.status == "running")

    async def create(self, record: RunRecord) -> RunRecord:
        await checkpoint()
        key = None if record.key is None else (record.caller, record.key)
        if key is not None and key in self._keys:
            return self._runs[self._keys[key]]
        if record.id in self._runs:
            raise JournalConflict(
                self._where, f"there is a run {record.id} already; give each run an id of its own"
            )
        if key is not None:
            self._keys[key] = record.id
        self._runs[record.id] = record
        self._entries[record.id] = []
        self._begun(record)
        return record

    async def append(self, run_id: str, entries: Sequence[Entry]) -> None:
        await checkpoint()
        self._stored(run_id, self._add(run_id, entries).last_seq)

    async def finish(self, run_id: str, end: Entry, status: RunEnd, at: float) -> None:
        await checkpoint()
        self._runs[run_id] = replace(self._add(run_id, (end,)), status=status, ended=at)
        self._stored(run_id, over=True)

    def _add(self, run_id: str, entries: Sequence[Entry]) -> RunRecord:
        record = self._runs.get(run_id)
        if record is None or record.status != "running":
            raise JournalConflict(
                self._where, f"run {run_id} has ended or was deleted; nothing can be added to it"
            )
        self._runs[run_id] = record = extended(self._where, record, entries)
        self._entries[run_id] += entries
        return record

    async def get(self, run_id: str) -> RunRecord | None:
        await checkpoint()
        return self._runs.get(run_id)

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
        for record in reversed(self._runs.values()):
            if len(found) >= limit:
                break
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
        size = 0
        entries = self._entries.get(run_id, [])
        for place in range(max(after, 0), len(entries)):
            size += len(entries[place].data)
            if page and size > most:
                break
            page.append(entries[place])
        return page

    async def delete(self, run_id: str) -> bool:
        await checkpoint()
        record = self._runs.get(run_id)
        if record is None:
            return False
        if record.status == "running":
            raise JournalConflict(self._where, f"run {run_id} is running; cancel it first")
        del self._runs[run_id], self._entries[run_id]
        if record.key is not None:
            del self._keys[record.caller, record.key]
        return True

    async def oldest(self, limit: int = 100) -> list[RunRecord]:
        await checkpoint()
        ended = [record for record in self._runs.values() if record.ended is not None]
        return sorted(ended, key=lambda record: record.ended or 0.0)[: max(limit, 0)]

    async def size(self) -> int:
        await checkpoint()
        return sum(record.size for record in self._runs.values())

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
