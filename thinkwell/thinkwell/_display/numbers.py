"""Numbers for users to read."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from thinkwell._display.text import line

if TYPE_CHECKING:
    from thinkwell.events import Cost

MOST: Final = 10**100
"""Counts are smaller, or not numbers."""

_SIGNS: Final = {"USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥"}

_UNITS: Final = (("", 1), ("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000))


def number_in(text: str) -> int | float | None:
    """Return the number that a text is; ``None``: it is none."""
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return None


def seconds(value: float) -> str:
    """Return a duration: ``3.2s``, ``37s``, ``1:42``, ``1:02:03``."""
    if not math.isfinite(value):
        return "?"
    value = max(value, 0.0)
    if round(value, 1) < 10:
        return f"{value:.1f}s"
    if round(value) < 60:
        return f"{value:.0f}s"
    return clock(value).removeprefix("0")


def clock(value: float) -> str:
    """Return a running time: ``01:42``, ``1:02:03``."""
    whole = round(max(value, 0.0)) if math.isfinite(value) else 0
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes:02}:{rest:02}"


def count(value: int) -> str:
    """Return an approximate number: ``950``, ``18.2k``, ``200k``, ``1.5M``."""
    if abs(value) >= MOST:
        return "?"
    if value < 1_000:
        return str(value)
    for unit, size in _UNITS[1:]:
        digits = 1 if value < 99.95 * size else 0
        shown = f"{value / size:.{digits}f}"
        if float(shown) < 1_000:
            return shown.removesuffix(".0") + unit
    return f"{value:.1e}"


def money(cost: Cost) -> str:
    """Return a cost: ``$0.06``, ``0.06 CHF``. Less than a cent has more digits."""
    amount = cost.amount
    digits = 4 if 0 < abs(amount) < 0.0095 else 2
    shown = f"{amount:,.{digits}f}" if math.isfinite(amount) else "?"
    sign = _SIGNS.get(cost.currency)
    return f"{sign}{shown}" if sign else f"{shown} {line(cost.currency, 12)}".rstrip()


def plural(number: int, word: str, several: str | None = None) -> str:
    """Return a number of things: ``1 file``, ``3 files``."""
    return f"{number:,} {word if number == 1 else several or f'{word}s'}"
