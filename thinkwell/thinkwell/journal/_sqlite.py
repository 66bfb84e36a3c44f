"""A journal in a file."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import anyio
import anyio.to_thread
import msgspec
from anyio.lowlevel import checkpoint_if_cancelled

from thinkwell.journal import _sqlite_reading as reading
from thinkwell.journal._errors import JournalError
from thinkwell.journal._local import LocalJournal
from thinkwell.journal._sqlite_changes import Changes
from thinkwell.journal._sqlite_file import READERS, JournalFile
from thinkwell.journal._sqlite_writer import Job, Writer
from thinkwell.journal._types import MAX_PAGE, Entry, RunEnd, RunRecord, RunStatus

if TYPE_CHECKING:
    import os
    import sqlite3
    from collections.abc import Callable, Sequence

T = TypeVar("T")


class _Open:
    """The state while the journal is open."""

    def __init__(self, file: JournalFile) -> None:
        self.file = file
        self.writer = Writer(file)
        self.limiter = anyio.CapacityLimiter(READERS)

    def close(self) -> None:
        self.writer.close()
        self.file.close()


class SqliteJournal(LocalJournal):
    """Stores runs in a file, an SQLite database: for a server that is a single process.

    A missing file, and missing folders, are created so that only their owner can read them. One process at
    a time can open it, until the journal is closed or the process ends in any way. It has to be on a local
    disk.

    Stored entries outlive the process, even if it is killed at any moment. A power cut, or a crash of
    the system, may cost the last seconds: everything is then as it was at some earlier moment, and
    the file is not damaged. Avoiding that would mean waiting for the disk after each entry.

    Concurrent entries of several runs are written together, in a separate thread. Readers and writers do not
    wait for each other, and the event loop is never blocked. Deleted runs free their space.

    Args:
        path: The file. Two more with its name and ``-wal`` and ``-shm`` belong to it while it is open, and
            one with ``-lock`` stays beside it.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        try:
            self.path: Path = Path(path).absolute()
        except FileNotFoundError:
            told = (
                "SqliteJournal(…): the current folder of this program has been deleted; give an absolute path"
            )
            raise NotADirectoryError(told) from None
        """The file."""
        super().__init__(f"the journal {self.path}")
        self._opening = False
        self._state: _Open | None = None

    async def open(self) -> None:
        if self._opening:
            raise JournalError(self._where, "it is being opened already")
        self._check_closed()
        self._opening = True
        try:
            file = await anyio.to_thread.run_sync(JournalFile, self.path, self._where)
            self._state = _Open(file)
        finally:
            self._opening = False
        self._opened(kept.record for kept in file.running)
        await self._tidy()  # after a process that was killed when it deleted a run

    async def close(self) -> None:
        state, self._state = self._state, None
        if state is not None:
            await super().close()
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(state.close)

    async def create(self, record: RunRecord) -> RunRecord:
        line = msgspec.json.encode(record)
        msgspec.json.decode(line, type=RunRecord)  # an unreadable record would fail forever

        def then(stored: RunRecord) -> None:
            if stored is record:
                self._begun(record)

        return await self._write(Job(lambda changes: changes.create(record, line), then, weight=len(line)))

    async def append(self, run_id: str, entries: Sequence[Entry]) -> None:
        added = tuple(entries)
        weight = sum(len(entry.data) for entry in added)
        work: Job[int] = Job(
            lambda changes: changes.append(run_id, added), partial(self._stored, run_id), weight=weight
        )
        await self._write(work)

    async def finish(self, run_id: str, end: Entry, status: RunEnd, at: float) -> None:
        def then(_: None) -> None:
            self._stored(run_id, over=True)

        weight = len(end.data)
        await self._write(Job(lambda changes: changes.finish(run_id, end, status, at), then, weight=weight))

    async def get(self, run_id: str) -> RunRecord | None:
        return await self._read(lambda connection: reading.find_run(connection, run_id))

    async def runs(
        self,
        *,
        caller: str | None = None,
        thread: str | None = None,
        status: RunStatus | None = None,
        before: str | None = None,
        limit: int = 100,
    ) -> list[RunRecord]:
        given = {"caller": caller, "thread": thread, "status": status, "before": before}
        return await self._read(lambda connection: reading.find_runs(connection, given, limit))

    async def read(self, run_id: str, after: int = 0, *, most: int = MAX_PAGE) -> list[Entry]:
        return await self._read(lambda connection: reading.read_entries(connection, run_id, after, most))

    async def delete(self, run_id: str) -> bool:
        gone, is_untidy = await self._write(Job(lambda changes: changes.delete(run_id)))
        if is_untidy:
            await self._tidy()
        return gone

    async def oldest(self, limit: int = 100) -> list[RunRecord]:
        return await self._read(lambda connection: reading.find_oldest(connection, limit))

    async def size(self) -> int:
        return await self._read(reading.read_size)

    async def put(self, kind: str, name: str, data: bytes | None) -> None:
        weight = len(data or b"")
        await self._write(Job(lambda changes: changes.put(kind, name, data), weight=weight))

    async def pick(self, kind: str, name: str) -> bytes | None:
        return await self._read(lambda connection: reading.read_piece(connection, kind, name))

    async def pick_all(self, kind: str) -> list[tuple[str, bytes]]:
        return await self._read(lambda connection: reading.read_pieces(connection, kind))

    async def _tidy(self) -> None:
        """Delete entries without a run, little by little, so that nothing waits for it."""
        # What cannot be deleted now is deleted the next time.
        with anyio.CancelScope(shield=True), suppress(JournalError):
            while await self._write(Job(Changes.sweep)):
                pass
            while await self._write(Job(Changes.give_back, alone=True)):
                pass

    async def _write(self, job: Job[T]) -> T:
        await checkpoint_if_cancelled()
        self._need().writer.put(job)
        return await job.wait()

    async def _read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        state = self._need()
        return await anyio.to_thread.run_sync(state.file.read, work, limiter=state.limiter)

    def _need(self) -> _Open:
        if self._state is None:
            raise JournalError(self._where, "it is not open; use it in the block of `async with journal:`")
        return self._state
