"""Finds secrets whose values are known: in every form that they may be written in, and cut."""

from __future__ import annotations

import json
import math
import re
from base64 import b64encode
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, quote_plus

from thinkwell._recording._replacing import Span

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

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
        loose: Those that need not be secrets: the end of one that is whole words (as `sonnet-4` of
            `claude-sonnet-4`) does not count as a part of it.
    """

    def __init__(self, secrets: Mapping[str, str], loose: Collection[str]) -> None:
        self._secrets = [(secret, label, secret in loose) for secret, label in secrets.items()]
        labels: dict[str, str] = {}
        for secret, label in secrets.items():
            labels.update(dict.fromkeys(_lines(secret), label))
        for secret, label in secrets.items():
            labels.update(dict.fromkeys(_forms(secret), label))
        self._forms = sorted(labels.items(), key=lambda item: len(item[0]))
        self.spaced: Final = [form for form in labels if any(sign.isspace() for sign in form)]
        """Forms with white space in them."""
        self.numbers: Final = {
            float(secret) if "." in secret else int(secret): label
            for secret, label in secrets.items()
            if _NUMBER.fullmatch(secret)
        }
        """Those that are numbers, as such."""

    def find(self, text: str) -> Iterator[Span]:
        """Yield where secrets are, in any of their forms."""
        for form, label in self._forms:
            if len(form) > len(text):
                break
            start = text.find(form)
            while start >= 0:
                end = start + len(form)
                yield Span(start, end, label)
                start = text.find(form, end)

    def edges(self, text: str) -> Iterator[Span]:
        """Yield where the text, white space aside, ends within a secret, and where it begins in one."""
        moved = len(text) - len(text.lstrip())
        text = text.strip()
        size = len(text)
        if size < EDGE:
            return
        for secret, label, loose in self._secrets:
            start = _begun(text, secret, EDGE)
            if start < size and _counts(secret, 0, size - start, loose=loose):
                yield Span(moved + start, moved + size, label)
            end = _ended(text, secret)
            if end > 0 and _counts(secret, len(secret) - end, len(secret), loose=loose):
                yield Span(moved, moved + end, label)

    def opened(self, text: str) -> int:
        """From where on a secret with white space in it may have begun; the text's length if none has."""
        return min((_begun(text, form, 1) for form in self.spaced), default=len(text))

    def begun(self, text: str, least: int) -> int:
        """From where on the text's end begins a secret in any form; the text's length if it begins none.

        Args:
            text: The text.
            least: Characters from which on that counts.
        """
        starts = (_begun(text, form, least) for form, _ in self._forms)
        return min(starts, default=len(text))

    def touches(self, word: str) -> bool:
        """Whether a secret is in this word, or a part of one at its beginning or end."""
        return any(form in word for form, _ in self._forms) or any(True for _ in self.edges(word))


def _begun(text: str, secret: str, least: int) -> int:
    size = len(text)
    head = secret[:least]
    start = text.find(head, max(size - len(secret) + 1, 0))
    while start >= 0:
        if secret.startswith(text[start:]):
            return start
        start = text.find(head, start + 1)
    return size


def _ended(text: str, secret: str) -> int:
    """Up to where the text's beginning is an end of the secret; zero if it is none."""
    tail = secret[-EDGE:]
    found = text.rfind(tail, 0, len(secret) - 1)
    while found >= 0:
        if secret.endswith(text[: found + EDGE]):
            return found + EDGE
        found = text.rfind(tail, 0, found + EDGE - 1)
    return 0


def _counts(secret: str, start: int, end: int, *, loose: bool) -> bool:
    """Whether a part of a secret is more than a word, or the frame of a key, that occurs elsewhere, too."""
    part = secret[start:end]
    if "-----" in (part[:5], part[-5:]) and not any(sign.isspace() and sign != " " for sign in part):
        return False
    if len(part) <= 12 and part.isalpha() and part[1:].islower():
        return False
    place = start or end
    return not loose or (secret[place - 1].isalnum() and secret[place].isalnum())


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
