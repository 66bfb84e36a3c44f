"""A text that comes in chunks, made fit to be shown as it comes. See `thinkwell._display.text`."""

from __future__ import annotations

import re
from typing import Final

from thinkwell._display.text import SEQUENCE, TAB, clean

_BEGUN: Final = re.compile(
    rf"""
    (?: (?: \x1b\[ | \x9b ) [0-?]{{0,{SEQUENCE}}}+ [\ -/]{{0,{SEQUENCE}}}+
    | (?: \x1b\] | \x9d ) [^\x07\x1b\x80-\x9f]{{0,{SEQUENCE}}}+ \x1b?
    | (?: \x1b[PX^_] | [\x90\x98\x9e\x9f] ) [^\x1b\x80-\x9f]{{0,{SEQUENCE}}}+ \x1b?
    | \x1b [\ -/]{{0,{SEQUENCE}}}+
    ) \Z
    """,
    re.VERBOSE,
)
"""What may be the beginning of something that a terminal obeys. In linear time, as what `clean` drops."""

_LINE: Final = 12
"""Characters of the current line that are looked at again: one with all the marks that it keeps, and more."""


class CleanChunks:
    """Returns chunks of one text as `clean` returns the whole.

    What depends on what comes next is kept back: of an escape sequence that has only begun, nothing is
    returned before its end was seen, or is not to be expected any more.
    """

    def __init__(self) -> None:
        self._kept = ""
        """What was taken and not returned."""
        self._line = ""
        """The end of what was returned, from a line feed or a stop of tabs on; empty while nothing was."""

    def take(self, chunk: str) -> str:
        """Return what can be shown now."""
        text = self._kept + chunk
        begun = _BEGUN.search(text)
        end = len(text) if begun is None else begun.start()
        end = _before_half_a_break(text, end)
        self._kept = text[end:]
        return self._clean(text[:end])

    def rest(self) -> str:
        """Return what was kept back: nothing comes after it."""
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
    """Return where a carriage return stands that may yet get its line feed; else the end."""
    at = text.rfind("\r", max(end - SEQUENCE, 0), end)
    return at if at >= 0 and clean(text[at:end]) == "\n" else end
