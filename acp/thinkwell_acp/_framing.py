"""Bytes in, lines out. It never waits, and does not read the lines.

Only the byte 0x0A ends a line: JSON may contain U+2028, U+0085 or a carriage return in its strings, and a
character may be split between reads.

Bytes are read straight into one buffer and stay there until their line is complete. The buffer is kept for
the next bytes: allocating fresh memory for each line of a megabyte costs more than decoding it.
"""

from __future__ import annotations

from codecs import BOM_UTF8

from thinkwell_acp.errors import FrameTooLong

MAX_LINE = 64 * 1024 * 1024
"""Default limit for one line, in bytes. ACP sets none; files and images are sent inline."""


KEPT_BUFFER = 8 * 1024 * 1024
"""Largest buffer that is kept for the next long line, in bytes."""

_NOTHING = memoryview(b"")


def trimmed(line: bytes) -> bytes:
    """Return a line without the byte order mark that some programs write; empty if it is blank."""
    line = line.removeprefix(BOM_UTF8)
    return b"" if line.isspace() else line


class LineSplitter:
    """Splits a stream of bytes into lines."""

    def __init__(self, max_line: int = MAX_LINE) -> None:
        self._max_line = max_line
        self._buffer = bytearray()
        self._view = memoryview(self._buffer)
        self._begin: int = 0  # of the incomplete line
        self._end: int = 0  # of the bytes read
        self.failure: FrameTooLong | None = None
        """Set from the first line that is longer than the limit, complete or not."""

    def space(self, size: int) -> memoryview:
        """Return the place for the next bytes: room for `size` of them, for more if a long line has begun.

        It overwrites what `filled` returned last.
        """
        begun = self._end - self._begin
        room = max(size, begun)  # so that a line of any length takes few buffers
        old = self._view[self._begin : self._end]
        if begun + size > len(self._view) or len(self._view) > KEPT_BUFFER >= begun + room:
            self._buffer = bytearray(begun + room)
            self._view = memoryview(self._buffer)
        elif not self._begin:  # an incomplete line is there already, and may be long
            return self._view[begun : begun + room]
        self._view[:begun] = old
        self._begin, self._end = 0, begun
        return self._view[begun : begun + room]

    def filled(self, size: int) -> memoryview:
        """Return the whole lines that `size` bytes put into the space complete, if any.

        Raises:
            FrameTooLong: A line is longer than the limit. Earlier lines are returned first; then the error is
                raised by the next call, and until then it is in `failure`.
        """
        if self.failure is not None:
            raise self.failure
        last = self._buffer.rfind(b"\n", self._end, self._end + size) + 1
        self._end += size
        block = _NOTHING
        if last:
            block = self._view[self._begin : last]
            self._begin = last
        if len(block) > self._max_line or self._end - self._begin > self._max_line:
            return self._check(block)
        return block

    def _check(self, block: memoryview) -> memoryview:
        good = 0
        for line in self.cut(block):
            if len(line) > self._max_line:
                break
            good += len(line) + 1
        else:
            if self._end - self._begin <= self._max_line:
                return block
        self.failure = FrameTooLong(self._max_line)
        self._forget()
        if not good:
            raise self.failure
        return block[:good]

    def count(self, block: memoryview) -> int:
        """Return the number of lines in the block that `filled` returned last."""
        return self._buffer.count(b"\n", self._begin - len(block), self._begin)

    @staticmethod
    def cut(block: memoryview) -> list[bytes]:
        """Return the lines of a block, without their line ends."""
        lines = bytes(block).split(b"\n")
        lines.pop()
        return lines

    def feed(self, data: bytes) -> list[bytes]:
        """Take the next bytes and return the lines that they complete, as `space` and `filled` do."""
        self.space(len(data))[: len(data)] = data
        return self.cut(self.filled(len(data)))

    def _forget(self) -> None:
        self._begin = self._end = 0
        self._buffer = bytearray()
        self._view = memoryview(self._buffer)

    def finish(self) -> bytes:
        """Return the last line if it was not terminated, else nothing."""
        line = bytes(self._view[self._begin : self._end])
        self._forget()
        return line
