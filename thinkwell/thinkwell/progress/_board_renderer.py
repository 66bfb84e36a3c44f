"""Draws a `Board` on a terminal, as `thinkwell.progress._many` draws several runs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rich.text import Text

from thinkwell._display.text import line
from thinkwell.progress._blocks import Bar
from thinkwell.progress._board_state import ended_rows
from thinkwell.progress._frame import room
from thinkwell.progress._many import LABEL, fitting, mark_of, row_bar
from thinkwell.progress._renderer import Renderer
from thinkwell.progress._screen import Screen

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import Console, RenderableType

    from thinkwell.progress._board_state import BoardRow, BoardState
    from thinkwell.progress._renderer import Shown


class BoardRenderer(Renderer):
    """Draws rows that have ended once, and below them the others.

    Args:
        console: The console of the terminal.
        read: Returns what to show.
    """

    def __init__(self, console: Console, read: Callable[[], BoardState | None]) -> None:
        self._screen = Screen(console)
        self._read = read
        self._told = set[int]()
        self._frames = 0

    def draw(self, _runs: Sequence[Shown], /, *, end: bool = False) -> None:
        """Draw the current state, or the end."""
        try:
            if (state := self._read()) is not None:
                self._draw(state, end=end)
        finally:
            if end:
                self._screen.release()

    def _draw(self, state: BoardState, *, end: bool) -> None:
        self._frames += 1
        width = _width(state)
        bar = partial(self._bar, width=width)
        above: list[RenderableType] = [*map(bar, ended_rows(state, self._told))]
        if end:
            self._screen.draw([*above, Text(""), _all(state)], ())
            return
        going_on = [row for row in state.rows if row.status == "running"]
        left = max(room(self._screen.height) - 1, 0)
        self._screen.draw(above, [_all(state), *fitting(going_on, left, bar, "more row")])

    def suspend(self) -> None:
        """Leave the terminal to others."""
        self._screen.release()

    def _bar(self, row: BoardRow, width: int) -> Bar:
        mark = mark_of(row.status, self._frames)
        text = Text(line(row.text), "red" if row.status == "failed" else "")
        return row_bar(row.label, width, mark, text, line(row.right))


def _width(state: BoardState) -> int:
    return min(max((Text(line(row.label)).cell_len for row in state.rows), default=0), 2 * LABEL)


def _all(state: BoardState) -> Bar:
    text = f" · {line(state.text)}" if state.text else ""
    return Bar(Text.assemble(" ", (line(state.title), "bold"), (text, "dim")), Text(line(state.right)))
