"""The life of a run."""

from __future__ import annotations

from enum import Enum, auto
from itertools import count
from typing import Final

_numbers = count(1)


def next_run_id() -> str:
    """Return a name for a run, unique in this process."""
    return f"run-{next(_numbers)}"


class RunLife(Enum):
    """The stages of a run's life."""

    QUEUED = auto()
    """It waits for its session."""
    PREPARING = auto()
    """The session is being opened, and tools are offered."""
    PROMPTING = auto()
    """A turn is running."""
    LINGERING = auto()
    """The agent has answered, and has more to do."""
    STOPPING = auto()
    """It was ended early; a running turn is waited for."""
    ENDED = auto()
    """Its log has ended."""
    OVER = auto()
    """Its session is left."""

    def to(self, life: RunLife) -> RunLife:
        """Return the next stage, which must follow this one."""
        assert life in _NEXT[self], (self, life)
        return life


_NEXT: Final = {
    RunLife.QUEUED: {RunLife.PREPARING, RunLife.STOPPING, RunLife.ENDED},
    RunLife.PREPARING: {RunLife.PROMPTING, RunLife.STOPPING, RunLife.ENDED},
    RunLife.PROMPTING: {RunLife.PREPARING, RunLife.LINGERING, RunLife.STOPPING, RunLife.ENDED},
    RunLife.LINGERING: {RunLife.PREPARING, RunLife.STOPPING, RunLife.ENDED},
    RunLife.STOPPING: {RunLife.ENDED},
    RunLife.ENDED: {RunLife.OVER},
    RunLife.OVER: set[RunLife](),
}
