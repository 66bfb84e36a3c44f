"""Words and numbers in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_PLURALS: Final = {"class": "classes", "TODO": "TODOs"}
_LINE: Final = 200
"""Most characters of foreign text that are quoted."""


def number(count: int, noun: str) -> str:
    """Return a number with its unit."""
    noun = "TODO" if noun == "todo" else noun
    return f"1 {noun}" if count == 1 else f"{count} {_PLURALS.get(noun, noun + 's')}"


def listed(parts: Sequence[str]) -> str:
    """Return the parts as an enumeration."""
    return " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))


def first_line(text: str) -> str:
    """Return a text that is short enough to read in passing."""
    line = " ".join(text.split())
    return line if len(line) <= _LINE else line[: _LINE - 1] + "…"
