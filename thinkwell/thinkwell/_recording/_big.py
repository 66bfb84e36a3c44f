"""Finds secrets in very large texts, in a time in which nothing else has to wait for it.

What is found: secrets by their look, `Bearer` credentials, passwords in URLs, private keys. What stands
behind other names (`password: …`) is not looked for: that takes a second for some megabytes.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from thinkwell._recording._secrets import Region, is_random, private_keys, userinfo
from thinkwell._recording._shapes import SHORTEST, find_shapes

if TYPE_CHECKING:
    from collections.abc import Iterator

BIG: Final = 256 * 1024
"""Characters beyond which a text is a very large one."""

_RUNS: Final = 100_000
_SIGNS: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.:/+=\\"
_MASK: Final = bytes(sign in _SIGNS for sign in range(256))
_LONG: Final = b"\1" * SHORTEST
_BEARERS: Final = tuple(
    re.compile(rf"{scheme}[ \t]{{1,8}}([A-Za-z0-9._~+/=\-]{{12,}}+)")
    for scheme in ("Bearer", "bearer", "BEARER")
)


def scan_big(text: str) -> tuple[list[Region], int]:
    """Find the secrets in a very large text; the same as `scan` in its result."""
    regions = [Region(start, start, end, True) for start, end in _shapes(text)]
    opened = len(text)
    for bearer in _BEARERS:
        for found in bearer.finditer(text):
            if is_random(found[1]):
                regions.append(Region(found.start(), found.start(1), found.end(), True))
                if found.end() == len(text):
                    opened = found.start()
    if "://" in text:
        regions.extend(userinfo(text))
    if "-----BEGIN" in text:
        opened = min(opened, private_keys(text, regions))
    return regions, opened


def _shapes(text: str) -> Iterator[tuple[int, int]]:
    """Yield where keys and tokens are that are known by their look.

    Most of a text is words that are too short for one, so only the long ones are gone through.
    """
    runs = _long_runs(text)
    if runs is None:
        yield from find_shapes(text)
        return
    places: list[int] = []
    size = 0
    for start, end in runs:
        places.append(size)
        size += end - start + 1
    for start, end in find_shapes(" ".join([text[start:end] for start, end in runs])):
        place = bisect_right(places, start) - 1
        moved = runs[place][0] - places[place]
        yield start + moved, end + moved


def _long_runs(text: str) -> list[tuple[int, int]] | None:
    """Where words are that are long enough for a key; ``None`` if that is most of the text."""
    mask = text.encode("latin-1", "replace").translate(_MASK)
    runs: list[tuple[int, int]] = []
    start = mask.find(_LONG)
    while start >= 0:
        end = mask.find(b"\0", start)
        if end < 0:
            end = len(mask)
        runs.append((start, end))
        if len(runs) > _RUNS:
            return None
        start = mask.find(_LONG, end)
    return runs
