"""Runs in a terminal that can be redrawn: finished items scroll up, the rest is redrawn below."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.text import Text

from thinkwell._display.text import line
from thinkwell._terminal.shared import SharedTerminal
from thinkwell.events import Notice
from thinkwell.progress import _many
from thinkwell.progress._blocks import Bar, Blocks
from thinkwell.progress._card import card, end_row
from thinkwell.progress._frame import Frame, inner_room
from thinkwell.progress._markdown import WIDEST
from thinkwell.progress._question import Question
from thinkwell.progress._renderer import Renderer, is_alone
from thinkwell.progress._screen import Screen, SharedScreen
from thinkwell.progress._settling import Settling
from thinkwell.view import AnswerView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console, RenderableType

    from thinkwell.progress._renderer import Shown

_TOLD: Final = (AnswerView, Notice)
"""The parts that are printed if there are several runs, besides their ends."""


class LiveRenderer(Renderer):
    """Draws on the terminal of a console.

    Args:
        console: The console of the terminal.
        verbose: Whether thoughts, outputs and results are drawn in full.
        reflows: Whether the terminal wraps rows again when it becomes narrower; see `Screen`.
    """

    def __init__(
        self,
        console: Console,
        *,
        verbose: bool = False,
        reflows: bool | None = None,
    ) -> None:
        file = console.file
        self._shared = isinstance(file, SharedTerminal)
        """Whether another object owns the terminal, and shows there what is the same for all runs."""
        self._screen = (
            SharedScreen(console, file)
            if isinstance(file, SharedTerminal)
            else Screen(console, reflows=reflows)
        )
        self._verbose = verbose
        self._question = Question()
        self._runs: list[_Drawn] = []

    def draw(self, runs: Sequence[Shown], /, *, end: bool = False) -> None:
        """Draw the current state of the runs, or their end."""
        above = self._settled(runs, end=end)
        if end:
            self._finish(runs, above)
            return
        printed, question = self._asked(runs)
        screen = self._screen
        if is_alone(runs):
            live = self._runs[0].frame.draw(runs[0], question, screen.width, screen.height)
        else:
            live = _many.draw(runs, [each.settling for each in self._runs], question, screen.height)
        screen.draw([*above, *printed], live)

    def _finish(self, runs: Sequence[Shown], above: list[RenderableType]) -> None:
        if is_alone(runs):
            above += end_row(runs[0]) if self._shared else card(runs[0], verbose=self._verbose)
        else:
            above += _many.closing(runs)
        try:
            self._screen.draw(above, ())
        finally:
            self._screen.release()

    def suspend(self) -> None:
        """Leave the terminal to others."""
        self._screen.release()

    def _settled(self, runs: Sequence[Shown], *, end: bool) -> list[RenderableType]:
        """Return the parts of each run to print."""
        while len(self._runs) < len(runs):
            self._runs.append(_Drawn(verbose=self._verbose, inner=self._shared))
        above: list[RenderableType] = []
        width = _many.labels_width(runs)
        for run, drawn in zip(runs, self._runs, strict=True):
            things = drawn.settling.look(run.view, run.now, end=end)
            if is_alone(runs):
                above += drawn.blocks.draw(things, run.view)
                continue
            told = drawn.blocks.draw([each for each in things if isinstance(each, _TOLD)], run.view)
            above += [Text(f" {line(run.label)}", "bold"), *told] if told else []
            pinned = run.status == "failed" and not end
            if not drawn.ended and not pinned and (end or run.over):
                drawn.ended = True
                above += _many.finished(run, width)
        return above

    def _asked(self, runs: Sequence[Shown]) -> tuple[list[RenderableType], list[Bar]]:
        """Return the parts of the current question to print, and its live rows."""
        for run in runs:
            if run.asking is not None:
                width = min(self._screen.width, WIDEST)
                printed, live = self._question.draw(run, width, inner_room(self._screen.height))
                if live and not is_alone(runs):
                    whose = Bar(Text(f" {line(run.label)}", "bold"))
                    return ([whose, *printed] if printed else [], [whose, *live])
                return printed, live
        return [], []


class _Drawn:
    """What was drawn of one run."""

    def __init__(self, *, verbose: bool, inner: bool) -> None:
        self.settling = Settling(verbose=verbose)
        self.blocks = Blocks(verbose=verbose)
        self.frame = Frame(self.settling, inner=inner)
        self.ended = False
