"""The changes to the file of a `SqliteJournal`, in one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from thinkwell.journal._errors import JournalConflict
from thinkwell.journal._local import extended
from thinkwell.journal._sqlite_reading import LAST_SEQ, Kept, find_run_by_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkwell.journal._sqlite_file import JournalFile
    from thinkwell.journal._types import Entry, RunEnd, RunRecord

MOST_ROWS: Final = 250
"""Rows that one statement adds. An old SQLite takes 999 values."""

SLICE_BYTES: Final = 4 * 1024 * 1024
"""Approximate bytes of a deleted run that are removed at once."""

ROW_BYTES: Final = 16
"""Bytes that an entry needs besides its data."""

SPARE_PAGES: Final = 256
"""Empty pages that the file keeps for new entries: a megabyte.

It may have a slice more before they are returned.
"""

SLICE_PAGES: Final = 512
"""Empty pages that are returned at once."""


class Changes:
    """A transaction.

    A change that is refused has written nothing, so the other changes continue.

    Args:
        file: The file, in a transaction.
        running: The runs that are running, as the file has them.
    """

    def __init__(self, file: JournalFile, running: dict[str, Kept]) -> None:
        self._file = file
        self._connection = file.connection
        self._where = file.where
        self.running = dict(running)
        """The runs that are running after the changes."""
        self._rows: list[tuple[int, bytes]] = []
        self._logs: dict[int, RunRecord] = {}
        """The runs whose logs have changed since the last write."""

    def create(self, record: RunRecord, line: bytes) -> RunRecord:
        """Begin a run with this record, as JSON, or return the run with the same key.

        Raises:
            JournalConflict: The id exists.
            JournalUnwritable: There is no room.
        """
        if record.key is not None:
            self.flush()
            known = find_run_by_key(self._connection, record.caller, record.key)
            if known is not None:
                return known
        if self._number(record.id) is not None:
            taken = f"there is a run {record.id} already; give each run an id of its own"
            raise JournalConflict(self._where, taken)
        self._file.check_room()
        values = (record.id, record.caller, record.thread, record.key, record.status, line)
        cursor = self._connection.execute(
            "INSERT INTO runs (id, caller, thread, key, status, record) VALUES (?, ?, ?, ?, ?, ?)", values
        )
        assert cursor.lastrowid is not None
        self.running[record.id] = Kept(cursor.lastrowid, record)
        self._logs[cursor.lastrowid] = record
        return record

    def append(self, run_id: str, entries: Sequence[Entry]) -> int:
        """Add entries to a run, and return the number of its last one."""
        return self._add(run_id, entries).record.last_seq

    def finish(self, run_id: str, end: Entry, status: RunEnd, at: float) -> None:
        """Add the last entry, and end the run."""
        run = self._add(run_id, (end,))
        del self.running[run_id]
        line = msgspec.json.encode(replace(run.record, status=status, ended=at))
        self._connection.execute(
            "UPDATE runs SET status = ?, ended = ?, record = ? WHERE number = ?",
            (status, at, line, run.number),
        )

    def delete(self, run_id: str) -> tuple[bool, bool]:
        """Delete a run; of a long one, everything but its entries.

        Returns:
            Whether it existed, and whether `sweep` or `give_back` has something left to do.
        """
        self.flush()
        number = self._number(run_id)
        if number is None:
            return False, False
        if run_id in self.running:
            raise JournalConflict(self._where, f"run {run_id} is running; cancel it first")
        last_seq, size = self._connection.execute(
            "SELECT last_seq, size FROM logs WHERE number = ?", (number,)
        ).fetchone()
        is_long = size + last_seq * ROW_BYTES > SLICE_BYTES
        if is_long:
            step = max(1, SLICE_BYTES // (size // last_seq + ROW_BYTES))
            self._connection.execute("INSERT INTO doomed VALUES (?, ?)", (number, step))
        else:
            place = number << 32
            self._connection.execute(
                "DELETE FROM entries WHERE place > ? AND place <= ?", (place, place + LAST_SEQ)
            )
        self._connection.execute("DELETE FROM runs WHERE number = ?", (number,))
        self._connection.execute("DELETE FROM logs WHERE number = ?", (number,))
        return True, is_long or self._empty_pages() > SPARE_PAGES + SLICE_PAGES

    def sweep(self) -> bool:
        """Delete some entries of a deleted run. Return whether there may be more."""
        doomed = self._connection.execute("SELECT number, step FROM doomed LIMIT 1").fetchone()
        if doomed is None:
            return False
        number, step = doomed
        swept = self._connection.execute(
            "DELETE FROM entries WHERE place > :base AND place <= :last "
            "AND place < :step + (SELECT min(place) FROM entries WHERE place > :base)",
            {"base": number << 32, "last": (number << 32) + LAST_SEQ, "step": step},
        )
        if not swept.rowcount:
            self._connection.execute("DELETE FROM doomed WHERE number = ?", (number,))
        return True

    def put(self, kind: str, name: str, data: bytes | None) -> None:
        """Store a piece of data, or delete it."""
        if data is None:
            self._connection.execute("DELETE FROM pieces WHERE kind = ? AND name = ?", (kind, name))
        else:
            self._connection.execute(
                "INSERT INTO pieces (kind, name, data) VALUES (?, ?, ?) "
                "ON CONFLICT (kind, name) DO UPDATE SET data = excluded.data",
                (kind, name, data),
            )

    def flush(self) -> None:
        """Write the added rows. A statement for many rows blocks other threads once, and not many times."""
        rows, self._rows = self._rows, []
        self._insert("INSERT INTO entries (place, data) VALUES ", "(?, ?)", rows)
        logs = [(number, record.last_seq, record.size) for number, record in self._logs.items()]
        self._logs.clear()
        self._insert("INSERT OR REPLACE INTO logs (number, last_seq, size) VALUES ", "(?, ?, ?)", logs)

    def give_back(self) -> bool:
        """Return some of the empty pages to the system. Return whether there are more.

        Not in a transaction.
        """
        empty = self._empty_pages()
        if empty <= SPARE_PAGES:
            return False
        pages = min(empty - SPARE_PAGES, SLICE_PAGES)
        # With `execute` it would return a row for each page.
        self._connection.executescript(f"PRAGMA incremental_vacuum({pages})")
        self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()  # makes the file shorter
        return True

    def _empty_pages(self) -> int:
        (empty,) = self._connection.execute("PRAGMA freelist_count").fetchone()
        return int(empty)

    def _insert(self, head: str, row_places: str, rows: Sequence[tuple[int | bytes, ...]]) -> None:
        for first in range(0, len(rows), MOST_ROWS):
            some = rows[first : first + MOST_ROWS]
            places = ",".join([row_places] * len(some))
            self._connection.execute(head + places, [value for row in some for value in row])

    def _add(self, run_id: str, entries: Sequence[Entry]) -> Kept:
        run = self.running.get(run_id)
        if run is None:
            gone = f"run {run_id} has ended or was deleted; nothing can be added to it"
            raise JournalConflict(self._where, gone)
        number, record = run.number, extended(self._where, run.record, entries)
        self._rows += [((number << 32) + entry.seq, entry.data) for entry in entries]
        self.running[run_id] = changed = Kept(number, record)
        self._logs[number] = record
        return changed

    def _number(self, run_id: str) -> int | None:
        try:
            row = self._connection.execute("SELECT number FROM runs WHERE id = ?", (run_id,)).fetchone()
        except UnicodeEncodeError:  # half of a character: no run has such an id
            return None
        return None if row is None else int(row[0])
