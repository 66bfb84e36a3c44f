"""What a display of runs is given, and what it has to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from thinkwell._display.filling import Picking
    from thinkwell.view import RunView


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One run at one moment."""

    label: str
    """What the program calls the run; the name of its agent where it gave none."""
    view: RunView
    now: float
    """Seconds since the run began; it stands still after the end."""
    result: str | None = None
    """The result: text as it is, everything else as indented JSON. ``None`` until it is there, where the run
    failed, and where the result is not to be shown."""
    alone: bool = True
    """Whether no other run is shown, before or after it."""
    recording: str | None = None
    """Where the run is recorded."""
    asking: str | None = None
    """Id of the one open question, of all runs, that the keyboard answers now: show it whole, with its keys.
    The others wait their turn. ``None`` where the keyboard answers none of this run's."""
    problem: str = ""
    """What was wrong with the last key or answer to that question; clean, one line."""
    chosen: int | None = None
    """Which of its keys the arrows are at; ``None``: none yet."""
    picking: Picking | None = None
    """The field of a form whose value is picked from a list now."""
    explained: int = 0
    """How often an explanation of the question was wanted."""
    cancelling: bool = False
    """Whether Ctrl-C was pressed once."""
    killed: bool = False
    """Whether it was pressed twice."""

    @property
    def untold_result(self) -> str | None:
        """The result, but where it is just what the agent has said last, which was drawn."""
        said = (self.view.text, *self.view.messages[-1:])
        told = self.result is not None and self.result.strip() in map(str.strip, said)
        return None if told else self.result


def is_alone(runs: Sequence[Shown]) -> bool:
    """Return whether one run is shown, and never another."""
    return len(runs) == 1 and runs[0].alone


class Renderer(Protocol):
    """Draws runs.

    It is called from one worker thread at a time and may block there on a slow terminal. Whatever it raises
    ends the drawing and never the run.
    """

    def draw(self, runs: Sequence[Shown], /) -> None:
        """Draw the runs as they stand: something has changed, or a second has passed."""
        ...

    def finish(self, runs: Sequence[Shown], /) -> None:
        """Draw the end. Nothing is drawn afterwards."""
        ...

    def suspend(self) -> None:
        """Leave the terminal to others, until `resume`."""
        ...

    def resume(self) -> None:
        """Take the terminal back."""
        ...


class Deferred:
    """A renderer that is made in the thread that draws: what it needs takes a while to load.

    Args:
        make: Makes it.
    """

    def __init__(self, make: Callable[[], Renderer]) -> None:
        self._make = make
        self._made: Renderer | None = None

    def draw(self, runs: Sequence[Shown], /) -> None:
        """Draw the runs."""
        self._renderer().draw(runs)

    def finish(self, runs: Sequence[Shown], /) -> None:
        """Draw the end."""
        self._renderer().finish(runs)

    def suspend(self) -> None:
        """Leave the terminal."""
        if self._made is not None:
            self._made.suspend()

    def resume(self) -> None:
        """Take it back."""
        if self._made is not None:
            self._made.resume()

    def _renderer(self) -> Renderer:
        if self._made is None:
            self._made = self._make()
        return self._made
