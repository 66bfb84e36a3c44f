"""`Trial`: what one trial is, has come to and has cost."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from thinkwell.events import JsonValue  # noqa: TC001 - type of a field
from thinkwell.trials._changes import NO_CHANGES, Changes

__all__ = ("Spent", "Status", "Trial", "run_again")

Status: TypeAlias = Literal["waiting", "running", "passed", "failed", "error", "cancelled"]
"""Where a trial stands. ``"passed"`` and ``"failed"``: it has a result, which the check has judged so.
``"error"``: it has none."""


class Spent(Struct, frozen=True, kw_only=True):
    """What a trial has cost."""

    tool_calls: int = 0
    """How many tools the agent has called."""
    tokens: int = 0
    """The tokens that it has used."""
    cost: float | None = None
    """US dollars; `None` if the agent does not say."""


class Trial(Struct, frozen=True, kw_only=True):
    """One trial: an input, an agent, and the number of the repeat."""

    input: str
    """The key of the input."""
    agent: str
    """The agent."""
    repeat: int
    """Which of the repeats it is, from 1 on."""
    status: Status = "waiting"
    """Where it stands."""
    phase: str = ""
    """What goes on now: what the run does, or that its result is checked."""
    score: float | None = None
    """The score of the check, if it gives one."""
    detail: str = ""
    """What the check said."""
    result: JsonValue = None
    """The result, as JSON has it."""
    spent: Spent = Spent()
    """What it has cost, with all attempts that were lost."""
    seconds: float = 0.0
    """How long the attempt that counts has taken."""
    attempts: int = 0
    """How many times it was begun."""
    error: str | None = None
    """Why it has no result."""
    changes: Changes = NO_CHANGES
    """What has changed in its worktree; empty without one."""
    recording: str | None = None
    """The path of the recording of its run."""

    @property
    def name(self) -> tuple[str, str, int]:
        """What names it for good: the input, the agent and the repeat."""
        return self.input, self.agent, self.repeat

    @property
    def ended(self) -> bool:
        """Whether it has ended."""
        return self.status not in ("waiting", "running")


def run_again(*, rerun_errors: bool) -> tuple[Status, ...]:
    """Return the statuses of the trials that have ended, and that the next call runs all the same."""
    return ("cancelled", "error") if rerun_errors else ("cancelled",)
