"""The outcomes of runs and sessions, in the words of log lines, spans and metrics."""

from __future__ import annotations

from typing import Literal, TypeAlias

from thinkwell.errors import ThoughtCancelled

Ended: TypeAlias = Literal["completed", "failed", "cancelled"]


def outcome(error: BaseException | None) -> Ended:
    """Return how a run or a session ended."""
    if error is None:
        return "completed"
    return "cancelled" if isinstance(error, ThoughtCancelled) else "failed"


def error_type(error: BaseException | None) -> str | None:
    """Return an error's name; a deliberate cancellation is not an error."""
    if outcome(error) != "failed":
        return None
    return type(error).__name__ if isinstance(error, Exception) else "cancelled"
