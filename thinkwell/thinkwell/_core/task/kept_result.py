"""A result that is kept in a file, so that its task is not run again."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import msgspec

from thinkwell._core.schema.arguments import checked
from thinkwell._core.schema.json_schema import is_object
from thinkwell._core.schema.output import Output, OutputInvalid
from thinkwell.errors import ResultStoreError

if TYPE_CHECKING:
    from collections.abc import Generator

    from thinkwell._core.log.settlement import Settlement
    from thinkwell.events import JsonValue

T = TypeVar("T")

APPLICATION: Final = 0x74776B72
"""Marks our files: ``twkr``."""

VERSION: Final = 1

PATIENCE: Final = 30.0
"""Seconds to wait while another process writes."""


class KeptResult(Generic[T]):
    """The result under a key in a file, which is made where it is missing. Its methods block.

    Args:
        key: The key.
        store: The file.
        output: The type of the result.
    """

    def __init__(self, key: str, store: str | os.PathLike[str], output: Output[T]) -> None:
        self._key = key
        self._path = os.fspath(store)
        self._output = output

    def find(self) -> list[T]:
        """Return the result; nothing where there is none.

        Raises:
            ResultStoreError: The file cannot be used, or the result is not of this type.
        """
        with self._opened() as file:
            rows: list[tuple[bytes]] = file.execute(
                "SELECT result FROM results WHERE key = ?", (self._key,)
            ).fetchall()
        return [self._read(result) for (result,) in rows]

    def keep(self, outcome: Settlement[T]) -> T:
        """Keep the result of a run, unless there is one, and return the one that is kept.

        Raises:
            ResultStoreError: The file cannot be used, or the result in it is not of this type. The error has
                the result of the run.
        """
        result = msgspec.json.encode({"wrapped": outcome.wrapped, "raw": outcome.raw})
        row = (self._key, self._output.name, result)
        try:
            with self._opened() as file, file:
                kept = file.execute("INSERT OR IGNORE INTO results VALUES (?, ?, ?)", row)
            return outcome.value[0] if kept.rowcount else self.find()[0]
        except ResultStoreError as exc:
            exc.result = outcome.value[0]
            raise

    @contextmanager
    def _opened(self) -> Generator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self._path, timeout=PATIENCE)) as file:
                self._prepare(file)
                yield file
        except sqlite3.Error as exc:
            raise self._error(f"it cannot be used ({exc}); check the path, or name another file") from exc

    def _prepare(self, file: sqlite3.Connection) -> None:
        """Check that the file is ours, or make it so.

        Raises:
            ResultStoreError: It is neither ours nor new.
        """
        mark = _number(file, "application_id")
        if mark == APPLICATION:
            if _number(file, "user_version") > VERSION:
                raise self._error("a newer version of thinkwell has written it; use that version")
        elif not file.in_transaction:
            file.execute("BEGIN IMMEDIATE")  # of several that find it new, one makes the table
            self._prepare(file)
            file.commit()
        elif mark or file.execute("SELECT count(*) FROM sqlite_master").fetchone() != (0,):
            raise self._error("it is another program's database; name another file")
        else:
            file.execute("CREATE TABLE results (key TEXT PRIMARY KEY, type TEXT, result BLOB)")
            file.execute(f"PRAGMA user_version = {VERSION}")
            file.execute(f"PRAGMA application_id = {APPLICATION}")

    def _read(self, result: bytes) -> T:
        output = self._output
        try:
            kept: dict[str, Any] = msgspec.json.decode(result, type=dict[str, Any])
            raw: JsonValue = kept["raw"]
            if output.text is not None and isinstance(raw, str):
                return output.text(raw)
            if output.schema is not None and is_object(raw):
                return output.accept(raw, wrapped=kept["wrapped"])
            reason = f"it is not a {output.name}"
        except OutputInvalid as exc:
            reason = "; ".join(exc.errors)
        except (msgspec.MsgspecError, KeyError) as exc:
            reason = f"it cannot be read ({exc})"
        raise self._error(
            f"the result under the key {self._key!r:.100} does not fit: {reason}; use another key"
        )

    def _error(self, reason: str) -> ResultStoreError:
        return ResultStoreError(self._path, self._key, reason)


def _number(file: sqlite3.Connection, pragma: str) -> int:
    number: int = file.execute(f"PRAGMA {pragma}").fetchone()[0]
    return number


def kept_result(
    key: str | None, store: str | os.PathLike[str] | None, output: Output[T]
) -> KeptResult[T] | None:
    """Return where a result is kept; ``None``: it is not.

    Raises:
        TypeError: The key is not a text.
        ValueError: The key is empty, or the key or the file is missing.
    """
    if key is None and store is None:
        return None
    if key is None or store is None:
        raise ValueError('run(key=…, store=…): give both: run(key="job-17", store="jobs.sqlite")')
    if not checked(key, "run(key=…)"):
        raise ValueError("run(key=''): the key is empty; give each task one of its own")
    return KeptResult(key, store, output)
