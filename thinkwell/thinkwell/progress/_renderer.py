"""The interface of a display: its input, and its methods."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from thinkwell._display.summary import Picture

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkwell._display.filling import Picking


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown(Picture):
    """One run at one moment."""

    alone: bool = True
    """Whether no other run is shown, before or after it."""
    asking: str | None = None
    """Id of the one open question, of all runs, that the keyboard answers now: show it in full, with its
    keys. The others wait. ``None`` if the keyboard answers no question of this run."""
    problem: str = ""
    """The problem with the last key or answer to that question; clean, one line."""
    chosen: int | None = None
    """The key that the arrows have chosen; ``None`` for none yet."""
    picking: Picking | None = None
    """The field of a form whose value is being picked."""
    explained: int = 0
    """How often an explanation of the question was requested."""
    killed: bool = False
    """Whether Ctrl-C was pressed twice."""

    @property
    def untold_result(self) -> str | None:
        """The result, unless it is just the agent's last message, which was drawn."""
        said = (self.view.text, *self.view.messages[-1:])
        told = self.result is not None and self.result.strip() in map(str.strip, said)
        return None if told else self.result


def is_alone(runs: Sequence[Shown]) -> bool:
    """Return whether only one run is shown."""
    return len(runs) == 1 and runs[0].alone


class Renderer(ABC):
    """Draws runs.

    It is called from one worker thread at a time and may block there on a slow terminal. An exception ends
    the drawing, never the run.
    """

    @abstractmethod
    def draw(self, runs: Sequence[Shown], /, *, end: bool = False) -> None:
        """Draw the current state of the runs: something has changed, or a second has passed.

        Args:
            runs: The runs.
            end: Whether this is the end. Nothing is drawn afterwards.
        """

    def suspend(self) -> None:  # noqa: B027 - not all draw on a terminal that others can have
        """Leave the terminal to others, until the next frame."""
