"""Finds what the table knows: tokens by their look, and values by the words around them.

Each form is looked for by its literal beginning, which costs a fraction of one big pattern, in time linear in
the text's length.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from thinkwell._recording._names import is_filled, is_random
from thinkwell._recording._table import TABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from thinkwell._recording._table import Row

SHORTEST: Final = 16
"""Characters below which no single word is a token."""

REDACTED: Final = "[redacted]"
"""What stands in place of a secret. One from a variable is named: ``[redacted:NAME]``."""

_BEGUN: Final = r"(?=[^0-9]*[0-9])[A-Za-z0-9_.:/+=-]{6,}+\Z"
"""What follows the literal beginning of one that seems to be begun: six characters or more, with a digit."""

_WITHIN: Final = 1024
_SLACK: Final = 100
"""Characters that stand between an option and the secret at most, such as the name of a user."""


class Find(NamedTuple):
    """A part of a text that was judged."""

    start: int
    """Where what belongs to it begins, the words before it included."""
    begin: int
    """Where the value begins."""
    end: int
    label: str | None
    """What stands in place of the value; ``None``: it is no secret."""


def _has_digit(value: str) -> bool:
    return any(sign.isdigit() for sign in value)


_JUDGES: Final[dict[str, Callable[[str], bool]]] = {
    "": bool,
    "digit": _has_digit,
    "random": is_random,
    "filled": is_filled,
}


class _Form:
    """A row of the table, for one of its beginnings."""

    def __init__(self, row: Row, literal: str) -> None:
        self.row: Final = row
        self.literal: Final = literal
        self.sign: Final = row.sign or literal
        self._group: Final = next((name for name in ("secret", "proof") if f"(?P<{name}>" in row.then), 0)

    @cached_property
    def _head(self) -> str:
        """Its beginning, not in the midst of a word. The literal comes first: that is looked for fast."""
        literal = re.escape(self.literal)
        outside = rf"(?:(?<![A-Za-z0-9]{literal})|(?<=\\[nrt]{literal}))"
        return literal + outside if literal[:1].isalnum() else literal

    @cached_property
    def _whole(self) -> re.Pattern[str]:
        return re.compile(self._head + self.row.then)

    @cached_property
    def _after(self) -> re.Pattern[str]:
        return re.compile(rf"(?<![\w.-])(?:{'|'.join(self.row.after)})(?=\s)")

    @cached_property
    def _begun(self) -> re.Pattern[str]:
        return re.compile(self.row.begun or self._head + _BEGUN)

    def find(self, text: str) -> Iterator[Find]:
        """Yield what was judged; of tokens only what is one."""
        for match in self._whole.finditer(text):
            first = start = match.start()
            if self.row.after:
                word = self._after.search(text, max(start - self.row.reach, 0), start)
                if not word or text[start - 1] not in " \t\n\"'\\":
                    continue
                first = word.start()
            begin, end = match.span("secret") if self._group == "secret" else (start, match.end())
            if self._group and not match[self._group]:
                yield Find(first, match.end(), match.end(), None)
            elif _JUDGES[self.row.judge](text[max(begin, start + len(self.literal)) : end]):
                yield Find(first, begin, end, REDACTED)
            elif self._group:
                yield Find(first, begin, end, None)

    def begun(self, text: str) -> int:
        """From where on the text's end seems to be the beginning of one; the text's length if it is none."""
        size = len(text)
        known = self.row.begun or not self.row.opens
        found = known and self._begun.search(text, max(size - _WITHIN, 0))
        return found.start(found.lastgroup or 0) if found else size


_FORMS: Final = [_Form(row, literal) for row in TABLE.row for literal in row.begins]
_OPENS: Final = {
    word: row.reach + _SLACK * bool(row.after) for row in TABLE.row if row.reach for word in row.opens
}

ANNOUNCING: Final = tuple({word.lower() for row in TABLE.row for word in row.opens})
"""Words of which one stands before each secret that is no word by itself, in lower case."""


def find_forms(text: str) -> Iterator[Find]:
    """Yield what the table knows, in no order; what is no secret, too, where more text may make it one."""
    for form in _FORMS:
        if form.sign in text:
            yield from form.find(text)


def opened(text: str) -> int:
    """From where on a secret may come behind words that end the text; the text's length if there are none."""
    size = len(text)
    places = (text.find(word, max(size - reach, 0)) for word, reach in _OPENS.items())
    return min((place for place in places if place >= 0), default=size)


def begun(text: str) -> int:
    """From where on the text's end seems to be the beginning of a token; the text's length if it is none."""
    end = text[-_WITHIN:]
    return min((form.begun(text) for form in _FORMS if form.literal in end), default=len(text))
