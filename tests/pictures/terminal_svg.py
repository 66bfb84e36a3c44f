"""A terminal as a picture: what stands on its screen, as SVG that loads nothing."""

from __future__ import annotations

from html import escape
from itertools import groupby
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from progress.terminal import Line, Terminal
    from pyte.screens import Char

FONTS: Final = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace"
COLUMN: Final = 8.4
ROW: Final = 19
MARGIN: Final = 16
BAR: Final = 34
"""Height of the window's bar."""

PAPER: Final = "#16181d"
INK: Final = "#d8dce4"
SHADE: Final = "#2b2f38"
"""Behind code within a text."""
FAINT: Final = "#8b92a0"
COLOURS: Final = {
    "black": "#5c6370",
    "brightblack": "#7d8493",
    "red": "#f47a76",
    "green": "#7fca8c",
    "brown": "#e2b667",  # what pyte calls yellow
    "blue": "#78aef6",
    "magenta": "#c99cf2",
    "cyan": "#66c7d4",
    "white": "#d8dce4",
}


def terminal_svg(terminal: Terminal, title: str) -> str:
    """Return what stands in a terminal, as SVG.

    Args:
        terminal: The terminal.
        title: What the bar of its window says.
    """
    rows = _rows(terminal)
    width = terminal.screen.columns * COLUMN + 2 * MARGIN
    height = BAR + len(rows) * ROW + MARGIN
    dots = "".join(
        f'<circle cx="{18 + 18 * number}" cy="{BAR / 2:g}" r="5.5" fill="{colour}"/>'
        for number, colour in enumerate(("#ec6a5e", "#f4bf4f", "#61c554"))
    )
    texts = "\n".join(line for number, row in enumerate(rows) if (line := "".join(_row(row, number))))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}"'
        f' font-family="{FONTS}" font-size="14" fill="{INK}">\n'
        f"<style>text{{white-space:pre}}.b{{font-weight:700}}.i{{font-style:italic}}</style>\n"
        f'<rect width="{width:g}" height="{height:g}" rx="9" fill="{PAPER}"/>\n{dots}\n'
        f'<text x="{width / 2:g}" y="{BAR / 2 + 5:g}" text-anchor="middle" fill="{FAINT}" font-size="13">'
        f"{escape(title)}</text>\n{texts}\n</svg>\n"
    )


def lines_of(terminal: Terminal) -> list[Line]:
    """Return the lines of a terminal, those that have scrolled away too."""
    screen = terminal.screen
    return [*screen.history.top, *(screen.buffer[y] for y in range(screen.lines))]


def _rows(terminal: Terminal) -> list[list[Char]]:
    """Return the rows of a terminal, without empty ones at the end."""
    rows = [[line[x] for x in range(terminal.screen.columns)] for line in lines_of(terminal)]
    while rows and all(cell.data == " " for cell in rows[-1]):
        rows.pop()
    return rows


def _row(row: Sequence[Char], number: int) -> Iterator[str]:
    """Return the runs of characters of one row that look alike, each at its column."""
    y = BAR + number * ROW
    for look, cells in groupby(enumerate(row), lambda cell: cell[1]._replace(data="")):
        run = list(cells)
        text = "".join(cell.data for _, cell in run)
        x, columns = MARGIN + run[0][0] * COLUMN, len(run)
        ink, paper = _colours(look)
        if paper is not None:
            yield f'<rect x="{x:g}" y="{y}" width="{columns * COLUMN:g}" height="{ROW}" fill="{paper}"/>'
        blank = len(text) - len(text.lstrip(" "))
        if text := text.strip(" "):
            fill = "" if ink == INK else f' fill="{ink}"'
            marks = " ".join(mark for mark, is_so in (("b", look.bold), ("i", look.italics)) if is_so)
            named = f' class="{marks}"' if marks else ""
            length = f' textLength="{len(text) * COLUMN:g}"' if len(text) > 1 else ""
            yield f'<text x="{x + blank * COLUMN:g}" y="{y + 14}"{length}{fill}{named}>{escape(text)}</text>'


def _colours(look: Char) -> tuple[str, str | None]:
    """Return the colours of a character and of what is behind it."""
    ink, paper = _colour(look.fg), SHADE if look.bg == "black" else _colour(look.bg)
    if look.reverse:
        ink, paper = paper or PAPER, ink or INK
    if ink is None:
        ink = FAINT if look.blink else INK
    return ink, paper


def _colour(name: str) -> str | None:
    if name == "default":
        return None
    return COLOURS.get(name) or COLOURS.get(name.removeprefix("bright"), f"#{name}")
