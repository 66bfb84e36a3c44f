"""Texts that are fit to be shown. Agents send any characters, and some of them control a terminal.

Nothing that an agent has sent is shown by any display before it went through one of these functions.
"""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Final

LINE: Final = 2_000
"""Characters that a line keeps: a title of a megabyte costs no more than that."""

TAB: Final = 4
"""Columns between the stops of tabs."""

SEQUENCE: Final = 10_000
"""Characters of an operating system command, or of a string for a device, that are dropped with it. What is
longer is shown as text, so that none of what was said is lost behind one that never ends."""

MARKS: Final = 8
"""Combining characters that one character keeps. No script needs more; heaps of them cover other lines."""

_PLAIN: Final = re.compile(r"[\n -~]*\Z")

_SEQUENCES: Final = re.compile(
    rf"""
    (?: \x1b\[ | \x9b ) [0-?]*+ [\ -/]*+ [@-~]                               # colours, the cursor
    | (?: \x1b\] | \x9d ) [^\x07\x1b\x80-\x9f]{{0,{SEQUENCE}}}+ (?: \x07 | \x1b\\ | \x9c )  # titles, links
    | (?: \x1b[PX^_] | [\x90\x98\x9e\x9f] ) [^\x1b\x80-\x9f]{{0,{SEQUENCE}}}+ (?: \x1b\\ | \x9c )  # pictures
    | \x1b [\ -/]*+ [0-OQ-WYZ\\`-~]                                          # character sets, resets
    """,
    re.VERBOSE,
)
"""What a terminal obeys. No part can match in two ways, and none goes on past where another may begin, so it
takes linear time."""

_UNFINISHED: Final = re.compile(
    rf"""
    (?: (?: \x1b\[ | \x9b ) [0-?]*+ [\ -/]*+
    | (?: \x1b\] | \x9d ) [^\x07\x1b\x80-\x9f]{{0,{SEQUENCE}}}+ \x1b?
    | (?: \x1b[PX^_] | [\x90\x98\x9e\x9f] ) [^\x1b\x80-\x9f]{{0,{SEQUENCE}}}+ \x1b?
    | \x1b [\ -/]*+ ) \Z
    """,
    re.VERBOSE,
)
"""The beginning of one at the end of a text."""

_BREAKS: Final = re.compile(r"\r\n?")

_DROPPED: Final = frozenset("\xad\u061c\u200b\u200e\u200f\u2060\ufeff")
"""What does not show and changes nothing that matters: hints where to break a line, and their like."""

_KEPT: Final = frozenset("\n\t\u200c\u200d\u3000")
"""What no rule below is for: joiners make one emoji of several, and scripts need them."""

_BLANK: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\ufffc\U000e0000-\U000e0fff]"
)
"""Characters that count as printable and show nothing; texts were hidden in some of them."""


_HIDDEN: Final = re.compile(
    "[\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e0fff]"
)
"""What JSON lets stand as it is, and does something to a terminal or hides in it."""


def is_clean(text: str) -> bool:
    """Return whether a text is a line of plain characters, as nearly all names are."""
    return text.isascii() and text.isprintable()


def clean(text: str) -> str:
    """Return prose, of any number of lines, of which nothing controls a terminal.

    Escape sequences are dropped, as are characters that do not show and do no harm. Line ends become line
    feeds, and tabs spaces. Any other control character has a stand-in that shows: ``␛`` for an escape, or the
    character's number for what turns the direction of writing. Joiners and variation selectors stay.
    """
    if _PLAIN.match(text):
        return text
    text = _BREAKS.sub("\n", without_sequences(text))
    text = text.translate(_STAND_INS)
    if not text.isascii():
        text = _without_heaps(text)
    return text.expandtabs(TAB) if "\t" in text else text


def without_sequences(text: str) -> str:
    """Return a text without what a terminal obeys. Other control characters stay."""
    return _SEQUENCES.sub("", text)


def unfinished(text: str) -> int:
    """Return where something begins that a terminal obeys and whose end may come yet; the length: nowhere."""
    found = _UNFINISHED.search(text)
    return len(text) if found is None else found.start()


def settled(text: str) -> int:
    """Return how much of a text is shown in the same way whatever follows: its complete lines."""
    masked = _SEQUENCES.sub(lambda found: " " * len(found[0]), text)  # some hold line ends
    return masked.rfind("\n", 0, unfinished(masked)) + 1


def line(text: str, limit: int = LINE) -> str:
    """Return a text as one line, its white space folded, of a bounded length. See `clean`."""
    if len(text) <= limit and is_clean(text) and "  " not in text:
        return text.strip(" ")
    folded = " ".join(clean(text[: 4 * limit]).split())
    return folded if len(folded) <= limit and len(text) <= 4 * limit else f"{folded[: limit - 1]}…"


def exact(text: str) -> str:
    """Return what a person is to approve: nothing is dropped, and what does not show is an escape.

    Lines stay lines.
    """
    return visible(text)


def visible(text: str) -> str:
    """Return a text whose characters all show: the others are written as JSON escapes them."""
    return text if is_clean(text) else text.translate(_ESCAPES)


def in_json(text: str) -> str:
    """Return JSON, of which nothing controls a terminal or hides: it means the same."""
    return text if text.isascii() and "\x7f" not in text else _HIDDEN.sub(_as_json, text)


def _as_json(found: re.Match[str]) -> str:
    return json.dumps(found[0])[1:-1]


def _escaped(char: str) -> str:
    return json.dumps(char)[1:-1] if ord(char) > 0xFFFF else f"\\u{ord(char):04x}"


class _Escapes(dict[int, str]):
    """How each character is written where all show; found out once for each."""

    def __missing__(self, number: int) -> str:
        char = chr(number)
        shows = char == "\n" or (char.isprintable() and not _BLANK.match(char))
        written = self[number] = char if shows else _escaped(char)
        return written


_ESCAPES: Final = _Escapes()

_ICONS: Final = range(0xE0, 0xF9)
"""Where fonts have characters of their own: the first bytes of their numbers."""


class _StandIns(dict[int, str]):
    """What each character is shown as; found out once for each."""

    def __missing__(self, number: int) -> str:
        stand_in = self[number] = _stand_in(chr(number))
        return stand_in


def _stand_in(char: str) -> str:
    number = ord(char)
    if char in _KEPT or char.isprintable():
        return f"\\U{number:08x}" if 0xE0000 <= number <= 0xE0FFF else char
    if char in _DROPPED:
        return ""
    if number < 0x20:
        return chr(0x2400 + number)
    if number == 0x7F:
        return "␡"
    match unicodedata.category(char):
        case "Zs":
            return " "
        case "Cs":
            return "\N{REPLACEMENT CHARACTER}"
        case "Co" | "Cn" if number < 0xE0000 and (number > 0xFFFF or number >> 8 in _ICONS):
            return char  # emoji of next year, and the icons of fonts
        case _:
            return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"


class _Marks(dict[int, str]):
    """Which characters stand on top of the one before; found out once for each."""

    def __missing__(self, number: int) -> str:
        char = chr(number)
        marks = char in "\u200c\u200d" or unicodedata.category(char) in ("Mn", "Me")
        mark = self[number] = "m" if marks else "."
        return mark


_STAND_INS: Final = _StandIns()
_MARKS: Final = _Marks()
_HEAP: Final = re.compile(f"(?<=m{{{MARKS}}})m+")


def _without_heaps(text: str) -> str:
    marked = text.translate(_MARKS)
    if marked.startswith("m"):  # it would stand on what we write before it
        text, marked = f"◌{text}", f".{marked}"
    pieces: list[str] = []
    done = 0
    for heap in _HEAP.finditer(marked):
        pieces.append(text[done : heap.start()])
        done = heap.end()
    return "".join([*pieces, text[done:]]) if pieces else text


def result_text(value: object) -> str:
    """Return a result as people read it: a text as it is, everything else as indented JSON."""
    if isinstance(value, str):
        return value
    from pydantic_core import to_json  # pydantic is loaded where something is validated, not before

    try:
        return to_json(value, indent=2, bytes_mode="base64", inf_nan_mode="constants", fallback=repr).decode()
    except Exception as exc:  # the user's own type may do anything
        return f"a {type(value).__name__} that cannot be shown: {type(exc).__name__}"
