"""A growing text, cut at ends of paragraphs: complete parts never change any more."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

CODE_LINES: Final = 12
"""Lines of code that are returned before the code block is complete."""

LONGEST: Final = 6_000
"""Characters of a paragraph; a longer one is cut where a line or a word ends."""

BACKLOG: Final = 50_000
"""Most characters at once; of more, only the end is kept: it cannot be read in a terminal."""

TAIL: Final = 3_000
"""Most characters of an incomplete part that are shown."""

_FENCE: Final = re.compile(r"([ \t]*)(`{3,}|~{3,})[ \t]*([^\n`]*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A paragraph, or lines of code."""

    text: str
    """As the agent sent it."""
    code: str | None = None
    """The language of code; empty if it is unknown."""
    goes_on: bool = False
    """Whether it belongs to the piece before, without a gap."""
    skipped: int = 0
    """How many characters are left out before it."""


class Prose:
    """Cuts one message."""

    def __init__(self) -> None:
        self._at = 0
        """The position up to which pieces were returned."""
        self._scanned = 0
        """The position up to which lines were read; at the beginning of a line, or in a very long one."""
        self._fence = ""
        """The fence that ends the current code."""
        self._language = ""
        self._indent = ""
        self._lines = 0
        """Lines of code since `_at`."""
        self._goes_on = False
        """Whether a part of the paragraph or code was returned."""
        self._skipped = 0

    def take(self, text: str, *, whole: bool) -> Iterator[Piece]:
        """Yield the newly complete pieces.

        Args:
            text: The whole message so far. It begins with the text of the last call.
            whole: Whether nothing more is expected; more text would be another paragraph.
        """
        self._skip(text)
        while (end := text.find("\n", self._scanned)) >= 0:
            yield from self._line(text, self._scanned, end)
            self._scanned = end + 1
        if not self._fence and len(text) - self._at > LONGEST:
            yield from self._cut(text)
        if whole:
            yield from self._piece(text, len(text), len(text))
            self._scanned = len(text)
            self._fence = ""
            self._goes_on = False

    def tail(self, text: str) -> str:
        """Return the end of the incomplete part."""
        return text[max(self._at, len(text) - TAIL) :]

    @property
    def in_code(self) -> bool:
        """Whether that part is code."""
        return bool(self._fence)

    def _skip(self, text: str) -> None:
        over = len(text) - self._scanned - BACKLOG
        if over <= 0:
            return
        to = text.find("\n\n", self._scanned + over, self._scanned + over + LONGEST)
        to = self._scanned + over if to < 0 else to
        self._skipped += to - self._at
        self._at = self._scanned = to
        self._fence, self._goes_on = "", False

    def _line(self, text: str, begin: int, end: int) -> Iterator[Piece]:
        """Read a complete line."""
        if self._fence:
            if _closes(text[begin : min(end, begin + 200)], self._fence):
                yield from self._piece(text, begin, end + 1)
                self._fence, self._goes_on = "", False
                return
            self._lines += 1
            if self._lines >= CODE_LINES or end - self._at > LONGEST:
                yield from self._piece(text, end, end + 1)
                self._goes_on = True
        elif opened := _FENCE.match(text, begin, end):
            yield from self._piece(text, begin, end + 1)
            self._at = end + 1
            self._indent, self._fence, self._language = opened[1], opened[2], opened[3].strip()
            self._lines, self._goes_on = 0, False
        elif not text[begin : min(end, begin + LONGEST)].strip():
            yield from self._piece(text, begin, end + 1)
            self._goes_on = False
        elif end - self._at > LONGEST:
            yield from self._piece(text, end, end + 1)
            self._goes_on = True

    def _cut(self, text: str) -> Iterator[Piece]:
        """Cut an endless part where a line or a word ends."""
        while len(text) - self._at > LONGEST:
            half, most = self._at + LONGEST // 2, self._at + LONGEST
            found = (text.rfind(char, half, most) for char in "\n ")
            end = next((each for each in found if each >= 0), -1)
            yield from self._piece(text, most if end < 0 else end, most if end < 0 else end + 1)
            self._scanned = max(self._scanned, self._at)
            self._goes_on = True

    def _piece(self, text: str, end: int, then: int) -> Iterator[Piece]:
        """Yield the text up to an end; continue after it."""
        found = text[self._at : end]
        self._at, self._lines = then, 0
        if self._fence:
            code = "\n".join(row.removeprefix(self._indent) for row in found.rstrip("\n").split("\n"))
            if code or (found and self._goes_on):
                yield Piece(text=code, code=self._language, goes_on=self._goes_on, skipped=self._left_out())
        elif found.strip():
            yield Piece(text=found.strip("\n"), goes_on=self._goes_on, skipped=self._left_out())

    def _left_out(self) -> int:
        skipped, self._skipped = self._skipped, 0
        return skipped


def _closes(row: str, fence: str) -> bool:
    row = row.strip()
    return row.startswith(fence) and not row.strip(fence[0])
