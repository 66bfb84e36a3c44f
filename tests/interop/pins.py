"""The pins: the version of each agent, and the day that all it depends on is from."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

__all__ = ("FILE", "PINS", "Pins")

FILE: Final = Path(__file__).with_name("pins.json")


class Pins(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is installed; `make interop-pins` moves it to today."""

    until: str
    """A point in time: npm and uv install nothing that was published after it."""
    versions: dict[str, str]
    """Versions of agents by package."""


PINS: Final = msgspec.json.decode(FILE.read_bytes(), type=Pins)
