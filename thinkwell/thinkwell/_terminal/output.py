"""The output of displays: standard error, past its buffer."""

from __future__ import annotations

import io
import os
import select
import sys
from typing import TextIO, cast


def direct(stream: TextIO) -> TextIO:
    """Return a stream that writes to the same file without taking the lock of the other's buffer.

    A thread that waits for a blocked terminal would hold that lock; Python could then not even exit. Streams
    that are not files of the system are returned unchanged.
    """
    try:
        fd = stream.fileno()
    except (OSError, ValueError):
        return stream
    if sys.platform == "win32":  # consoles take text, not bytes
        return stream
    return cast("TextIO", _Direct(stream, fd))


class _Direct(io.TextIOBase):
    """Text that is written to a file descriptor at once."""

    def __init__(self, stream: TextIO, fd: int) -> None:
        super().__init__()
        self._stream = stream
        self._fd = fd

    @property
    def encoding(self) -> str:  # type: ignore[override]  # a text stream's own has no getter there
        return self._stream.encoding or "utf-8"

    def fileno(self) -> int:
        return self._fd

    def isatty(self) -> bool:
        return os.isatty(self._fd)

    def writable(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        left = memoryview(text.encode(self.encoding, "replace"))
        while left:
            try:
                left = left[os.write(self._fd, left) :]
            except BlockingIOError:  # another program with the same terminal has made it non-blocking
                select.select([], [self._fd], [])
        return len(text)


def in_background() -> bool:
    """Return whether another job has the terminal of this process: a shell started it with ``&``."""
    if sys.platform == "win32":
        return False
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:  # there is no terminal
        return False
    try:
        return os.tcgetpgrp(terminal) != os.getpgrp()
    except OSError:  # pragma: no cover - it has gone meanwhile
        return False
    finally:
        os.close(terminal)
