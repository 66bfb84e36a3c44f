"""Bytes in, lines out. Nothing here waits or knows what a line means.

Only the byte 0x0A ends a line: JSON may hold U+2028, U+0085 or a carriage return inside its strings, and a
character may be cut in two between reads. The pieces of a long line are kept in a list and joined once;
joining at every read would take quadratic time on a line of several megabytes.
"""

from __future__ import annotations

from thinkwell_acp.errors import FrameTooLong

MAX_LINE = 64 * 1024 * 1024
"""Default limit for one line, in bytes. ACP sets none; files and images travel inline."""


class LineSplitter:
    """Cuts a stream of bytes into lines."""

    def __init__(self, max_line: int = MAX_LINE) -> None:
        self._max_line = max_line
        self._pieces: list[bytes] = []
        self._size = 0
        self.failure: FrameTooLong | None = None
        """Set from the first line that is longer than the limit, complete or not."""

    def feed(self, data: bytes) -> list[bytes]:
        """Take the next bytes and return the lines that they complete, without their line ends.

        Raises:
            FrameTooLong: A line is longer than the limit. Lines that stand before it are returned first; then
            the
                error is raised by the next call, and until then it is in `failure`.
        """
        if self.failure is not None:
            raise self.failure
        lines = data.split(b"\n")
        tail = lines.pop()
        if lines and self._pieces:
            self._pieces.append(lines[0])
            lines[0] = b"".join(self._pieces)
            self._pieces.clear()
            self._size = 0
        if tail:
            self._pieces.append(tail)
            self._size += len(tail)
        if self._size + len(data) > self._max_line or (lines and len(lines[0]) > self._max_line):
            self._check(lines)
        return lines

    def _check(self, lines: list[bytes]) -> None:
        for index, line in enumerate(lines):
            if len(line) > self._max_line:
                del lines[index:]
                break
        else:
            if self._size <= self._max_line:
                return
        self.failure = FrameTooLong(self._max_line)
        self._pieces.clear()
        if not lines:
            raise self.failure

    def finish(self) -> bytes:
        """Return the last line where it was not terminated, else nothing."""
        line = b"".join(self._pieces)
        self._pieces.clear()
        self._size = 0
        return line
