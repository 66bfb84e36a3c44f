"""Make texts safe to show. Agents send any characters, and some of them control a terminal.

No display shows an agent's text before it went through one of these functions.
"""

from __future__ import annotations

import json
import re
import unicodedata
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from thinkwell.events import JsonValue

LINE: Final = 2_000
"""Most characters of a line: a title of a megabyte costs no more than that."""

TAB: Final = 4
"""Columns between tab stops."""

SEQUENCE: Final = 10_000
"""Most characters of an operating system command, or of a device control string, that are dropped with it.
Longer ones are shown as text, so that an unterminated one cannot hide the rest."""

MARKS: Final = 8
"""Most combining characters of one character. No script needs more; heaps of them cover other lines."""

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
"""Terminal control sequences. No part can match in two ways, and none continues past the start of another, so
it takes linear time."""

_UNFINISHED: Final = re.compile(
    rf"""
    (?: (?: \x1b\[ | \x9b ) [0-?]{{0,{SEQUENCE}}}+ [\ -/]{{0,{SEQUENCE}}}+
    | (?: \x1b\] | \x9d ) [^\x07\x1b\x80-\x9f]{{0,{SEQUENCE}}}+ \x1b?
    | (?: \x1b[PX^_] | [\x90\x98\x9e\x9f] ) [^\x1b\x80-\x9f]{{0,{SEQUENCE}}}+ \x1b?
    | \x1b [\ -/]{{0,{SEQUENCE}}}+ ) \Z
    """,
    re.VERBOSE,
)
"""The beginning of one at the end of a text; of a longer one, no end is waited for."""

_BREAKS: Final = re.compile(r"\r\n?")

_DROPPED: Final = frozenset("\xad\u061c\u200b\u200e\u200f\u2060\ufeff")
"""Invisible and harmless characters: hints for line breaks, and similar ones."""

_KEPT: Final = frozenset("\n\t\u200c\u200d\u3000")
"""Characters without a rule below: joiners make one emoji of several, and scripts need them."""

_BLANK: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\ufffc\U000e0000-\U000e0fff]"
)
"""Characters that count as printable but are invisible; some were used to hide text."""


_HIDDEN: Final = re.compile(
    "[\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e0fff]"
)
"""Characters that JSON leaves unescaped, and that control a terminal or are invisible."""


def is_clean(text: str) -> bool:
    """Return whether a text is a line of plain characters, as nearly all names are."""
    return text.isascii() and text.isprintable()


def clean(text: str) -> str:
    """Return prose, of any number of lines, that cannot control a terminal.

    Escape sequences are dropped, as are invisible harmless characters. Line ends become line feeds, and tabs
    spaces. Any other control character is replaced with a visible one: ``␛`` for an escape, or the
    character's number if it changes the writing direction. Joiners and variation selectors stay.
    """
    if _PLAIN.match(text):
        return text
    text = _BREAKS.sub("\n", without_sequences(text))
    text = text.translate(_STAND_INS)
    if not text.isascii():
        text = _without_heaps(text)
    return text.expandtabs(TAB) if "\t" in text else text


def without_sequences(text: str) -> str:
    """Return a text without terminal control sequences. Other control characters stay."""
    return _SEQUENCES.sub("", text)


def unfinished(text: str) -> int:
    """Return the start of an unfinished control sequence at the end; the length if there is none."""
    found = _UNFINISHED.search(text)
    return len(text) if found is None else found.start()


def settled(text: str) -> int:
    """Return how much of a text is final, whatever follows: its complete lines."""
    masked = _SEQUENCES.sub(lambda found: " " * len(found[0]), text)  # some contain line ends
    return masked.rfind("\n", 0, unfinished(masked)) + 1


def line(text: str, limit: int = LINE) -> str:
    """Return a text as one line, its white space folded, of a bounded length. See `clean`."""
    if len(text) <= limit and is_clean(text) and "  " not in text:
        return text.strip(" ")
    folded = " ".join(clean(text[: 4 * limit]).split())
    return folded if len(folded) <= limit and len(text) <= 4 * limit else f"{folded[: limit - 1]}…"


def exact(text: str) -> str:
    """Return a text that the user must approve: nothing is dropped, and invisible characters are escapes.

    Lines stay lines.
    """
    return visible(text)


def visible(text: str) -> str:
    """Return a text with only visible characters: the others are written as JSON escapes."""
    return text if is_clean(text) else text.translate(_ESCAPES)


def in_json(text: str) -> str:
    """Return JSON that cannot control a terminal and hides nothing, with the same meaning."""
    return text if text.isascii() and "\x7f" not in text else _HIDDEN.sub(_as_json, text)


def _as_json(found: re.Match[str]) -> str:
    return json.dumps(found[0])[1:-1]


def _escaped(char: str) -> str:
    return json.dumps(char)[1:-1] if ord(char) > 0xFFFF else f"\\u{ord(char):04x}"


class _Table(dict[int, str]):
    """What `str.translate` makes of each character; cached.

    Args:
        of: Returns it for a character.
    """

    def __init__(self, of: Callable[[str], str]) -> None:
        self._of = of

    def __missing__(self, number: int) -> str:
        found = self[number] = self._of(chr(number))
        return found


def _escape(char: str) -> str:
    shows = char == "\n" or (char.isprintable() and not _BLANK.match(char))
    return char if shows else _escaped(char)


_ICONS: Final = range(0xE0, 0xF9)
"""The private use areas, which fonts fill: the first bytes of their numbers."""


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
            return char  # future emoji, and the icons of fonts
        case _:
            return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"


def _mark(char: str) -> str:
    """Return ``m`` for a character that combines with the one before, and ``.`` for others."""
    return "m" if char in "\u200c\u200d" or unicodedata.category(char) in ("Mn", "Me") else "."


_ESCAPES: Final = _Table(_escape)
_STAND_INS: Final = _Table(_stand_in)
_MARKS: Final = _Table(_mark)
_HEAP: Final = re.compile(f"(?<=m{{{MARKS}}})m+")


def _without_heaps(text: str) -> str:
    marked = text.translate(_MARKS)
    if marked.startswith("m"):  # it would combine with the text before it
        text, marked = f"◌{text}", f".{marked}"
    pieces: list[str] = []
    done = 0
    for heap in _HEAP.finditer(marked):
        pieces.append(text[done : heap.start()])
        done = heap.end()
    return "".join([*pieces, text[done:]]) if pieces else text


def json_text(value: JsonValue, otherwise: str = "nested too deep to be shown") -> str:
    """Return JSON for users to read, or else some other words; not clean."""
    try:
        return json.dumps(value, ensure_ascii=False, indent=2)
    except (RecursionError, ValueError):
        return otherwise


def result_text(value: object) -> str:
    """Return a result for users to read: a text unchanged, everything else as indented JSON."""
    if isinstance(value, str):
        return value
    from pydantic_core import to_json  # pydantic is imported only when something is validated

    try:
        return to_json(value, indent=2, bytes_mode="base64", inf_nan_mode="constants", fallback=repr).decode()
    except Exception as exc:  # the user's own type may do anything
        return f"a {type(value).__name__} that cannot be shown: {type(exc).__name__}"
