"""Clean a text that comes in chunks. See `thinkwell._display.text`."""

from __future__ import annotations

from typing import Final

from thinkwell._display.text import SEQUENCE, TAB, clean, unfinished

_LINE: Final = 12
"""Characters of the current line that are checked again: one with all the marks that it keeps, and more."""


class CleanChunks:
    """Returns chunks of one text as `clean` returns the whole.

    Text that depends on the next chunk is kept back: no part of an unfinished escape sequence is returned
    before its end was seen, or can no longer come.
    """

    def __init__(self) -> None:
        self._kept = ""
        """Text that was taken and not yet returned."""
        self._line = ""
        """The end of the returned text, from a line feed or a tab stop on; empty at first."""

    def take(self, chunk: str) -> str:
        """Return the text that can be shown now."""
        text = self._kept + chunk
        end = _before_half_a_break(text, unfinished(text))
        self._kept = text[end:]
        return self._clean(text[:end])

    def rest(self) -> str:
        """Return the text that was kept back, at the end."""
        text, self._kept = self._kept, ""
        return self._clean(text)

    def _clean(self, text: str) -> str:
        shown = clean(self._line + text)
        line = shown[shown.rfind("\n") + 1 :]
        stop = max(len(line) - _LINE, 0) // TAB * TAB
        new = shown[len(self._line) :]
        if shown:
            self._line = f"\n{line[stop:]}"
        return new


def _before_half_a_break(text: str, end: int) -> int:
    """Return the place of a carriage return that may still get its line feed; else the end."""
    at = text.rfind("\r", max(end - SEQUENCE, 0), end)
    return at if at >= 0 and clean(text[at:end]) == "\n" else end
