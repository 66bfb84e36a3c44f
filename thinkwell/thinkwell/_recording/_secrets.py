"""Finds secrets in text: by their look, by the name before them, in URLs, and private keys.

`scan` also tells from where on the text is *open*: more text behind it could change what was found there.
Every pattern takes time linear in the text's length: a run of characters is gone through once, by possessive
repeats that cannot begin in the middle of such a run.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from thinkwell._recording._names import NameKind, is_plain, is_rooted, is_word, name_kind
from thinkwell._recording._shapes import SHORTEST as SHORTEST_SHAPE
from thinkwell._recording._shapes import begun as shape_begun
from thinkwell._recording._shapes import find_shapes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MARK: Final = "[redacted"
"""How every replacement begins."""


class Region(NamedTuple):
    """A part of a text that was judged."""

    start: int
    """Where what belongs to it begins, the name included."""
    begin: int
    """Where the value begins."""
    end: int
    secret: bool
    """Whether the value is a secret."""


# Each name of a secret, each scheme and each other beginning that `_contexts` knows has one of these in it.
HINTS: Final = (
    "pass", "pwd", "secret", "token", "key", "auth", "bearer", "basic", "cookie", "credential", "dsn", "otp",
    "mnemonic", "conn", "api", "sig", "digest", "negotiate", "access", "private", "code", "jwt", "_pat",
)  # fmt: skip

_SCHEMES: Final = r"(?i:bearer|basic|token|digest|apikey|negotiate)"
_HEAD: Final = re.compile(
    rf"""(?<![\w.\-])(?:
      (?P<scheme>{_SCHEMES})(?:[ \t]++(?![:=])|\Z)
    | (?P<flag>--[\w.\-]++)(?:[ \t]++(?![:=])|\Z)
    | (?P<name>[\w.\-]++)[\]"'`\\]{{0,8}}+[ \t]*+(?:(?P<sep>=>|:=|==|=|:)[ \t]*+|\Z)
    )""",
    re.VERBOSE | re.ASCII,
)
_PAIR: Final = re.compile(r"(?i)(?<![\w.\-])(?:access|api|auth|private|secret)[ \t]{1,4}\Z", re.ASCII)
_PAIR_BEGUN: Final = re.compile(_PAIR.pattern.removesuffix(r"\Z") + r"(?:ke?)?\Z", re.ASCII)
_QUOTED: Final = re.compile(
    r"""(?P<bars>\\++)"(?P<escaped>(?:[^"\\\r\n]++|(?!(?P=bars)")\\++"?)*+)
    | "(?P<double>(?:[^"\\\r\n]++|\\.?)*+)
    | '(?P<single>[^'\r\n]*+)
    | `(?P<back>[^`\r\n]*+)""",
    re.VERBOSE,
)
_BARE: Final = re.compile(r"""(?:[^\s"'`,;&<>(){}\[\]|\\]++|\\(?![nrt"']))*+""")
_LINE: Final = re.compile(r"""(?:[^\s"'`\\]++|\\(?![nrt"']))*+""")
_HEADER: Final = re.compile(rf"""(?:{_SCHEMES}(?:[ \t]++|\Z))?+[^\s"'`\\,;<>${{}}]*+""")
_COOKIES: Final = re.compile(r"""[^\r\n"'`\\]*+""")
_CREDENTIAL: Final = re.compile(r"[A-Za-z0-9._~+/=\-]*+")

_PLACEHOLDER: Final = re.compile(r"[$<{%*.].*|(.)\1*|\[redacted.*", re.DOTALL)
_LETTERS: Final = re.compile(r"[A-Za-z_. \-]*[.!?:]?")
_USERINFO: Final = re.compile(r"""://([^\s/?#"'`<>\\]{1,1024})@""")

_USERINFO_BEGUN: Final = re.compile(
    r"""://(?!\[)(?:[^\s/?#"'`<>\\:@]{0,200}:(?P<password>[^\s/?#"'`<>\\@]{6,})|(?P<user>[\w-]{16,}))\Z"""
)

_PEM: Final = re.compile(
    r"""-----BEGIN\ (?:[A-Z0-9]++\ )*?PRIVATE\ KEY(?:\ BLOCK)?-----
    (?P<gap>(?:\\[nrt]|[^A-Za-z\\]){0,48}+)
    (?:(?=[A-Za-z0-9+/=]{16}|[A-Za-z0-9+/=]*\Z|(?:Proc-Type|DEK-Info|Version|Comment|Hash):)
       (?P<body>(?:[^-]++|-(?!----))++
          (?:-{5,}+(?:END[A-Z0-9 ]{0,60}+(?:(?P<closed>-----)|-{0,4}\Z)|E?N?\Z))?+)
    | (?P<bare>\Z))
    | -----BEGIN[A-Z0-9\ ]{0,60}-{0,5}\Z""",
    re.VERBOSE,
)


def scan(text: str) -> tuple[list[Region], int]:
    """Find the secrets in a text.

    Returns:
        What was judged, in no order, and from where on the text is open (its length if it is not).
    """
    regions: list[Region] = []
    opened = len(text)
    if opened >= SHORTEST_SHAPE:
        regions.extend(Region(start, start, end, True) for start, end in find_shapes(text))
    lower = text.lower()
    for hint in HINTS:
        if hint in lower:
            opened = _contexts(text, regions)
            break
    if "://" in text:
        regions.extend(userinfo(text))
    if "-----BEGIN" in text:
        opened = min(opened, private_keys(text, regions))
    return regions, opened


def begun(text: str) -> int:
    """From where on the text's end seems to be the beginning of a secret by its look; its length if not."""
    start = shape_begun(text)
    url = _USERINFO_BEGUN.search(text, max(len(text) - 1024, 0))
    if url:
        part = "password" if url["password"] else "user"
        if not url[part].isdigit() and (url["password"] or any(sign.isdigit() for sign in url["user"])):
            start = min(start, url.start(part))
    return start


def in_doubt(text: str, regions: Iterable[Region]) -> Iterator[int]:
    """Yield where values begin in whose midst the text seems to end.

    A word behind `Bearer` and the like is none, and neither is what settings are full of.
    """
    for region in regions:
        if region.begin < region.end == len(text):
            value, before = text[region.begin :], text[region.start : region.begin]
            named = ":" in before or "=" in before or before.startswith("-")
            plain = value[1:].islower() and _LETTERS.fullmatch(value)
            if not is_word(value) and (named or not plain):
                yield region.begin


def announces(word: str) -> bool:
    """Whether a word may be a secret or announce one; in a text of other words `scan` finds nothing."""
    lower = word.lower()
    if any(hint in lower for hint in HINTS) or "://" in word or "-----BEGIN" in word:
        return True
    return len(word) >= SHORTEST_SHAPE and any(True for _ in find_shapes(word))


def _contexts(text: str, regions: list[Region]) -> int:
    """Find values behind names and schemes; return from where on one may still come or grow."""
    size = len(text)
    pair = _PAIR_BEGUN.search(text, max(size - 24, 0))
    opened = pair.start() if pair else size
    place = 0
    while head := _HEAD.search(text, place):
        place = head.end()
        kind = _head_kind(head)
        if kind == "plain":
            continue
        region = _value(text, head, kind)
        if region.end == size:
            opened = min(opened, region.start)
        regions.append(region)
        if region.secret:
            place = region.end
    return opened


def _head_kind(head: re.Match[str]) -> NameKind:
    name = head["name"] or head["flag"]
    if name is None:
        return "secret"  # a scheme
    kind = name_kind(name)
    if kind == "plain":
        before = head.string[max(head.start() - 24, 0) : head.start()]
        if name in ("key", "keys", "Key", "Keys", "KEY") and _PAIR.search(before):
            return "secret"
        if before[-1:] in ("?", "&") and name.lower() in ("key", "sig", "signature", "code"):
            return "secret"
    return kind


def _value(text: str, head: re.Match[str], kind: NameKind) -> Region:
    """Judge what is behind a name."""
    start, place = head.start(), head.end()
    before = _PAIR.search(text[max(start - 24, 0) : start])
    if before:
        start -= len(before[0])
    quoted = _QUOTED.match(text, place)
    if head["scheme"]:
        found = _CREDENTIAL.match(text, place)
        assert found is not None
        return Region(start, place, found.end(), is_random(found[0]))
    if quoted:
        begin, end = quoted.span(quoted.lastgroup or 0)
        return Region(start, begin, end, _is_secret(text[begin:end], kind, firm=True))
    firm = head["sep"] == "=" and (head["name"].isupper() or head["name"].startswith("--"))
    pattern = _LINE if firm and head["name"].isupper() else _BARE
    if kind == "authorization":
        pattern = _HEADER
    elif kind == "cookie":
        pattern = _COOKIES
    found = pattern.match(text, place)
    assert found is not None
    call = not firm and text[found.end() : found.end() + 1] in ("(", "[")
    secret = not (call and kind in ("secret", "password")) and _is_secret(found[0], kind, firm=firm)
    return Region(start, place, found.end(), secret)


def _is_secret(value: str, kind: NameKind, *, firm: bool) -> bool:
    """Whether this is a secret, and no word, number, path, placeholder or code.

    Args:
        value: What is behind the name.
        kind: What the name says.
        firm: Whether it is clear that this is a value: it is quoted, or it is a variable's or flag's.
    """
    if len(value) > 200:
        return True  # nothing so long is a word; and what is refused is gone through a second time
    if not value or _PLACEHOLDER.fullmatch(value) or is_word(value) or is_rooted(value):
        return False
    if kind == "cookie":
        return "=" in value and len(value) >= 8
    if kind == "authorization":
        scheme, _, rest = value.rpartition(" ")
        return bool(scheme and len(rest) >= 8) or _is_secret(rest, "secret", firm=firm)
    if _LETTERS.fullmatch(value):
        if kind == "password":
            return firm or (len(value) >= 6 and value.isalpha())
        return len(value) >= 8 and " " not in value and (firm or "-" in value)
    if value.isdigit():
        return len(value) >= (4 if kind == "password" else 8)
    return firm or kind == "password" or (len(value) >= 6 and not is_plain(value))


def is_random(value: str) -> bool:
    """Whether a value behind a scheme in the midst of text is more than the next word."""
    mixed = any(sign.isdigit() for sign in value) and any(sign.isalpha() for sign in value)
    return len(value) >= 12 and (mixed or len(value) >= 24 or value.endswith("="))


def userinfo(text: str) -> Iterator[Region]:
    """Passwords in URLs, and user names that are none: `https://TOKEN@host`."""
    for found in _USERINFO.finditer(text):
        user, colon, password = found[1].partition(":")
        if colon:
            secret = bool(password) and not _PLACEHOLDER.fullmatch(password[:200])
            yield Region(found.start(), found.start(1) + len(user) + 1, found.end(1), secret)
        elif len(user) >= 16:
            yield Region(found.start(), found.start(1), found.end(1), any(sign.isdigit() for sign in user))


def private_keys(text: str, regions: list[Region]) -> int:
    """Find private keys, whole or cut; return from where on one may still grow."""
    opened = len(text)
    for found in _PEM.finditer(text):
        if found["body"]:
            regions.append(Region(found.start(), found.start(), found.end(), True))
        if found.end() == len(text) and not found["closed"]:
            opened = min(opened, found.start())
    return opened
