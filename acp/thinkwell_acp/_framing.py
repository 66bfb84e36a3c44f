"""Bytes in, lines out. Nothing here waits or knows what a line means.

Only the byte 0x0A ends a line: JSON may hold U+2028, U+0085 or a carriage return inside its strings, and a
character may be cut in two between reads.

A long line comes in many reads. Its pieces are copied, each as it comes, into a buffer that is kept for the
next long line. Joining at every read would take quadratic time on a line of several megabytes; joining once
at the end would still ask the system for fresh memory for every line, and for a line of a megabyte that costs
more than decoding it.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from typing import TypeAlias

from thinkwell_acp.errors import FrameTooLong

MAX_LINE = 64 * 1024 * 1024
"""Default limit for one line, in bytes. ACP sets none; files and images travel inline."""


KEPT_BUFFER = 8 * 1024 * 1024
"""Largest buffer that is kept for the next long line, in bytes."""

Line: TypeAlias = bytes | memoryview
"""A line without its end. One that is a view is valid until the next bytes are fed."""


def trimmed(line: bytes) -> bytes:
    """Return a line without the byte order mark that some programs begin with; nothing where it is blank."""
    line = line.removeprefix(BOM_UTF8)
    return b"" if line.isspace() else line


class LineSplitter:
    """Cuts a stream of bytes into lines."""

    def __init__(self, max_line: int = MAX_LINE) -> None:
        self._max_line = max_line
        self._begun = b""  # of a line that has come in one piece so far
        self._long = memoryview(bytearray())
        self._size = 0  # of what stands in the buffer; 0: no long line has begun
        self.failure: FrameTooLong | None = None
        """Set from the first line that is longer than the limit, complete or not."""

    def feed(self, data: bytes) -> list[Line]:
        """Take the next bytes and return the lines that they complete, without their line ends.

        Raises:
            FrameTooLong: A line is longer than the limit. Lines that stand before it are returned first; then
                the
                error is raised by the next call, and until then it is in `failure`.
        """
        if self.failure is not None:
            raise self.failure
        if not self._size and len(self._long) > KEPT_BUFFER:
            self._long = memoryview(bytearray())
        lines: list[Line] = data.split(b"\n")  # type: ignore[assignment]  # a list of bytes, so far
        tail: bytes = lines.pop()  # type: ignore[assignment]
        if not lines:
            self._go_on(tail)
        else:
            if self._size:
                self._copy(lines[0])
                lines[0] = self._long[: self._size]
                self._size = 0
            elif self._begun:
                lines[0] = self._begun + lines[0]
            self._begun = tail
        pending = self._size + len(self._begun)
        if pending + len(data) > self._max_line or (lines and len(lines[0]) > self._max_line):
            self._check(lines, pending)
        return lines

    def _go_on(self, piece: bytes) -> None:
        if not self._size and not self._begun:
            self._begun = piece
            return
        if not self._size:
            self._copy(self._begun)
            self._begun = b""
        self._copy(piece)

    def _copy(self, piece: Line) -> None:
        end = self._size + len(piece)
        if end > len(self._long):
            larger = memoryview(bytearray(2 * end))
            larger[: self._size] = self._long[: self._size]
            self._long = larger
        self._long[self._size : end] = piece
        self._size = end

    def _check(self, lines: list[Line], pending: int) -> None:
        for index, line in enumerate(lines):
            if len(line) > self._max_line:
                del lines[index:]
                break
        else:
            if pending <= self._max_line:
                return
        self.failure = FrameTooLong(self._max_line)
        self._forget()
        if not lines:
            raise self.failure

    def _forget(self) -> None:
        self._begun = b""
        self._size = 0
        self._long = memoryview(bytearray())

    def finish(self) -> bytes:
        """Return the last line where it was not terminated, else nothing."""
        line = bytes(self._long[: self._size]) or self._begun
        self._forget()
        return line
