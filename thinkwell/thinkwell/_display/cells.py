"""Widths of texts, in cells of a terminal. The texts are clean; see `thinkwell._display.text`."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_JOINER: Final = "\u200d"
_EMOJI: Final = "\ufe0f"
"""Makes the character before it an emoji, which takes two cells."""

_NARROW: Final = re.compile(
    "[ -~\u00a1-\u00ac\u00ae-\u02ff\u0391-\u03a1\u03a3-\u03ce\u0400-\u0482\u2010-\u2027\u2190-\u21ff"
    "\u2500-\u257f\u2298\u2588\u258c\u25b8\u25d0-\u25d3\u2714\u2718]*"
)
"""Characters of one cell each, such as those of most rows: faster than checking one by one."""


def cells(text: str) -> int:
    """Return the number of cells of a line."""
    if text.isascii() or _NARROW.fullmatch(text):
        return len(text)
    return sum(width for _, width in _clusters(text))


def clip(text: str, width: int) -> str:
    """Return as much of a line as fits, with ``…`` for the rest."""
    if len(text) <= width and text.isascii():
        return text
    if width <= 0:
        return ""
    kept: list[str] = []
    taken = 0
    for cluster, wide in _clusters(text):
        taken += wide
        if taken < width:
            kept.append(cluster)
        elif taken > width:
            return "".join(kept) + "…"
    return text


def pad(text: str, width: int) -> str:
    """Return a line padded with spaces to a width."""
    return text + " " * (width - cells(text))


def wrap(text: str, width: int) -> list[str]:
    """Return a text as lines that fit, broken between words if possible."""
    return [part for row in text.split("\n") for part in _broken(row, max(width, 2))]


def _broken(row: str, width: int) -> Iterator[str]:
    if cells(row) <= width:
        yield row.rstrip(" ")
        return
    indent = row[: len(row) - len(row.lstrip(" "))]
    if len(indent) > min(width // 2, width - 2):  # the widest characters take two
        indent = ""
    taken, used = indent, len(indent)
    for word in row.split():
        wide = cells(word)
        gap = 1 if used > len(indent) else 0
        room = width - used - gap
        if wide <= room:
            taken, used = taken + " " * gap + word, used + gap + wide
            continue
        # Scripts without spaces break anywhere, and so does a word that is longer than a line.
        anywhere = wide > len(word) or wide > width - len(indent)
        head, rest = _split(word, room) if anywhere and room > 1 else ("", word)
        yield (taken + " " * gap + head).rstrip(" ") if head else taken
        *full, last = cut(rest, width - len(indent))
        yield from (indent + part for part in full)
        taken, used = indent + last, len(indent) + cells(last)
    yield taken


def cut(text: str, width: int) -> list[str]:
    """Return a line as pieces that fit, with nothing left out."""
    pieces: list[str] = []
    rest = text
    while rest or not pieces:
        piece, rest = _split(rest, width)
        pieces.append(piece)
    return pieces


def _split(text: str, width: int) -> tuple[str, str]:
    """Return as much of a text as fits, though at least one character, and the rest."""
    used = at = 0
    for cluster, wide in _clusters(text):
        if at and used + wide > width:
            break
        used += wide
        at += len(cluster)
    return text[:at], text[at:]


def _clusters(text: str) -> Iterator[tuple[str, int]]:
    """Yield characters with their combining marks, and the width of each."""
    cluster: list[str] = []
    width = 0
    joined = False
    for char in text:
        own = _width(char)
        if cluster and (joined or own == 0):
            cluster.append(char)
            if char == _EMOJI:
                width = 2
        else:
            if cluster:
                yield "".join(cluster), width
            cluster, width = [char], own
        joined = char == _JOINER
    if cluster:
        yield "".join(cluster), width


def _width(char: str) -> int:
    if " " <= char <= "~":
        return 1
    if unicodedata.east_asian_width(char) in "WF":
        return 2
    return 0 if unicodedata.category(char) in ("Mn", "Me", "Cf") else 1
