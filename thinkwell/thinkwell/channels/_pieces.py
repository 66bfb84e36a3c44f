"""Cut texts that are too long for a message at suitable places.

A cut is made at the end of a paragraph; else of a line, of a sentence, of a word; else anywhere, but never
within one displayed character. The piece before it is then at least half full (a quarter, for a word).

Only white space is dropped at a cut: all of it before the cut, and after it up to the next line, whose
indentation stays. It would be lost anyway: Telegram strips both ends of a message, and blank lines there mean
nothing elsewhere.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

INDENTATION: Final = 80
"""Most characters of indentation. More white space at the start of a line is not indentation."""

LONGEST_CLUSTER: Final = 64
"""Most code points that are kept together because they may be shown as one. A family of emoji takes
eleven."""

_WHITE: Final = " \t\n\r\f\v"
_RUN: Final = re.compile(f"[{_WHITE}]*+")
_SENTENCE: Final = re.compile(r"(?<=[.!?…])[\"'”’»)\]]{0,3}+(?=[ \t\n])|(?<=[。！？])[”’」』）]{0,3}+")
_FLAGS: Final = "".join(map(chr, range(0x1F1E6, 0x1F200)))
"""The letters that make flags, two by two."""

_EXTENDING: Final = re.compile(
    "[\u200c\u200d\u1160-\u11ff\ud7b0-\ud7ff\uff9e\uff9f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]"
)
"""Characters that belong to the one before, besides combining characters: joiners, vowels and finals of
Korean, marks of Japanese, skin colours, and the letters of the flags of regions."""

_VIRAMA: Final = 9
"""The class of combining characters that join two consonants."""


def pieces(text: str, limit: int) -> list[str]:
    """Return a text as pieces of bounded length, in order.

    A text that fits is one piece, unchanged. A text of white space has none. Joined, the pieces are the text
    without white space at the cuts: see this module.

    Args:
        text: Any text.
        limit: Characters (Unicode code points) of a piece.

    Raises:
        ValueError: The limit is below 1.
    """
    if limit < 1:
        raise ValueError(f"a piece cannot have {limit} characters; the limit must be at least 1")
    if not text.strip(_WHITE):
        return []
    return [text] if len(text) <= limit else [text[start:end] for start, end in ranges(text, limit)]


def ranges(text: str, limit: int, first: int | None = None) -> Iterator[tuple[int, int]]:
    """Yield where each piece of a text begins and ends.

    A piece's end depends on no text beyond the character after it. So while a text grows, all pieces but the
    last stay the same.

    Args:
        text: The text.
        limit: Characters of a piece, at least 1.
        first: Characters of the first piece, at least 1; ``None``: `limit`.
    """
    at = 0
    room = limit if first is None else first
    while True:
        begin, shown = _begin(text, at, room)
        if shown == len(text):
            return
        at = _cut(text, begin, shown, room) if len(text) - begin > room else len(text)
        yield begin, begin + len(text[begin:at].rstrip(_WHITE))
        room = limit


def _begin(text: str, at: int, limit: int) -> tuple[int, int]:
    """Return where a piece begins, and its first visible character."""
    run = _RUN.match(text, at)
    shown = at if run is None else run.end()
    if shown > at and limit > 1 and text[shown - 1] == " " and splits(text, at, shown):
        shown -= 1  # a mark combines with the space
    line = text.rfind("\n", at, shown) + 1
    indents = (line > 0 or at == 0) and shown - line <= min(INDENTATION, limit // 2)
    return line if indents else shown, shown


def _cut(text: str, begin: int, shown: int, limit: int) -> int:
    """Return where a piece of a longer text ends: not beyond the limit."""
    end = begin + limit
    half = max(begin + limit // 2, shown + 1)
    for found in (
        text.rfind("\n\n", half, end + 1),
        text.rfind("\n", half, end + 1),
        _sentence(text, half, end),
        _word(text, max(begin + limit // 4, shown + 1), end),
    ):
        if found >= 0:
            return found
    return _anywhere(text, begin, end)


def _sentence(text: str, start: int, end: int) -> int:
    last = -1
    for found in _SENTENCE.finditer(text, start, end + 1):
        if found.end() <= end and not splits(text, start, found.end()):
            last = found.end()
    return last


def _word(text: str, start: int, end: int) -> int:
    at = end + 1
    while (at := max(text.rfind(" ", start, at), text.rfind("\t", start, at))) >= 0:
        if not splits(text, start, at + 1):  # a mark may combine with a space
            return at
    return -1


def _anywhere(text: str, begin: int, end: int) -> int:
    for at in range(end, max(end - LONGEST_CLUSTER, begin), -1):
        if not splits(text, begin, at):
            return at
    return end


def splits(text: str, begin: int, at: int) -> bool:
    """Return whether a cut would divide one displayed character.

    Args:
        text: A text.
        begin: A place where a character certainly begins.
        at: The place of the cut, after `begin`.
    """
    before, after = text[at - 1], text[at : at + 1]
    if after < "\u0300":  # no character below joins another
        return before == "\u200d" and after > " "
    return (
        unicodedata.category(after).startswith("M")
        or _EXTENDING.match(after) is not None
        or before == "\u200d"
        or (unicodedata.combining(before) == _VIRAMA and after.isalpha())
        or ("\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff")
        or (before in _FLAGS and after in _FLAGS and _odd_flags(text[begin:at]))
    )


def _odd_flags(text: str) -> bool:
    return (len(text) - len(text.rstrip(_FLAGS))) % 2 == 1
