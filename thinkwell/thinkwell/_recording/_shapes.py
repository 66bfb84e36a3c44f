"""Secrets that are known by their look: keys and tokens with the prefixes that services give them, JWTs.

The prefixes are public facts (secret scanners look for them too). Each shape is looked for by its literal
beginning, which costs a fraction of one big pattern.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

SHORTEST: Final = 16
"""Characters below which no text holds a shape."""

_WORDY: Final = r"[A-Za-z0-9_-]"
_SHAPES: Final[dict[str, str]] = {
    "sk-": rf"{_WORDY}{{16,}}",
    **dict.fromkeys(("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"[A-Za-z0-9]{20,}"),
    "github_pat_": r"[A-Za-z0-9_]{20,}",
    "glpat-": r"[A-Za-z0-9_.-]{16,}",
    **dict.fromkeys(
        ("gloas-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glsoat-"), rf"{_WORDY}{{16,}}"
    ),
    **dict.fromkeys(
        ("xoxa", "xoxb", "xoxc", "xoxd", "xoxe", "xoxo", "xoxp", "xoxr", "xoxs"), rf"[-.]{_WORDY}{{10,}}"
    ),
    "xapp-": rf"{_WORDY}{{12,}}",
    **dict.fromkeys(("AKIA", "ASIA", "ABIA", "ACCA"), r"[A-Z0-9]{16}(?![A-Za-z0-9])"),
    "AIza": rf"{_WORDY}{{30,}}",
    "ya29.": r"[A-Za-z0-9_.-]{16,}",
    "GOCSPX-": rf"{_WORDY}{{16,}}",
    "1//0": rf"{_WORDY}{{20,}}",
    "hf_": r"[A-Za-z0-9]{20,}",
    "npm_": r"[A-Za-z0-9]{30,}",
    "pypi-A": rf"{_WORDY}{{20,}}",
    **dict.fromkeys(("sk_live_", "sk_test_", "rk_live_", "rk_test_"), r"[A-Za-z0-9]{10,}"),
    "whsec_": r"[A-Za-z0-9+/=]{16,}",
    "SK": r"[0-9a-f]{32}(?![A-Za-z0-9])",
    "SG.": rf"{_WORDY}{{16,}}\.{_WORDY}{{16,}}",
    "AGE-SECRET-KEY-": r"[0-9A-Z]{20,}",
    "hooks.slack.com/": r"[a-z]+/[A-Za-z0-9_/-]{10,}",
    "/api/webhooks/": rf"[0-9]{{5,30}}/{_WORDY}{{16,}}",
    **dict.fromkeys(("dop_v1_", "doo_v1_", "dor_v1_", "shpat_", "shpss_", "dapi"), r"[0-9a-f]{32,}"),
    **dict.fromkeys(("xai-", "gsk_", "r8_", "pplx-", "csk-"), r"[A-Za-z0-9]{24,}"),
    **dict.fromkeys(
        ("lsv2_", "nvapi-", "tvly-", "dckr_pat_", "figd_", "lin_api_", "glsa_", "hvs.", "hvb."),
        rf"{_WORDY}{{16,}}",
    ),
    **dict.fromkeys(
        ("ATATT3", "sntrys_", "sntryu_", "PMAK-", "rubygems_", "dp.st.", "dp.pt."), r"[A-Za-z0-9_=.-]{16,}"
    ),
}


def _sign(prefix: str) -> str:
    """What stands in every key of this kind, one of these."""
    return "-." if prefix.startswith("xox") else next((sign for sign in prefix if sign in "_-./"), "")


# By what has to be in a text: one without such signs, as base64, need not be gone through for most of them.
_TAILS: Final = tuple(
    (signs, tuple((prefix, re.compile(tail)) for prefix, tail in _SHAPES.items() if _sign(prefix) == signs))
    for signs in ("_", "-", "-.", ".", "/", "")
)
# Kebab and snake case has these beginnings too: only with a digit it is a key.
_DIGIT_NEEDED: Final = frozenset({"sk-", "tvly-", "lsv2_", "nvapi-"})
_DIGIT: Final = re.compile(r"[0-9]")

# The lookbehind has the class of the run behind it, so that no run is gone through twice. It comes after the
# literal beginning, which is looked for several times as fast.
_JWT: Final = re.compile(
    rf"eyJ(?:(?<!{_WORDY}eyJ)|(?<=\\[nrt]eyJ)){_WORDY}{{10,}}\.{_WORDY}{{8,}}(?:\.{_WORDY}*){{0,3}}"
)
_BEGUN: Final = 6
_BEGUN_WITHIN: Final = 4096
_SIGNS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.:/+="
_TELEGRAM_BEGUN: Final = re.compile(rf"(?<![A-Za-z0-9])[0-9]{{6,12}}:{_WORDY}{{{_BEGUN},}}\Z")
_TELEGRAM: Final = re.compile(rf"[0-9]{{6,12}}:{_WORDY}{{33,40}}(?!{_WORDY})")


def find_shapes(text: str) -> Iterator[tuple[int, int]]:
    """Yield where keys and tokens are that are known by their look, in time linear in the text's length."""
    for signs, tails in _TAILS:
        if not signs or any(sign in text for sign in signs):
            for prefix, tail in tails:
                yield from _of_one_kind(text, prefix, tail)
    if "eyJ" in text:
        yield from (found.span() for found in _JWT.finditer(text))
    if ":" in text:
        yield from (found.span() for found in _TELEGRAM.finditer(text) if not _inside(text, found.start()))


def _of_one_kind(text: str, prefix: str, tail: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    start = text.find(prefix)
    while start >= 0:
        behind = start + len(prefix)
        found = None if _inside(text, start) else tail.match(text, behind)
        if found:
            behind = found.end()
            if prefix not in _DIGIT_NEEDED or _DIGIT.search(text, start + len(prefix), behind):
                yield start, behind
        start = text.find(prefix, behind)


def begun(text: str) -> int:
    """From where on the text's end seems to be the beginning of a key; the text's length if it is none.

    That is six characters or more behind what all keys of the kind begin with, with a digit among them but
    for JWTs.
    """
    size = len(text)
    tail = text[-_BEGUN_WITHIN:]
    word = tail[len(tail.rstrip(_SIGNS)) :]
    if len(word) < _BEGUN:
        return size
    starts = [size]
    moved = size - len(word)
    for prefix in (*_SHAPES, "eyJ"):
        start = word.find(prefix)
        while start >= 0:
            rest = word[start + len(prefix) :]
            likely = len(rest) >= _BEGUN and (prefix == "eyJ" or _DIGIT.search(rest))
            if likely and not _inside(text, moved + start):
                starts.append(moved + start)
                break
            start = word.find(prefix, start + 1)
    telegram = _TELEGRAM_BEGUN.search(word)
    if telegram:
        starts.append(moved + telegram.start())
    return min(starts)


def _inside(text: str, place: int) -> bool:
    """Whether the place is within a word. A letter behind a backslash is of none, as in JSON."""
    before = text[max(place - 2, 0) : place]
    word = before[-1:].isascii() and before[-1:].isalnum() and text[place].isalnum()
    return word and not (before[0] == "\\" and before[-1] in "nrt")
