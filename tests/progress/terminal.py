"""A terminal, as an emulator has it: what is written to it is looked at on its screen."""

from __future__ import annotations

import io
import re
from itertools import takewhile
from typing import TextIO, cast

import pyte
from pyte.screens import Char, StaticDefaultDict
from rich.console import Console

Line = StaticDefaultDict[int, Char]


class _Screen(pyte.HistoryScreen):
    """A screen that wraps its rows again when its width changes, as nearly all terminals do."""

    def __init__(self, columns: int, lines: int) -> None:
        super().__init__(columns, lines, history=100_000, ratio=0.5)
        self.wrapped: set[int] = set()
        """Rows, by identity, that go on in the next one."""

    def draw(self, data: str) -> None:
        if self.cursor.x == 0:
            self.wrapped.discard(id(self.buffer[self.cursor.y]))
        super().draw(data)

    def select_graphic_rendition(self, *attrs: int) -> None:
        """Keep what is faint, which pyte does not know, as what blinks, which nothing of ours does."""
        super().select_graphic_rendition(*attrs)
        for attr in takewhile(lambda attr: attr not in (38, 48), attrs):  # behind these stand colours
            if attr in (2, 22):
                self.cursor.attrs = self.cursor.attrs._replace(blink=attr == 2)

    def reflow(self, columns: int, lines: int) -> None:
        rows = [*self.history.top, *(self.buffer[y] for y in range(self.lines))]
        at = len(self.history.top) + self.cursor.y
        joined: list[list[Char]] = []
        place = 0, 0  # the cursor's, by line and column
        goes_on = False
        for number, row in enumerate(rows):
            if not goes_on:
                joined.append([])
            if number == at:
                place = len(joined) - 1, len(joined[-1]) + self.cursor.x
            goes_on = id(row) in self.wrapped
            joined[-1] += _cells(row)
        self.wrapped.clear()
        new: list[Line] = []
        cursor = 0, 0
        for number, cells in enumerate(joined):
            pieces = _pieces(cells, columns)
            if number == place[0]:
                extra = min(place[1] // columns, len(pieces) - 1)
                cursor = len(new) + extra, min(place[1] - extra * columns, columns - 1)
            for piece in pieces:
                line = Line(self.default_char)
                line.update(enumerate(piece))
                new.append(line)
            self.wrapped.update(id(line) for line in new[len(new) - len(pieces) : -1])
        while len(new) - 1 > cursor[0] and not new[-1]:
            new.pop()
        top = max(0, len(new) - lines)
        self.lines, self.columns = lines, columns
        self.set_margins()
        self.history.top.clear()
        self.history.top.extend(new[:top])
        self.buffer.clear()
        self.buffer.update(enumerate(new[top:]))
        self.cursor.y, self.cursor.x = max(cursor[0] - top, 0), cursor[1]


def _cells(row: Line) -> list[Char]:
    cells = [row[x] for x in range(max(row, default=-1) + 1)]
    while cells and cells[-1].data == " " and cells[-1].bg == "default":
        cells.pop()
    return cells


def _pieces(cells: list[Char], columns: int) -> list[list[Char]]:
    pieces: list[list[Char]] = [[]]
    for number, cell in enumerate(cells):
        wide = number + 1 < len(cells) and cells[number + 1].data == ""
        if len(pieces[-1]) + 1 + wide > columns and cell.data != "":
            pieces.append([])
        pieces[-1].append(cell)
    return pieces


class Terminal(io.TextIOBase):
    """A terminal that keeps what was written to it, write by write."""

    def __init__(self, columns: int = 60, lines: int = 18, *, reflows: bool = True) -> None:
        self.reflows = reflows
        self.screen = _Screen(columns, lines)
        self._stream = pyte.Stream(self.screen)
        self.writes: list[str] = []
        self.console = Console(
            file=self.file,
            force_terminal=True,
            color_system="truecolor",
            width=columns,
            height=lines,
            legacy_windows=False,
            _environ={},
        )

    @property
    def file(self) -> TextIO:
        """The same, as what it is used for."""
        return cast("TextIO", self)

    def write(self, text: str, /) -> int:
        self.writes.append(text)
        self._stream.feed(text)
        return len(text)

    def isatty(self) -> bool:
        return True

    @property
    def bytes(self) -> str:
        """Everything that was written."""
        return "".join(self.writes)

    def resize(self, columns: int, lines: int) -> None:
        """Make the window another size, as a person does, at any time."""
        if self.reflows:
            self.screen.reflow(columns, lines)
        else:
            self.screen.resize(lines, columns)
        self.console.size = (columns, lines)

    @property
    def rows(self) -> list[str]:
        """What stands on the screen, without the empty rows at its end."""
        return "\n".join(row.rstrip() for row in self.screen.display).rstrip("\n").split("\n")

    @property
    def scrolled(self) -> list[str]:
        """What has left the screen at its top."""
        return [_text(row) for row in self.screen.history.top]

    @property
    def everything(self) -> list[str]:
        """Both: what a person finds who scrolls up."""
        return [*self.scrolled, *self.rows]


def _text(row: Line) -> str:
    return "".join(row[x].data for x in range(max(row, default=-1) + 1)).rstrip()


OURS = re.compile(r"\x1b\[(?:[0-9;]*m|[0-9]+A|K|J|\?(?:2026|7|25)[hl])|\r\n|\r")
"""The sequences that a display of ours may write."""


def controls(written: str) -> set[str]:
    """Return the control characters that are left when all sequences of ours are taken out."""
    left = OURS.sub("", written)
    return {
        char for char in left if ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0 or char in "\u2028\u2029\u202e"
    }
