"""Values of the store: attempts, their outcomes, and workers."""

from __future__ import annotations

from typing import Any, TypeAlias

from msgspec import Struct

from thinkwell.trials._changes import NO_CHANGES, Changes
from thinkwell.trials._trial import Spent, Status

__all__ = ("Attempt", "Ended", "Name", "Running", "WorkerRow")

Name: TypeAlias = tuple[str, str, int]
"""What names a trial in a plan: input, agent, and the number of the repeat."""


class Attempt(Struct, frozen=True):
    """An attempt of a trial."""

    plan: str
    name: Name
    number: int
    worker: str


class Running(Struct, frozen=True, kw_only=True):
    """What an attempt has come to so far."""

    phase: str = ""
    spent: Spent = Spent()


class Ended(Struct, frozen=True, kw_only=True):
    """What an attempt has come to at its end."""

    status: Status
    spent: Spent = Spent()
    seconds: float = 0.0
    score: float | None = None
    detail: str = ""
    error: str | None = None
    result: Any = None
    changes: Changes = NO_CHANGES
    recording: str | None = None


class WorkerRow(Struct, frozen=True, kw_only=True):
    """A worker, as the store knows it."""

    id: str
    agents: tuple[str, ...]
    """The agents that it can run."""
    late: bool
    """Whether its lease has run out."""
