"""Rows of a terminal, rendered by rich: here control characters are removed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import COLOR_SYSTEMS
from rich.segment import Segment

from thinkwell._display.text import clean, is_clean

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.color import ColorSystem
    from rich.console import Console, RenderableType


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a terminal."""

    text: str
    """The text: visible characters, and sequences that set colours."""
    plain: str
    """The text without the sequences, which takes the room."""


def rows_of(console: Console, renderable: RenderableType, width: int) -> list[Row]:
    """Return a renderable as rows that fit into a width.

    Whatever the texts contain, no character controls the terminal, and nothing is a link.
    """
    options = console.options.update(width=width, height=None, highlight=False, markup=False)
    lines = console.render_lines(renderable, options, pad=False)
    if console.no_color:
        lines = [list(Segment.remove_color(line)) for line in lines]
    system = COLOR_SYSTEMS.get(console.color_system or "")
    return [_row(line, width, system) for line in lines]


def _row(line: Iterable[Segment], width: int, system: ColorSystem | None) -> Row:
    shown = [_shown(segment) for segment in line if not segment.control]
    shown = _without_blanks(Segment.adjust_line_length(shown, width, pad=False))
    return Row(
        "".join(
            segment.style.render(segment.text, color_system=system) if segment.style else segment.text
            for segment in shown
        ),
        "".join(segment.text for segment in shown),
    )


def _shown(segment: Segment) -> Segment:
    text, style, _ = segment
    if not is_clean(text):
        text = clean(text).replace("\n", "\N{SYMBOL FOR NEWLINE}")
    if style is not None and style.link is not None:
        style = style.update_link(None)
    return Segment(text, style)


def _without_blanks(line: list[Segment]) -> list[Segment]:
    """Drop invisible spaces at the end. Terminals count them when they rewrap a row."""
    while line:
        text, style, _ = line[-1]
        if style is not None and (
            style.bgcolor is not None or style.reverse or style.underline or style.strike
        ):
            break
        kept = text.rstrip(" ")
        if kept:
            line[-1] = Segment(kept, style)
            break
        line.pop()
    return line
