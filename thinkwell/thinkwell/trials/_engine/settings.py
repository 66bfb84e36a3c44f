"""What a worker is told when it is started, and what it says."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

__all__ = ("LEASE", "LEAVE", "LOST", "NO_STORE", "PATIENCE", "Pace", "Ready", "Settings")

LEASE: Final = 10.0
"""Seconds without a sign of life after which a worker counts as dead. A busy machine may be late by some."""

LEAVE: Final = 18.0
"""Seconds in which a worker leaves, with its agents closed and its worktrees removed."""

PATIENCE: Final = LEAVE + 2.0
"""Seconds after which a worker that should have left is killed."""

LOST: Final = 75
"""The exit code of a worker whose lease is lost."""

NO_STORE: Final = 74
"""The exit code of a worker that cannot use the store."""


class Pace(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How fast the trials of an agent may go, over all workers of a store. ``None``: no limit."""

    at_once: int | None = None
    """How many run at a time."""
    starts: int | None = None
    """How many start in a period."""
    seconds: float = 60.0
    """The period."""


class Settings(Struct, frozen=True, kw_only=True):
    """What a worker is to do."""

    store: str = ""
    agents: tuple[str, ...]
    limit: int
    """How many trials it runs at a time."""
    probe: bool = False
    """Whether to find out first which of the agents start here, and are logged in."""
    paces: dict[str, Pace] = {}
    lease: float = LEASE
    recordings: str | None = None
    """The folder for recordings of the runs."""
    path: tuple[str, ...] = ()
    """The program's ``sys.path``, so that its modules are found."""


class Ready(Struct, frozen=True, kw_only=True):
    """What a worker says when it begins."""

    worker: str
    agents: tuple[str, ...]
    """The agents that it can run."""
    refused: dict[str, str]
    """Those that it cannot run, and why."""
