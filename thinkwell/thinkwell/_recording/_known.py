"""Finds secrets whose values are known: in every form that they may be written in, and cut."""

from __future__ import annotations

import json
import math
import re
from base64 import b64encode
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, quote_plus

from thinkwell._recording._forms import Find

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from thinkwell._values.content import JsonValue

EDGE: Final = 6
"""Characters from which on a part of a secret counts where the text begins or ends with it."""

LINE: Final = 16
"""Characters from which on a line of a secret of several lines is known as well."""

_FORM: Final = 8
_LINES: Final = 100
_NUMBER: Final = re.compile(r"-?[1-9][0-9]{3,30}(?:\.[0-9]{1,20})?", re.ASCII)
_LINE_ENDS: Final = re.compile(r"\r?\n|\\n")


class Known:
    """An index of known secrets.

    Args:
        secrets: What stands in place of each.
    """

    def __init__(self, secrets: Mapping[str, str]) -> None:
        labels: dict[str, str] = {}
        for forms in (_lines, _forms):
            for secret, label in secrets.items():
                labels.update(dict.fromkeys(forms(secret), label))
        self._secrets = secrets
        self._forms = sorted(labels.items(), key=lambda item: len(item[0]))
        self.spaced: Final = [form for form in labels if any(map(str.isspace, form))]
        """Forms with white space in them."""
        self.numbers: Final[dict[float, JsonValue]] = {
            float(secret) if "." in secret else int(secret): label
            for secret, label in secrets.items()
            if _NUMBER.fullmatch(secret)
        }
        """Those that are numbers, as such."""

    def find(self, text: str) -> Iterator[Find]:
        """Yield where secrets are, in any of their forms."""
        for form, label in self._forms:
            if len(form) > len(text):
                break
            end = 0
            while (start := text.find(form, end)) >= 0:
                end = start + len(form)
                yield Find(start, start, end, label)

    def edges(self, text: str) -> Iterator[Find]:
        """Yield where the text, white space aside, ends within a secret, and where it begins in one."""
        moved = len(text) - len(text.lstrip())
        text = text.strip()
        size = len(text)
        for secret, label in self._secrets.items() if size >= EDGE else ():
            start = _begun(text, secret, EDGE)
            if _counts(secret[: size - start]):
                yield Find(moved + start, moved + start, moved + size, label)
            end = _ended(text, secret)
            if _counts(secret[len(secret) - end :]):
                yield Find(moved, moved, moved + end, label)

    def begun(self, text: str, least: int) -> int:
        """From where on the text's end begins a secret in any form; the text's length if it begins none.

        Args:
            text: The text.
            least: Characters from which on that counts.
        """
        return min((_begun(text, form, least) for form, _ in self._forms), default=len(text))

    def opened(self, text: str) -> int:
        """From where on a secret with white space in it may have begun; the text's length if none has."""
        return min((_begun(text, form, 1) for form in self.spaced), default=len(text))

    def touches(self, word: str) -> bool:
        """Whether a secret is in this word, or a part of one at its beginning or end."""
        return any(form in word for form, _ in self._forms) or any(True for _ in self.edges(word))


def _begun(text: str, secret: str, least: int) -> int:
    size = len(text)
    start = size - len(secret)
    while (start := text.find(secret[:least], max(start + 1, 0))) >= 0:
        if secret.startswith(text[start:]):
            return start
    return size


def _ended(text: str, secret: str) -> int:
    """Up to where the text's beginning is an end of the secret; zero if it is none."""
    end = len(secret)
    while (end := text.rfind(secret[-EDGE:], 0, end - 1) + EDGE) >= EDGE:
        if secret.endswith(text[:end]):
            return end
    return 0


def _counts(part: str) -> bool:
    """Whether a part of a secret is more than a word, or the frame of a key, that occurs elsewhere, too."""
    if "-----" in (part[:5], part[-5:]) and not any(sign.isspace() and sign != " " for sign in part):
        return False
    return bool(part) and not (len(part) <= 12 and part.isalpha() and part[1:].islower())


def _lines(secret: str) -> list[str]:
    lines = _LINE_ENDS.split(secret)[:_LINES]
    return [line for line in lines if len(line) >= LINE and "-----" not in line] if lines[1:] else []


def _forms(secret: str) -> set[str]:
    """How a secret may be written: as it is, in JSON (once and twice), URL-quoted, in base64, in hex."""
    data = secret.encode(errors="surrogatepass")
    escaped = json.dumps(secret)[1:-1]
    forms = {secret, escaped, json.dumps(escaped)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    each = "".join(f"%{byte:02X}" for byte in data)
    for quoted in (quote(data), quote(data, safe=""), quote_plus(data), each):
        forms |= {quoted, re.sub("%..", lambda found: found[0].lower(), quoted)}
    forms |= {b64encode(data).decode().rstrip("="), data.hex(), data.hex().upper()}
    for offset in range(3):  # within a longer text that was encoded, as `user:password` is
        encoded = b64encode(bytes(offset) + data).decode()
        forms.add(encoded[math.ceil(offset * 4 / 3) : (offset + len(data)) * 4 // 3])
    forms |= {form.translate({43: "-", 47: "_"}) for form in forms if form.isascii() and " " not in form}
    return {form for form in forms if form == secret or len(form) >= _FORM}
