"""Finds the secrets of the table, `secrets.toml`: tokens by their form, and values by the words around them.

The table describes its fields. It is read, and each pattern compiled, on first use.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

NameKind: TypeAlias = Literal["plain", "secret", "password", "authorization", "cookie"]
"""What a name says about its value: nothing, or a kind of secret."""

SHORTEST: Final = 16
"""Least characters of a single word that is a token."""

MARK: Final = "[redacted"
"""The start of every replacement."""

REDACTED: Final = "[redacted]"
"""The replacement of a secret. One from a variable is named: ``[redacted:NAME]``."""

_BEGUN: Final = r"(?=[^0-9]*[0-9])[A-Za-z0-9_.:/+=-]{6,}+\Z"
"""The rest of an unfinished secret after its literal beginning: six characters or more, with a digit."""

_WITHIN: Final = 1024
_SLACK: Final = 100
"""Most characters between an option and its secret, such as the name of a user."""


class Find(NamedTuple):
    """A part of a text that was judged."""

    start: int
    """Where it begins, including the words before it."""
    begin: int
    """Where the value begins."""
    end: int
    label: str | None
    """The replacement of the value; ``None`` if it is not a secret."""


class _Row(msgspec.Struct, frozen=True):
    then: str
    begins: tuple[str, ...] = ("",)
    sign: str = ""
    after: tuple[str, ...] = ()
    reach: int = 0
    judge: str = ""
    begun: str = ""


class _Name(msgspec.Struct, frozen=True):
    kind: NameKind
    pattern: str
    upper: bool = False


class _Part(msgspec.Struct, frozen=True):
    pattern: str


class _Table(msgspec.Struct, frozen=True):
    hints: tuple[str, ...]
    part: dict[str, _Part]
    name: list[_Name]
    row: list[_Row]


@cache
def table() -> _Table:
    """Read the table."""
    text = Path(__file__).with_name("secrets.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), _Table)


def _expanded(text: str) -> str:
    return re.sub("<<([a-z]+)>>", lambda part: _expanded(table().part[part[1]].pattern), text)


@cache
def pattern(text: str) -> re.Pattern[str]:
    """Compile a pattern of the table."""
    return re.compile(_expanded(text))


@cache
def part(name: str) -> re.Pattern[str]:
    """Return a part of the table by its name."""
    return pattern(f"<<{name}>>")


def looks(name: str, value: str) -> bool:
    """Whether a value, or a name, matches this part of the table."""
    return part(name).fullmatch(value) is not None


class _Form:
    """A row of the table, for one of its beginnings.

    It is searched by that literal, which costs a fraction of one big pattern.
    """

    def __init__(self, row: _Row, literal: str) -> None:
        then, head = _expanded(row.then), re.escape(literal)
        if row.after:
            head += rf"""(?<=[ \t\n"'\\]{head})"""
        elif literal[:1].isalnum():  # not inside a word; the literal comes first, for a fast search
            head += rf"(?:(?<![A-Za-z0-9]{head})|(?<=\\[nrt]{head}))"
        self._row = row
        self._size = len(literal)
        self._proof = next((name for name in ("secret", "proof") if f"(?P<{name}>" in then), 0)
        self._whole = head + then
        self._after = rf"(?<![\w.-])(?:{'|'.join(row.after)})(?=\s)" if row.after else ""
        self.sign: Final = row.sign or literal
        self.opens: Final = row.after or ((literal,) if self._proof else ())
        self.reach: Final = row.reach + _SLACK * bool(row.after)
        self._begun = row.begun or ("" if self.opens else head + _BEGUN)

    def find(self, text: str) -> Iterator[Find]:
        """Yield the judged parts; for tokens only secrets."""
        row = self._row
        for match in pattern(self._whole).finditer(text):
            first = start = match.start()
            if self._after:
                word = pattern(self._after).search(text, max(start - row.reach, 0), start)
                if not word:
                    continue
                first = word.start()
            begin = end = match.end()
            if match[self._proof]:
                begin, end = match.span(self._proof if self._proof == "secret" else 0)
            value = text[max(begin, start + self._size) : end]
            is_secret = value and (not row.judge or looks(row.judge, value))
            if is_secret or self._proof:
                yield Find(first, begin, end, REDACTED if is_secret else None)

    def begun(self, text: str) -> int:
        """The place from which on the text's end looks like the beginning of one; else the text's length."""
        size = len(text)
        found = self._begun and pattern(self._begun).search(text, max(size - _WITHIN, 0))
        return found.start(found.lastgroup or 0) if found else size


@cache
def _forms() -> list[_Form]:
    return [_Form(row, literal) for row in table().row for literal in row.begins]


@cache
def hints() -> tuple[str, ...]:
    """Words of which one precedes each secret that is not a single word, in lower case."""
    return *table().hints, *{word.lower() for form in _forms() for word in form.opens}


@cache
def _reaches() -> dict[str, int]:
    return {word: form.reach for form in _forms() if form.reach for word in form.opens}


def find_forms(text: str) -> Iterator[Find]:
    """Yield the finds of the table, in no order; also text that may still become a secret."""
    for form in _forms():
        if form.sign in text:
            yield from form.find(text)


def opened(text: str) -> int:
    """The place from which on a secret may follow the final words; else the text's length."""
    size = len(text)
    places = (text.find(word, max(size - reach, 0)) for word, reach in _reaches().items())
    return min((place for place in places if place >= 0), default=size)


def begun(text: str) -> int:
    """The place from which on the text's end looks like the beginning of a token; else the text's length."""
    end = text[-_WITHIN:]
    return min((form.begun(text) for form in _forms() if form.sign in end), default=len(text))
