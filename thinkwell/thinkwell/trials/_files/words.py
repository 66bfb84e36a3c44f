"""What the page and the table of trials say alike."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from thinkwell._display import numbers
from thinkwell.events import Cost

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from thinkwell.trials._trial import Spent, Status, Trial

__all__ = ("STATUSES", "money", "spent_words", "total_cost", "totals")

STATUSES: Final[tuple[Status, ...]] = ("passed", "failed", "error", "cancelled", "running", "waiting")
"""In the order in which they are told."""


def totals(trials: Sequence[Trial]) -> Iterator[str]:
    """Yield how many trials there are of each status."""
    statuses = Counter(trial.status for trial in trials)
    for status in STATUSES:
        if statuses[status]:
            yield f"{statuses[status]:,} {'with an error' if status == 'error' else status}"


def total_cost(trials: Sequence[Trial]) -> Iterator[str]:
    """Yield what all have cost, if one says so."""
    costs = [trial.spent.cost for trial in trials if trial.spent.cost is not None]
    if costs:
        yield money(sum(costs))


def money(dollars: float) -> str:
    """Return an amount of US dollars."""
    return numbers.money(Cost(amount=dollars, currency="USD"))


def spent_words(spent: Spent) -> Iterator[str]:
    """Yield what a trial has cost, as far as its agent says so."""
    if spent.tool_calls:
        yield numbers.plural(spent.tool_calls, "call")
    if spent.tokens:
        yield f"{numbers.count(spent.tokens)} tokens"
    if spent.cost is not None:
        yield money(spent.cost)
