"""The interface of a display: its input, and its methods."""

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
    """The run's label; the name of its agent if it has none."""
    view: RunView
    now: float
    """Seconds since the run began, or its duration once it has ended."""
    result: str | None = None
    """The result: text unchanged, everything else as indented JSON. ``None`` before there is one, if the run
    failed, and if the result is not to be shown."""
    alone: bool = True
    """Whether no other run is shown, before or after it."""
    recording: str | None = None
    """The file of the recording."""
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
    cancelling: bool = False
    """Whether Ctrl-C was pressed once."""
    killed: bool = False
    """Whether it was pressed twice."""

    @property
    def untold_result(self) -> str | None:
        """The result, unless it is just the agent's last message, which was drawn."""
        said = (self.view.text, *self.view.messages[-1:])
        told = self.result is not None and self.result.strip() in map(str.strip, said)
        return None if told else self.result


def is_alone(runs: Sequence[Shown]) -> bool:
    """Return whether only one run is shown."""
    return len(runs) == 1 and runs[0].alone


class Renderer(Protocol):
    """Draws runs.

    It is called from one worker thread at a time and may block there on a slow terminal. An exception ends
    the drawing, never the run.
    """

    def draw(self, runs: Sequence[Shown], /) -> None:
        """Draw the current state of the runs: something has changed, or a second has passed."""
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
    """A renderer that is made in the drawing thread, because its imports take a while.

    Args:
        make: Makes the renderer.
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
