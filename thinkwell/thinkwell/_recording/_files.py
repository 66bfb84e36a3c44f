"""Files for recordings: readable by their owner only, and used by one recorder at a time."""

from __future__ import annotations

import errno
import os
import stat
import sys
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

_trace_numbers = count(1)


def trace_path(folder: str, agent: str) -> Path:
    """Return a new file's path in the folder for traces."""
    time = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    name = "".join(sign if sign.isalnum() or sign in "-_." else "_" for sign in agent[:60])
    return Path(folder, f"{time}-{name}-{os.getpid()}-{next(_trace_numbers)}.ndjson")


def open_file(path: Path, *, new: bool) -> int:
    """Open a file for writing, for its owner only and exclusively."""
    flags = os.O_WRONLY | os.O_CREAT | (os.O_EXCL if new else 0)
    file = os.open(path, flags | getattr(os, "O_NONBLOCK", 0), 0o600)  # else a pipe without a reader blocks
    try:
        if stat.S_ISREG(os.fstat(file).st_mode):
            _take(file, path)
            os.ftruncate(file, 0)
        else:
            os.set_blocking(file, True)
    except BaseException:
        os.close(file)
        raise
    return file


def _take(file: int, path: Path) -> None:
    if sys.platform != "win32":  # pragma: no branch - the tests run on POSIX
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OSError(errno.EBUSY, "another agent is being recorded in this file", str(path)) from None
        os.fchmod(file, 0o600)
