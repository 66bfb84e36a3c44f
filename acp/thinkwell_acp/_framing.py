"""Bytes in, lines out. Nothing here waits or knows what a line means.

Only the byte 0x0A ends a line: JSON may hold U+2028, U+0085 or a carriage return inside its strings, and a character may
be cut in two between reads. The pieces of a long line are kept in a list and joined once; joining at every read would take
quadratic time on a line of several megabytes.
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

    def feed(self, data: bytes) -> list[bytes]:
        """Take the next bytes and return the lines that they complete, without their line ends.

        Raises:
            FrameTooLong: A line is longer than the limit, complete or not.
        """
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
        longest = max(map(len, lines), default=0) if len(data) > self._max_line else len(lines[0]) if lines else 0
        if max(longest, self._size) > self._max_line:
            raise FrameTooLong(self._max_line)
        return lines

    def finish(self) -> bytes:
        """Return the last line where it was not terminated, else nothing."""
        line = b"".join(self._pieces)
        self._pieces.clear()
        self._size = 0
        return line
