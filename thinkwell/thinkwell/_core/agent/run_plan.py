"""What a run is to do, and its turns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from msgspec import Struct

from thinkwell._core.turn.after_turn import reminder
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkwell import events as ev
    from thinkwell._core.session.session import WireSession
    from thinkwell._core.task.builder import Options, Spec
    from thinkwell.errors import ResultInvalid

T = TypeVar("T")


class RunPlan(Struct, Generic[T], frozen=True, kw_only=True):
    """What a run is to do, and where."""

    spec: Spec[T]
    """The task."""
    options: Options
    session: WireSession
    result_schema: dict[str, ev.JsonValue] | None
    """Schema of ``return_result``; ``None``: there is no such tool."""
    ephemeral: bool
    """Whether the session is its own."""


class RunTurns:
    """The turns of a run: their count, and the next prompt.

    Args:
        reminders: How often the agent may be reminded of a result.
    """

    def __init__(self, reminders: int) -> None:
        self.number = 0
        """The number of started turns."""
        self.stop_reason = ""
        """Why the last one ended."""
        self._reminders_left = reminders
        self._interruption: tuple[s.ContentBlock, ...] = ()

    def interrupt(self, *texts: str) -> None:
        """Add to the prompt of the next turn, for which this one is ended."""
        self._interruption += tuple(s.TextContent(text=text) for text in texts)

    @property
    def interrupted(self) -> bool:
        """Whether the next turn has such a prompt."""
        return bool(self._interruption)

    def remind(self) -> bool:
        """Return whether the agent may be reminded of a result, and count it."""
        self._reminders_left -= 1
        return self._reminders_left >= 0

    def next(self, refused: ResultInvalid | None) -> tuple[Sequence[s.ContentBlock], bool]:
        """Return the prompt of the next turn, and whether it is a reminder.

        Args:
            refused: The problem of the last value that the agent returned.
        """
        said, self._interruption = self._interruption, ()
        return (said, False) if said else (reminder(refused), True)
