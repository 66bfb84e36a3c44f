"""Finds values behind names that promise a secret: `password: …`, `API_KEY=…`, `--token …`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from thinkwell._recording._forms import REDACTED, Find
from thinkwell._recording._names import SCHEMES, is_prose, is_secret, is_word, name_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from thinkwell._recording._table import NameKind

# Each name of a secret has one of these in it.
HINTS: Final = (
    "pass", "pwd", "secret", "token", "key", "auth", "bearer", "cookie", "credential", "dsn", "otp", "psk",
    "mnemonic", "conn", "sig", "code", "jwt", "_pat",
)  # fmt: skip

# A run of characters is gone through once, by possessive repeats that cannot begin in its middle.
_HEAD: Final = re.compile(
    r"""(?<![\w.\-])(?P<name>(?P<flag>--)?+[\w.\-]++)(?:
      [\]"'`\\]{0,8}+[ \t]*+(?:(?P<sep>=>|:=|==|=|:)[ \t]*+|\Z)
    | (?(flag)[ \t]++|(?!))
    )""",
    re.VERBOSE | re.ASCII,
)
_PAIR: Final = re.compile(r"(?i)(?<![\w.\-])(?:access|api|auth|private|secret)[ \t]{1,4}\Z", re.ASCII)
_PAIR_BEGUN: Final = re.compile(_PAIR.pattern.removesuffix(r"\Z") + r"(?:ke?)?\Z", re.ASCII)
_PAIR_SIZE: Final = 24
_QUOTED: Final = re.compile(
    r"""(?P<bars>\\++)"(?P<escaped>(?:[^"\\\r\n]++|(?!(?P=bars)")\\++"?)*+)
    | "(?P<double>(?:[^"\\\r\n]++|\\.?)*+)
    | '(?P<single>[^'\r\n]*+)
    | `(?P<back>[^`\r\n]*+)""",
    re.VERBOSE,
)
_BARE: Final = re.compile(r"""(?:[^\s"'`,;&<>(){}\[\]|\\]++|\\(?![nrt"']))*+""")
_LINE: Final = re.compile(r"""(?:[^\s"'`\\]++|\\(?![nrt"']))*+""")
_LONGER: Final = {
    "authorization": re.compile(rf"""(?:{SCHEMES}(?:[ \t]++|\Z))?+[^\s"'`\\,;<>${{}}]*+"""),
    "cookie": re.compile(r"""[^\r\n"'`\\]*+"""),
}


def find_assignments(text: str) -> Iterator[Find]:
    """Yield values behind names that promise a secret, and whether they are one."""
    place = 0
    while head := _HEAD.search(text, place):
        place = head.end()
        kind = _kind(head)
        if kind != "plain":
            found = _value(text, head, kind)
            yield found
            place = found.end if found.label else place


def opened(text: str) -> int:
    """From where on a name of two words may come; the text's length if none may."""
    pair = _PAIR_BEGUN.search(text, max(len(text) - _PAIR_SIZE, 0))
    return pair.start() if pair else len(text)


def _kind(head: re.Match[str]) -> NameKind:
    kind = name_kind(head["name"])
    if kind == "plain" and (name := head["name"].lower()) in ("key", "keys", "sig", "signature", "code"):
        before = head.string[max(head.start() - _PAIR_SIZE, 0) : head.start()]
        if before[-1:] in ("?", "&") or (name.startswith("key") and _PAIR.search(before)):
            return "secret"
    return kind


def _value(text: str, head: re.Match[str], kind: NameKind) -> Find:
    """Judge what is behind a name."""
    start, place = head.span()
    if before := _PAIR.search(text[max(start - _PAIR_SIZE, 0) : start]):
        start -= len(before[0])
    if quoted := _QUOTED.match(text, place):
        begin, end = quoted.span(quoted.lastgroup or 0)
        firm = True
    else:
        upper = head["name"].isupper()
        firm = head["sep"] == "=" and (upper or head["flag"] is not None)
        found = _LONGER.get(kind, _LINE if firm and upper else _BARE).match(text, place)
        assert found is not None
        begin, end = found.span()
        if not firm and text[end : end + 1] in ("(", "[") and kind in ("secret", "password"):
            return Find(start, begin, end, None)  # code
    return Find(start, begin, end, REDACTED if is_secret(text[begin:end], kind, firm=firm) else None)


def is_in_doubt(text: str, found: Find) -> bool:
    """Whether the text seems to end in the midst of a value, be it no secret so far.

    A word behind `Bearer` and the like is none, and neither is what settings are full of.
    """
    value, before = text[found.begin :], text[found.start : found.begin]
    named = ":" in before or "=" in before or before.startswith("-")
    return found.begin < found.end == len(text) and not is_word(value) and (named or not is_prose(value))
