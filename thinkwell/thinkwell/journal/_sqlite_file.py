"""The file of a `SqliteJournal`: its owner, its format, and the meaning of its errors."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Final, TypeVar

from msgspec import MsgspecError

from thinkwell.journal._errors import JournalError, JournalUnwritable
from thinkwell.journal._sqlite_reading import find_running

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from thinkwell.journal._sqlite_reading import Kept

T = TypeVar("T")

APPLICATION: Final = 0x54574A4C
"""``application_id`` of the file: it marks a journal."""

VERSION: Final = 1
"""``user_version`` of the file: the format of its tables."""

READERS: Final = 4
"""Threads that read at the same time. A page takes less than a millisecond."""

STATEMENTS: Final = 512
"""Statements that a connection keeps compiled: those that add entries differ by their number of rows."""

PATIENCE: Final = 30.0
"""Seconds to wait for a program that writes to the file regardless, such as the shell of SQLite."""

OPENING: Final = 5.0
"""The same while the file is opened: an early error is better than silence."""

WAL_BYTES: Final = 8 * 1024 * 1024
"""Size to which SQLite cuts its write-ahead log on restart, in bytes."""

SCHEMA: Final = """
CREATE TABLE runs (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    caller TEXT NOT NULL,
    thread TEXT,
    key TEXT,
    status TEXT NOT NULL,
    ended REAL,
    record BLOB NOT NULL
);
CREATE UNIQUE INDEX runs_by_key ON runs (caller, key) WHERE key IS NOT NULL;
CREATE INDEX runs_by_caller ON runs (caller);
CREATE INDEX runs_by_status ON runs (status, caller);
CREATE INDEX runs_by_thread ON runs (thread, caller) WHERE thread IS NOT NULL;
CREATE INDEX runs_by_end ON runs (ended) WHERE ended IS NOT NULL;
CREATE TABLE logs (
    number INTEGER PRIMARY KEY,
    last_seq INTEGER NOT NULL,
    size INTEGER NOT NULL
);
CREATE TABLE entries (
    place INTEGER PRIMARY KEY,
    data BLOB NOT NULL
);
CREATE TABLE doomed (
    number INTEGER PRIMARY KEY,
    step INTEGER NOT NULL
);
CREATE TABLE pieces (
    number INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    data BLOB NOT NULL,
    UNIQUE (kind, name)
);
"""
"""``runs`` has what changes when a run begins and ends, and ``logs`` the little that changes with each entry.
The ``place`` of an entry is its run's number, moved up by 32 bits, and its own. Both as the key of a table
without such a place would be plainer, but SQLite keeps little of a row there, and takes a page of its own for
each entry above a kilobyte.
``doomed`` has the runs that are gone but for their entries, of which ``step`` can be deleted at once."""

REASONS: Final = {
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened; check whether it is a file, and whose",
    sqlite3.SQLITE_PERM: "it cannot be opened; check whose the file and its folder are",
    sqlite3.SQLITE_IOERR: "the disk failed; look at it, then try again",
    sqlite3.SQLITE_NOTADB: "it is not a database; give the journal another file",
    sqlite3.SQLITE_CORRUPT: (
        "it is damaged; put a copy from before in its place, or move it away together with the files "
        "beside it that begin with its name"
    ),
    sqlite3.SQLITE_BUSY: "another program is writing to it; end that program, then try again",
    sqlite3.SQLITE_LOCKED: "another program is writing to it; end that program, then try again",
    sqlite3.SQLITE_TOOBIG: "it is too large to be kept; a gigabyte is the most",
}

_FULL: Final = ("the disk is full", "make room, then try again")
_FAILED: Final = ("the disk has failed, or is full", "look at it, then try again")  # a quota, for example

UNWRITABLE: Final = {
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_READONLY: ("the disk takes no writes", "check whose the file and its folder are"),
    sqlite3.SQLITE_IOERR_WRITE: _FAILED,
    sqlite3.SQLITE_IOERR_FSYNC: _FAILED,
    sqlite3.SQLITE_IOERR_TRUNCATE: _FAILED,
    sqlite3.SQLITE_IOERR_SHMSIZE: _FAILED,
}
"""The reason and the remedy if something cannot be stored, by SQLite's codes."""

ROOM: Final = 256 * 1024
"""Free bytes on the disk that a new run needs, so that its end can be stored, too."""

MOVED: Final = (
    "it was deleted, moved or replaced while it was open, and what is written to it would be lost; put it "
    "back, or end the server and start it again"
)


class FileAway(JournalError):  # noqa: N818 - says what happened, to be tried again
    """Nothing can be written now."""


@contextmanager
def understood(where: str) -> Generator[None]:
    """Turn errors of SQLite into errors of the journal."""
    try:
        yield
    except sqlite3.Error as exc:
        extended = getattr(exc, "sqlite_errorcode", 0)
        code = extended & 0xFF
        flaw = UNWRITABLE.get(extended) or UNWRITABLE.get(code)
        if flaw is not None:
            raise _unwritable(where, flaw, exc) from exc
        kind = FileAway if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) else JournalError
        raise kind(where, f"{REASONS.get(code, 'SQLite failed')} ({exc})") from exc
    except MsgspecError as exc:
        raise JournalError(where, f"{REASONS[sqlite3.SQLITE_CORRUPT]} ({exc})") from exc


class JournalFile:
    """The file, open for this process alone.

    Args:
        path: Its path; it need not exist.
        where: Its name in errors.

    Raises:
        JournalError: It cannot be opened, another process has it, or it is not a journal.
    """

    def __init__(self, path: Path, where: str) -> None:
        self.where = where
        self._readers: SimpleQueue[sqlite3.Connection | None] = SimpleQueue()
        with understood(where), ExitStack() as stack, ExitStack() as refused:
            path = _take(path, where, stack, refused)
            self.connection = _connect(path, stack)
            _prepare(self.connection, where)
            self.running: list[Kept] = find_running(self.connection)
            """The runs that were running when the last process with this file ended."""
            for _ in range(READERS):
                reader = _connect(path, stack)
                reader.execute("PRAGMA query_only = ON")
                self._readers.put(reader)
            self.connection.execute(f"PRAGMA busy_timeout = {round(PATIENCE * 1000)}")
            self._folder = path.parent
            self._places = {each: _identity(each) for each in (path, Path(f"{path}-wal"))}
            self._stack = stack.pop_all()
            refused.pop_all()

    def check(self) -> None:
        """Check that the file is still in its place. SQLite would go on writing to a file that was removed.

        Raises:
            FileAway: It is gone.
        """
        if any(_identity(path) != known for path, known in self._places.items()):
            raise FileAway(self.where, MOVED)

    def check_room(self) -> None:
        """Check that there is room for a run.

        Raises:
            JournalUnwritable: There is none.
        """
        disk = shutil.disk_usage(self._folder)
        if disk.total and disk.free < ROOM:  # some file systems do not report their size
            raise _unwritable(self.where, _FULL, f"{disk.free} bytes are free, and a run needs {ROOM}")

    def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Read with a connection that no other thread uses at the same time. For any thread.

        Raises:
            JournalError: It cannot be read, or is closed.
        """
        connection = self._readers.get()
        try:
            if connection is None:
                raise JournalError(self.where, "it was closed meanwhile")
            with understood(self.where):
                return work(connection)
        except JournalError:
            if connection is not None:
                self.check()  # it says more than SQLite does
            raise
        finally:
            self._readers.put(connection)

    def close(self) -> None:
        """End all reading, and release the file."""
        for _ in range(READERS):
            self._readers.get()
        self._readers.put(None)
        with understood(self.where):
            self._stack.close()


def _unwritable(where: str, flaw: tuple[str, str], said: object) -> JournalUnwritable:
    what, do = flaw
    return JournalUnwritable(where, f"{what}; {do} ({said})", what)


def _identity(path: Path) -> tuple[int, int] | None:
    """Return the identity of a file, whatever its name; ``None`` if it does not exist."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _take(path: Path, where: str, stack: ExitStack, refused: ExitStack) -> Path:
    """Create the file if it is missing, and lock one beside it. SQLite's locks last as long as a transaction.

    Args:
        path: Its path.
        where: Its name in errors.
        stack: Gets the end of the lock.
        refused: Gets what to do if the file is not opened after all.

    Returns:
        The real path of the file.
    """
    try:
        path = path.resolve()
        for missing in reversed([folder for folder in path.parents if not folder.exists()]):
            missing.mkdir(0o700, exist_ok=True)
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise JournalError(where, "it is a device, not a file; give the journal a file of its own")
        lock, is_new = _open_lock(path)
        stack.callback(os.close, lock)
        _lock(lock, path, where)
        if is_new:
            refused.callback(_remove_lock, path)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))  # the files that SQLite adds get its mode
    except (OSError, RuntimeError, ValueError) as exc:  # a circle of links, or an invalid name
        reason = getattr(exc, "strerror", None) or exc
        raise JournalError(
            where, f"it cannot be opened ({reason}); check the path, and whose its folder is"
        ) from exc
    return path


def _open_lock(path: Path) -> tuple[int, bool]:
    """Open the lock file, and return whether it is new."""
    name = f"{path}-lock"
    try:
        return os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), True
    except FileExistsError:
        return os.open(name, os.O_RDWR | os.O_CREAT, 0o600), False


def _remove_lock(path: Path) -> None:
    """Leave nothing beside a file that is not a journal. Only for the holder of the lock."""
    with suppress(OSError):
        os.unlink(f"{path}-lock")  # noqa: PTH108 - the path as it was opened


def _lock(lock: int, path: Path, where: str) -> None:
    taken = "another server has it; end that one, or give this one a file of its own"
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(lock, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise JournalError(where, taken) from None
    found = os.fstat(lock)
    if _identity(Path(f"{path}-lock")) != (found.st_dev, found.st_ino):  # it was removed meanwhile
        raise JournalError(where, taken)


def _connect(path: Path, stack: ExitStack) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, timeout=OPENING, isolation_level=None, check_same_thread=False, cached_statements=STATEMENTS
    )
    stack.callback(connection.close)
    return connection


def _prepare(connection: sqlite3.Connection, where: str) -> None:
    """Check that a file is a readable journal, and make one of an empty file."""
    application, version, tables = (
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("application_id", "user_version", "schema_version")
    )
    if not tables:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    elif application != APPLICATION:
        raise JournalError(where, "it is another program's database; give the journal a file of its own")
    elif version > VERSION:
        newer = f"it is of a newer thinkwell (form {version}, and this one knows {VERSION}); update thinkwell"
        raise JournalError(where, f"{newer}, or give this one a file of its own")
    if (
        connection.execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal"
    ):  # pragma: no cover - network disks
        raise JournalError(
            where, "its folder cannot have a database with a log; use a folder of a local disk"
        )
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(f"PRAGMA journal_size_limit = {WAL_BYTES}")
    if not tables:
        head = f"PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION};"
        connection.executescript(f"BEGIN IMMEDIATE; {head} {SCHEMA} COMMIT;")
