"""Plans in one line, or in a few."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from thinkwell._display.cells import cells
from thinkwell._display.text import line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkwell.events import PlanEntry
    from thinkwell.view import RunView

STEP: Final = 200
"""Most characters of a step."""

NARROWEST: Final = 5
"""Least cells of a step and its separator; those without a text take less."""

_AROUND: Final = ((0, 1), (1, 1), (1, 2), (2, 2))
"""Steps before and after the current one that are shown of a long plan, if there is room."""

MARKS: Final = {"completed": "✔", "in_progress": "▸", "pending": "·"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A plan, or the part of it around the current step."""

    steps: Sequence[PlanEntry]
    done: int
    """The number of finished steps, of all."""
    total: int
    before: int = 0
    """The number of steps before these."""
    after: int = 0
    """The number of steps after these."""

    @property
    def progress(self) -> str:
        """Such as ``1/3``."""
        return f"{self.done}/{self.total}"

    @property
    def text(self) -> str:
        """The steps in a line: ``✔ read the schema   ▸ write migration   · run tests``."""
        shown = [f"{MARKS[step.status]} {step_text(step)}" for step in self.steps]
        if self.before:
            shown.insert(0, "…")
        if self.after:
            shown.append("…")
        return "   ".join(shown)


def _part(entries: Sequence[PlanEntry], begin: int, end: int) -> Plan:
    """Return some steps of a plan."""
    begin, end = max(begin, 0), min(end, len(entries))
    return Plan(
        steps=entries[begin:end],
        done=sum(entry.status == "completed" for entry in entries),
        total=len(entries),
        before=begin,
        after=len(entries) - end,
    )


def plan_line(view: RunView, width: int) -> Plan | None:
    """Return as many steps of the plan as fit into a line; ``None`` if there is none.

    Args:
        view: The run.
        width: Most cells of `Plan.text`. The current step is included even if it does not fit.
    """
    entries = view.plan
    if not entries:
        return None
    if len(entries) * NARROWEST <= width + NARROWEST:
        whole = _part(entries, 0, len(entries))
        if cells(whole.text) <= width:
            return whole
    at = current(entries)
    shown = _part(entries, at, at + 1)
    for before, after in _AROUND:
        longer = _part(entries, at - before, at + 1 + after)
        if cells(longer.text) <= width:
            shown = longer
    return shown


def current(entries: Sequence[PlanEntry]) -> int:
    """Return the index of the current step, or else of the next one."""
    for status in ("in_progress", "pending"):
        for index, entry in enumerate(entries):
            if entry.status == status:
                return index
    return len(entries) - 1


def step_text(entry: PlanEntry) -> str:
    """Return a step as a clean line."""
    return line(entry.content, STEP)
