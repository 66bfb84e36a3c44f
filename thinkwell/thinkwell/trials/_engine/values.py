"""Values of the store: attempts, and workers."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

__all__ = ("Attempt", "Name", "WorkerRow")

Name: TypeAlias = tuple[str, str, int]
"""What names a trial in a plan: input, agent, and the number of the repeat."""


class Attempt(Struct, frozen=True):
    """An attempt of a trial."""

    plan: str
    name: Name
    number: int
    worker: str


class WorkerRow(Struct, frozen=True, kw_only=True):
    """A worker, as the store knows it."""

    id: str
    agents: tuple[str, ...]
    """The agents that it can run."""
    late: bool
    """Whether its lease has run out."""
