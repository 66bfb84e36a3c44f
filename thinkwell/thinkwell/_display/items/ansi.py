"""The output of programs with its terminal colours."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from thinkwell._display.text import clean

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PIECES: Final = 3_000
"""Most pieces of an output with their own style; the rest is plain."""

_STYLE: Final = re.compile(r"\x1b\[([0-9;:]*)m")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Style:
    """The style of a terminal's text, by ECMA-48, 8.3.117 (SGR). Colours are those of its palette of 16."""

    fore: int | None = None
    back: int | None = None
    bold: bool = False
    dim: bool = False
    italic: bool = False
    under: bool = False

    @property
    def look(self) -> str:
        """Its classes."""
        flags = {"bold": self.bold, "dim": self.dim, "italic": self.italic, "under": self.under}
        looks = [f"t-{name}" for name, is_set in flags.items() if is_set]
        looks += [] if self.fore is None else [f"t-f{self.fore}"]
        looks += [] if self.back is None else [f"t-b{self.back}"]
        return " ".join(looks)


def output_pieces(text: str) -> Iterator[tuple[str, str]]:
    """Yield the output of a program in clean pieces, each with its classes.

    Colours stay, and all other control sequences are removed. Text that was overwritten, such as a progress
    bar, is shown in its last state.
    """
    rows = text.replace("\r\n", "\n").split("\n")
    shown = "\n".join(row.rstrip("\r").rpartition("\r")[2] for row in rows)
    style = _Style()
    for number, part in enumerate(_STYLE.split(shown)):
        if number % 2 == 0:
            if part:
                yield clean(part), style.look
        else:
            style = _changed(style, part) if number < 2 * PIECES else _Style()


_CODES: Final[dict[int, dict[str, bool]]] = {
    1: {"bold": True},
    2: {"dim": True},
    3: {"italic": True},
    4: {"under": True},
    22: {"bold": False, "dim": False},
    23: {"italic": False},
    24: {"under": False},
}


def _changed(style: _Style, codes: str) -> _Style:
    numbers = [int(code) if code else 0 for code in re.split("[;:]", codes)]
    while numbers:
        code, *numbers = numbers
        colour: int | None = None
        if code in (38, 48):
            colour, numbers = _colour(numbers)
        elif code not in (39, 49):
            colour = code % 10 + 8 * (code >= 90)
        if code == 0:
            style = _Style()
        elif code in _CODES:
            style = replace(style, **_CODES[code])
        elif 30 <= code <= 39 or 90 <= code <= 97:
            style = replace(style, fore=colour)
        elif 40 <= code <= 49:
            style = replace(style, back=_dark(colour))
    return style


def _colour(numbers: Sequence[int]) -> tuple[int | None, list[int]]:
    """Return a colour of a longer palette, if the one of 16 has it too, and the remaining numbers."""
    is_palette = numbers[:1] == [5]
    colour = numbers[1] if is_palette and len(numbers) > 1 and numbers[1] < 16 else None
    return colour, list(numbers[2 if is_palette else 4 :])


def _dark(colour: int | None) -> int | None:
    """Return a colour for readable text; ``None`` if it is too light."""
    return colour if colour is not None and colour <= 7 else None
