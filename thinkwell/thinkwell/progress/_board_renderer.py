"""Draws a `Board` on a terminal, as `thinkwell.progress._many` draws several runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from thinkwell._display import numbers
from thinkwell._display.text import line
from thinkwell.progress._blocks import Bar
from thinkwell.progress._board_state import ended_rows
from thinkwell.progress._frame import room, spinner
from thinkwell.progress._many import LABEL, MARKS
from thinkwell.progress._screen import Screen

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import Console

    from thinkwell.progress._board_state import BoardRow, BoardState
    from thinkwell.progress._renderer import Shown


class BoardRenderer:
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

    def draw(self, _runs: Sequence[Shown], /) -> None:
        """Draw the current state."""
        state = self._read()
        if state is None:
            return
        self._frames += 1
        width = _width(state)
        above = [self._bar(row, width) for row in ended_rows(state, self._told)]
        going_on = [self._bar(row, width) for row in state.rows if row.status == "running"]
        left = max(room(self._screen.height) - 1, 0)
        shown = going_on if len(going_on) <= left else going_on[: max(left - 1, 0)]
        if more := len(going_on) - len(shown):
            shown = [*shown, Bar(Text(f"   … {numbers.plural(more, 'more row')}", "dim"))]
        self._screen.draw(above, [_all(state), *shown])

    def finish(self, _runs: Sequence[Shown], /) -> None:
        """Draw the end."""
        try:
            if (state := self._read()) is not None:
                width = _width(state)
                above = [self._bar(row, width) for row in ended_rows(state, self._told)]
                self._screen.draw([*above, Text(""), _all(state)], ())
        finally:
            self._screen.release()

    def suspend(self) -> None:
        """Leave the terminal to others."""
        self._screen.release()

    def resume(self) -> None:
        """Take the terminal back, with the next frame."""

    def _bar(self, row: BoardRow, width: int) -> Bar:
        mark, style = MARKS.get(row.status, (spinner(self._frames), "cyan"))
        label = Text(line(row.label), "bold")
        label.truncate(width, overflow="ellipsis", pad=True)
        text = Text(line(row.text), "red" if row.status == "failed" else "")
        return Bar(Text.assemble(" ", (mark, style), " ", label, "  ", text), Text(line(row.right), "dim"))


def _width(state: BoardState) -> int:
    return min(max((Text(line(row.label)).cell_len for row in state.rows), default=0), 2 * LABEL)


def _all(state: BoardState) -> Bar:
    text = f" · {line(state.text)}" if state.text else ""
    return Bar(Text.assemble(" ", (line(state.title), "bold"), (text, "dim")), Text(line(state.right)))
