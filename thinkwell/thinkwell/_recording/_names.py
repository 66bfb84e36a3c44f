"""Finds values after names of secrets: `password: …`, `API_KEY=…`, `--token …`."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from thinkwell._recording._table import REDACTED, Find, looks, part, pattern, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from thinkwell._recording._table import NameKind

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_NAME_LIMIT: Final = 80


def name_kind(name: str) -> NameKind:
    """Return what the name of a variable, key, header, flag or parameter says about its value."""
    return _kind(name[-_NAME_LIMIT:])


@lru_cache(maxsize=4096)
def _kind(name: str) -> NameKind:
    words = [word.lower() for word in _WORD.findall(name)]
    while words and words[-1].isdigit():
        words.pop()
    joined = f"-{'-'.join(words)}-"
    for row in table().name:
        if (name.isupper() or not row.upper) and pattern(row.pattern).search(joined):
            return row.kind
    return "plain"


def find_assignments(text: str) -> Iterator[Find]:
    """Yield values after names of secrets, and whether they are secrets."""
    size, place = len(text), 0
    search = part("head").search
    while head := search(text, place):
        place = head.end()
        if head["half"]:
            yield Find(head.start(), size, size, None)
        elif (kind := "secret" if head["query"] else name_kind(head["name"])) != "plain":
            found = _value(text, head, kind)
            yield found
            place = found.end if found.label else place


def _value(text: str, head: re.Match[str], kind: NameKind) -> Find:
    """Judge the value after a name."""
    upper = head["name"].isupper()
    firm = head["sep"] == "=" and (upper or head["flag"] is not None)
    shape = kind if kind in ("authorization", "cookie") else "line" if firm and upper else "bare"
    value = part(shape).match(text, head.end())
    assert value is not None
    begin, end = value.span(value.lastgroup or 0)
    if value.lastgroup != "bare":
        firm = True
    elif not firm and text[end : end + 1] in ("(", "[") and kind in ("secret", "password"):
        return Find(head.start(), begin, end, None)  # code
    return Find(head.start(), begin, end, REDACTED if is_secret(text[begin:end], kind, firm=firm) else None)


def is_in_doubt(text: str, found: Find) -> bool:
    """Whether the text seems to end inside a value, even if it is not a secret so far.

    A word after `Bearer` and the like is not one, nor are common values of settings.
    """
    if not found.begin < found.end == len(text):
        return False
    value, before = text[found.begin :], text[found.start : found.begin]
    named = ":" in before or "=" in before or before.startswith("-")
    return not looks("usual", value) and (named or not looks("prose", value))


def is_secret(value: str, kind: NameKind, *, firm: bool) -> bool:
    """Whether a value after a name is a secret, and not a word, number, path, placeholder or code.

    Args:
        value: The value.
        kind: The kind of the name.
        firm: Whether this is certainly a value: it is quoted, or it is a variable's or flag's.
    """
    if len(value) > 200:
        return True  # not a word if it is so long; and refused values are checked again
    if not looks("filled", value) or looks("rooted", value):
        return False
    if kind == "cookie":
        return "=" in value and len(value) >= 8
    if kind == "authorization":
        scheme, _, rest = value.rpartition(" ")
        return bool(scheme and len(rest) >= 8) or is_secret(rest, "secret", firm=firm)
    if looks("letters", value):
        if kind == "password":
            return firm or (len(value) >= 6 and value.isalpha())
        return len(value) >= 8 and " " not in value and (firm or "-" in value)
    if value.isdigit():
        return len(value) >= (4 if kind == "password" else 8)
    return firm or kind == "password" or (len(value) >= 6 and not looks("plain", value))
