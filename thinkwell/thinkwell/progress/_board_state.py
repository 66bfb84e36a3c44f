"""What a `Board` shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

RowStatus: TypeAlias = Literal["waiting", "running", "done", "failed", "cancelled"]
"""How far a row of a `Board` is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardRow:
    """A row of a `Board`. Its texts may be of any origin: what could control a terminal is removed."""

    label: str
    """What it is about, in bold."""
    status: RowStatus = "running"
    """How far it is. Rows that have ended are printed once; those that wait are not shown."""
    text: str = ""
    """What happens, or has come of it."""
    right: str = ""
    """Figures, at the right margin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardState:
    """What a `Board` shows at a moment."""

    title: str
    """What all of it is, in bold."""
    text: str = ""
    """How far it is."""
    right: str = ""
    """Figures, at the right margin."""
    rows: Sequence[BoardRow] = ()
    """The rows. New ones may only be added at the end."""


def ended_rows(state: BoardState, told: set[int]) -> list[BoardRow]:
    """Return the rows that have ended since the last time.

    Args:
        state: What is shown.
        told: The numbers of the rows that were returned before; it grows.
    """
    new = [
        (number, row)
        for number, row in enumerate(state.rows)
        if number not in told and row.status not in ("waiting", "running")
    ]
    told.update(number for number, _ in new)
    return [row for _, row in new]
