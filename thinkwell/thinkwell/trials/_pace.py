"""The limits of an agent, for all workers together."""

from __future__ import annotations

from msgspec import Struct

__all__ = ("Pace",)


class Pace(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How fast the trials of an agent may go, over all workers of a store. ``None``: no limit."""

    at_once: int | None = None
    """How many run at a time."""
    starts: int | None = None
    """How many start in a period."""
    seconds: float = 60.0
    """The period."""
