"""Reads from the file of a `SqliteJournal`.

Everything comes in one row, joined by SQLite: a connection lets other threads run before each row, and beside
a busy event loop it may wait long before each. A page of a thousand rows took a minute where a single row
takes a millisecond. Bytes come as hexadecimal digits, so no content can break the row.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from thinkwell.journal._types import Entry, RunRecord

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping, Sequence

    from thinkwell.events import JsonValue

MOST_ROWS: Final = 2048
"""Most entries of a page, so that the search for its end is bounded if entries are small."""

MOST: Final = 2**62
"""More than any number in the file, and not too large for SQLite."""

LAST_SEQ: Final = 2**32 - 1
"""The highest number of an entry that fits into its place."""

_BASE: Final = "(SELECT number << 32 FROM runs WHERE id = :id)"
"""The place before the first entry of a run."""

_LINE: Final = "hex(record) || ' ' || last_seq || ' ' || size || ' ' || number"

_SIZES: Final = f"""
SELECT group_concat(size) FROM (
    SELECT length(data) AS size FROM entries
    WHERE place > {_BASE} + :after AND place <= {_BASE} + {LAST_SEQ}
    ORDER BY place LIMIT :rows
)
"""  # noqa: S608 - ours
"""The sizes of the next entries. Sums of them in SQL (a window) would take four times as long."""

_SINGLE: Final = f"SELECT data FROM entries WHERE place = {_BASE} + :last"  # noqa: S608

_PAGE: Final = f"""
SELECT group_concat(hex(data), ' ') FROM (
    SELECT data FROM entries WHERE place > {_BASE} + :after AND place <= {_BASE} + :last ORDER BY place
)
"""  # noqa: S608

_decoder = msgspec.json.Decoder(RunRecord)


class Kept(NamedTuple):
    """A run as the file has it."""

    number: int
    """Its number in the tables."""
    record: RunRecord


def read_entries(connection: sqlite3.Connection, run_id: str, after: int, most: int) -> list[Entry]:
    """Return entries of a run after a number, of so many bytes at most; at least one if there is one."""
    after = min(max(after, 0), LAST_SEQ)
    sizes = _only(connection, _SIZES, {"id": run_id, "after": after, "rows": MOST_ROWS})
    page = None
    if sizes is not None:
        ends = [*accumulate(map(int, str(sizes).split(",")))]
        last = after + max(bisect_right(ends, most), 1)
        values = {"id": run_id, "after": after, "last": last}
        page = _only(connection, _SINGLE if last == after + 1 else _PAGE, values)
    if page is None:  # there are none, or the run was deleted meanwhile
        return []
    parts = [page] if isinstance(page, bytes) else [bytes.fromhex(part) for part in str(page).split(" ")]
    return [Entry(seq, part) for seq, part in enumerate(parts, after + 1)]


def find_run(connection: sqlite3.Connection, run_id: str) -> RunRecord | None:
    """Return the state of a run."""
    return next(iter(_records(connection, "WHERE id = :id", {"id": run_id})), None)


def find_run_by_key(connection: sqlite3.Connection, caller: str, key: str) -> RunRecord | None:
    """Return the state of the run that a caller has started with a key."""
    values = {"caller": caller, "key": key}
    return next(iter(_records(connection, "WHERE caller = :caller AND key = :key", values)), None)


def find_runs(connection: sqlite3.Connection, given: Mapping[str, str | None], limit: int) -> list[RunRecord]:
    """Return the runs that match, latest first.

    Args:
        connection: To the file.
        given: ``caller``, ``thread``, ``status`` and ``before`` (an id). ``None`` matches everything.
        limit: How many at most.
    """
    wanted = {name: value for name, value in given.items() if value is not None}
    conditions = [f"{name} = :{name}" for name in ("caller", "thread") if name in wanted]
    if "status" in wanted:  # a conversation has fewer runs than a status: its index is the one to use
        conditions.append("+status = :status" if "thread" in wanted else "status = :status")
    if "before" in wanted:
        conditions.append("number < (SELECT number FROM runs WHERE id = :before)")
    where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    tail = f"{where} ORDER BY number DESC LIMIT :limit"
    return _records(connection, tail, {**wanted, "limit": _limit(limit)})


def find_oldest(connection: sqlite3.Connection, limit: int) -> list[RunRecord]:
    """Return runs that have ended, earliest end first."""
    tail = "WHERE ended IS NOT NULL ORDER BY ended, number LIMIT :limit"
    return _records(connection, tail, {"limit": _limit(limit)})


def find_running(connection: sqlite3.Connection) -> list[Kept]:
    """Return the running runs, oldest first."""
    return _kept(connection, "WHERE status = 'running' ORDER BY number", {})


def read_size(connection: sqlite3.Connection) -> int:
    """Return the bytes of all entries."""
    return int(str(_only(connection, "SELECT coalesce(sum(size), 0) FROM logs", {})))


def read_piece(connection: sqlite3.Connection, kind: str, name: str) -> bytes | None:
    """Return a piece of data."""
    values = {"kind": kind, "name": name}
    found = _only(connection, "SELECT data FROM pieces WHERE kind = :kind AND name = :name", values)
    return found if isinstance(found, bytes) else None


def read_pieces(connection: sqlite3.Connection, kind: str) -> list[tuple[str, bytes]]:
    """Return the pieces of a kind with their names, in the order in which they were first stored."""
    inner = "SELECT hex(name) || ' ' || hex(data) AS line FROM pieces WHERE kind = :kind ORDER BY number"
    found = _only(connection, f"SELECT group_concat(line) FROM ({inner})", {"kind": kind})  # noqa: S608
    if found is None:
        return []
    pairs = (line.split(" ") for line in str(found).split(","))
    return [(bytes.fromhex(name).decode(), bytes.fromhex(data)) for name, data in pairs]


def _records(connection: sqlite3.Connection, tail: str, values: Mapping[str, JsonValue]) -> list[RunRecord]:
    return [kept.record for kept in _kept(connection, tail, values)]


def _kept(connection: sqlite3.Connection, tail: str, values: Mapping[str, JsonValue]) -> list[Kept]:
    inner = f"SELECT {_LINE} AS line FROM runs CROSS JOIN logs USING (number) {tail}"  # noqa: S608 - ours
    found = _only(connection, f"SELECT group_concat(line) FROM ({inner})", values)  # noqa: S608
    return [] if found is None else [_read(line.split(" ")) for line in str(found).split(",")]


def _read(parts: Sequence[str]) -> Kept:
    record = _decoder.decode(bytes.fromhex(parts[0]))
    if record.status == "running":  # else it says so itself
        record = replace(record, last_seq=int(parts[1]), size=int(parts[2]))
    return Kept(int(parts[3]), record)


def _only(connection: sqlite3.Connection, query: str, values: Mapping[str, JsonValue]) -> object:
    """Return the value of the only row."""
    try:
        row = connection.execute(query, values).fetchone()
    except UnicodeEncodeError:  # half of a character in the query: the file has no such name
        return None
    return None if row is None else row[0]


def _limit(limit: int) -> int:
    return min(max(limit, 0), MOST)
