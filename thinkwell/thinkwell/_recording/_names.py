"""Which names promise a secret, and which values look like one."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from math import log2
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from thinkwell._recording._table import TABLE, NameKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MARK: Final = "[redacted"
"""How every replacement begins."""

SCHEMES: Final = r"(?i:bearer|basic|token|digest|apikey|negotiate)"

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_NAME_LIMIT: Final = 80
_KINDS: Final = [(row, re.compile(row.pattern, re.VERBOSE)) for row in TABLE.name]
_USUAL_WORDS: Final = frozenset(TABLE.words["usual"].split())
_HARMLESS: Final = frozenset(TABLE.words["harmless"].split())

_LEAST: Final = 6
"""Characters below which a value would be found in too many innocent words."""

_ENTROPY: Final = 15
"""Bits, by how often each character is in it, below which a value is guessable (six different: 15)."""

_ROOTED: Final = re.compile(
    r"(?:~|[A-Za-z]:|/(?:Applications|Library|Users|Volumes|app|data|etc|home|mnt|nix|opt|private|root|run|srv"
    r"|tmp|usr|var|workspace))(?:[/\\][\w .@~-]*)*"
)
_NUMBER: Final = r"[+-]?[0-9][0-9.,_:%]*"
_URL: Final = r"[A-Za-z][A-Za-z0-9+.-]*://[\w.-]+(?::\d+)?(?:/[\w.-]{0,24})*"
_PATHS: Final = r"(?:~|\.{1,2}|[A-Za-z]:)?(?:[/\\][\w .@~-]{0,80})+(?::(?:[/\\][\w .@~-]{0,80})+)*"
_PLAIN: Final = re.compile(f"{_NUMBER}|{_URL}|{_PATHS}")
_MEDIA_TYPE: Final = r"(?:application|audio|image|model|text|video)/[a-z0-9.+-]+(?:;.*)?"
_USUAL: Final = re.compile(f"{_ROOTED.pattern}|{_URL}|{_MEDIA_TYPE}")
_USERINFO: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s/?#:@]*:([^\s/?#]*)@")
_SCHEME: Final = re.compile(rf"{SCHEMES}\s+(?=\S)")
_PLACEHOLDER: Final = re.compile(r"[$<{%*.].*|(.)\1*|\[redacted.*", re.DOTALL)
_LETTERS: Final = re.compile(r"[A-Za-z_. \-]*[.!?:]?")


def name_kind(name: str) -> NameKind:
    """Say what the name of a variable, key, header, flag or parameter tells about its value."""
    return _kind(name[-_NAME_LIMIT:])


@lru_cache(maxsize=4096)
def _kind(name: str) -> NameKind:
    words = [word.lower() for word in _WORD.findall(name)]
    while words and words[-1].isdigit():
        words.pop()
    joined = f"-{'-'.join(words)}-"
    for row, pattern in _KINDS:
        if (name.isupper() or not row.upper) and pattern.search(joined):
            return row.kind
    return "plain"


def is_word(value: str) -> bool:
    """Whether a value is a word that settings and prose are full of, such as `true`, `none` or `required`."""
    return value.lower() in _USUAL_WORDS


def is_plain(value: str) -> bool:
    """Whether a value is no secret by its look: a setting's word, a number, paths, a bare URL."""
    return not value or is_word(value) or _PLAIN.fullmatch(value) is not None


def is_harmless(name: str) -> bool:
    """Whether this variable or header is known to hold no secret."""
    return name in _HARMLESS or name.lower() in _HARMLESS or name.startswith("LC_")


def is_prose(value: str) -> bool:
    """Whether a value may be the next word of a sentence."""
    return value[1:].islower() and _LETTERS.fullmatch(value) is not None


def is_filled(value: str) -> bool:
    """Whether a value is neither a placeholder, as `$PASS`, `<yours>` or `***`, nor a setting's word."""
    return bool(value) and not _PLACEHOLDER.fullmatch(value[:200]) and not is_word(value)


def is_random(value: str) -> bool:
    """Whether a value behind a scheme in the midst of text is more than the next word."""
    mixed = any(sign.isdigit() for sign in value) and any(sign.isalpha() for sign in value)
    return len(value) >= 12 and (mixed or len(value) >= 24 or value.endswith("="))


def is_unguessable(value: str) -> bool:
    """Whether a value may be looked for everywhere: it is long, and no word, path, address or media type."""
    size = len(value)
    word = size <= 16 and value.isalpha() and (value[1:].islower() or value.isupper())
    if size < _LEAST or word or is_word(value) or _USUAL.fullmatch(value):
        return False
    return sum(count * log2(size / count) for count in Counter(value).values()) >= _ENTROPY


def is_secret(value: str, kind: NameKind, *, firm: bool) -> bool:
    """Whether what stands behind a name is a secret, and no word, number, path, placeholder or code.

    Args:
        value: What is behind the name.
        kind: What the name says.
        firm: Whether it is clear that this is a value: it is quoted, or it is a variable's or flag's.
    """
    if len(value) > 200:
        return True  # nothing so long is a word; and what is refused is gone through a second time
    if not is_filled(value) or _ROOTED.fullmatch(value):
        return False
    if kind == "cookie":
        return "=" in value and len(value) >= 8
    if kind == "authorization":
        scheme, _, rest = value.rpartition(" ")
        return bool(scheme and len(rest) >= 8) or is_secret(rest, "secret", firm=firm)
    if _LETTERS.fullmatch(value):
        if kind == "password":
            return firm or (len(value) >= 6 and value.isalpha())
        return len(value) >= 8 and " " not in value and (firm or "-" in value)
    if value.isdigit():
        return len(value) >= (4 if kind == "password" else 8)
    return firm or kind == "password" or (len(value) >= 6 and not is_plain(value))


def credential(value: str) -> str:
    """The part of an Authorization value behind the scheme, or all of it."""
    scheme = _SCHEME.match(value)
    return value[scheme.end() :] if scheme else value


def learnable(value: str) -> Iterator[str]:
    """What of a secret value may be looked for by itself: all, the credential, the values of cookies."""
    pairs = (pair.partition("=")[2].strip() for pair in value.split(";"))
    return filter(is_unguessable, (value, credential(value), *pairs))


def known_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """Pick the secrets out of variables, by value, with the variable's name.

    These are the unguessable values of those whose names say so, and the passwords in addresses.
    """
    found: dict[str, str] = {}
    for name, value in environment.items():
        if name_kind(name) != "plain":
            found.update(dict.fromkeys(learnable(value.strip()), name))
        if userinfo := _USERINFO.match(value):
            found.update(dict.fromkeys(filter(is_unguessable, (userinfo[1], unquote(userinfo[1]))), name))
    return found
