"""Finds secrets with known values: in every form in which they may be written, and cut."""

from __future__ import annotations

import json
import math
import re
from base64 import b64encode
from collections import Counter
from math import log2
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, quote_plus, unquote

from thinkwell._recording._names import name_kind
from thinkwell._recording._table import Find, looks, pattern

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from thinkwell._values.content import JsonValue

EDGE: Final = 6
"""Least characters of a secret, and of a part of one at a text's edge: fewer are in too many harmless
words."""

LINE: Final = 16
"""Characters from which on a single line of a multi-line secret is also a secret."""

_ENTROPY: Final = 15
"""Least bits, by the frequency of characters, of a value that cannot be guessed (six different: 15)."""

_FORM: Final = 8
_LINES: Final = 100
_NUMBER: Final = re.compile(r"-?[1-9][0-9]{3,30}(?:\.[0-9]{1,20})?", re.ASCII)
_USERINFO: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s/?#:@]*:([^\s/?#]*)@")
_LINE_ENDS: Final = re.compile(r"\r?\n|\\n")


class Known:
    """An index of known secrets.

    Args:
        secrets: The replacement of each.
    """

    def __init__(self, secrets: Mapping[str, str]) -> None:
        labels: dict[str, str] = {}
        for forms in (_lines, _forms):
            for secret, label in secrets.items():
                labels.update(dict.fromkeys(forms(secret), label))
        self._secrets = secrets
        self._labels = dict(sorted(labels.items(), key=lambda item: len(item[0])))
        self.spaced: Final = [form for form in labels if any(map(str.isspace, form))]
        """Forms with white space in them."""
        self.numbers: Final[dict[float, JsonValue]] = {
            float(secret) if "." in secret else int(secret): label
            for secret, label in secrets.items()
            if _NUMBER.fullmatch(secret)
        }
        """Those that are numbers."""

    def find(self, text: str) -> Iterator[Find]:
        """Yield the places of secrets, in any form, and where the text ends or begins inside one."""
        for form, label in self._labels.items():
            if len(form) > len(text):
                break
            end = 0
            while (start := text.find(form, end)) >= 0:
                end = start + len(form)
                yield Find(start, start, end, label)
        moved = len(text) - len(text.lstrip())
        text = text.strip()
        size = len(text)
        for secret, label in self._secrets.items() if size >= EDGE else ():
            most = len(secret) - 1
            begun = _overlap(text, secret, EDGE, most)
            if _counts(secret[:begun]):
                yield Find(moved + size - begun, moved + size - begun, moved + size, label)
            ended = _overlap(secret, text, EDGE, most)
            if _counts(secret[len(secret) - ended :]):
                yield Find(moved, moved, moved + ended, label)

    def begun(self, text: str, least: int, *, spaced: bool = False) -> int:
        """The place from which on the text ends with the beginning of a secret, in any form; else its length.

        Args:
            text: The text.
            least: Least characters of such a beginning.
            spaced: Whether only forms with white space in them count.
        """
        forms = self.spaced if spaced else self._labels
        return len(text) - max((_overlap(text, form, least, len(form) - 1) for form in forms), default=0)


def _overlap(left: str, right: str, least: int, most: int) -> int:
    """Return how many characters at the start of `right` continue the end of `left`."""
    place = max(len(left) - most, 0)
    while (place := left.find(right[:least], place)) >= 0:
        if right.startswith(left[place:]):
            return len(left) - place
        place += 1
    return 0


def _counts(part: str) -> bool:
    """Whether a part of a secret is more than a word, or the frame of a key, that occurs elsewhere too."""
    if "-----" in (part[:5], part[-5:]) and not any(sign.isspace() and sign != " " for sign in part):
        return False
    return bool(part) and not (len(part) <= 12 and part.isalpha() and part[1:].islower())


def _lines(secret: str) -> list[str]:
    lines = _LINE_ENDS.split(secret)[:_LINES]
    return [line for line in lines if len(line) >= LINE and "-----" not in line] if lines[1:] else []


def _forms(secret: str) -> set[str]:
    """The forms of a secret: unchanged, in JSON (once and twice), URL-quoted, in base64, in hex."""
    data = secret.encode(errors="surrogatepass")
    escaped = json.dumps(secret)[1:-1]
    forms = {secret, escaped, json.dumps(escaped)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    each = "".join(f"%{byte:02X}" for byte in data)
    for quoted in (quote(data), quote(data, safe=""), quote_plus(data), each):
        forms |= {quoted, re.sub("%..", lambda found: found[0].lower(), quoted)}
    forms |= {b64encode(data).decode().rstrip("="), data.hex(), data.hex().upper()}
    for offset in range(3):  # inside a longer encoded text, such as `user:password`
        encoded = b64encode(bytes(offset) + data).decode()
        forms.add(encoded[math.ceil(offset * 4 / 3) : (offset + len(data)) * 4 // 3])
    forms |= {form.translate({43: "-", 47: "_"}) for form in forms if form.isascii() and " " not in form}
    return {form for form in forms if form == secret or len(form) >= _FORM}


def is_unguessable(value: str) -> bool:
    """Whether a value may be searched everywhere: it is long, and not a word, path, address or media type."""
    size = len(value)
    word = size <= 16 and value.isalpha() and (value[1:].islower() or value.isupper())
    if size < EDGE or word or looks("common", value):
        return False
    return sum(count * log2(size / count) for count in Counter(value).values()) >= _ENTROPY


def credential(value: str) -> str:
    """The part of an Authorization value after the scheme, or all of it."""
    scheme = pattern(r"<<schemes>>\s+(?=\S)").match(value)
    return value[scheme.end() :] if scheme else value


def learnable(value: str) -> Iterator[str]:
    """The parts of a secret value to search for: all of it, the credential, the values of cookies."""
    pairs = (pair.partition("=")[2].strip() for pair in value.split(";"))
    return filter(is_unguessable, (value, credential(value), *pairs))


def known_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the secrets among variables, by value, with the variable's name.

    These are the unguessable values of those whose names say so, and the passwords in addresses.
    """
    found: dict[str, str] = {}
    for name, value in environment.items():
        if name_kind(name) != "plain":
            found.update(dict.fromkeys(learnable(value.strip()), name))
        if userinfo := _USERINFO.match(value):
            found.update(dict.fromkeys(filter(is_unguessable, (userinfo[1], unquote(userinfo[1]))), name))
    return found
