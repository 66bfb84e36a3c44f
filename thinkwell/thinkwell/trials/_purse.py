"""`Purse`: counts what one part of the work spends of a budget."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from thinkwell import Budget
from thinkwell.trials._trial import Spent

if TYPE_CHECKING:
    from collections.abc import Generator

    from thinkwell.errors import BudgetExceeded

__all__ = ("Purse", "unlimited")

UNLIMITED: Final = 2**62
"""Of tool calls: such a budget only counts."""


def unlimited() -> Budget:
    """Return a budget that only counts."""
    return Budget(max_tool_calls=UNLIMITED)


class Purse(Budget):
    """Counts what an attempt, or a judge, spends of a budget that it shares with others.

    Args:
        total: That budget.
    """

    def __init__(self, total: Budget) -> None:
        super().__init__(max_tool_calls=UNLIMITED, currency=total.currency)
        self._total = total

    @property
    def counted(self) -> Spent:
        """What was spent so far."""
        spent = self.spent
        return Spent(tool_calls=spent.tool_calls, tokens=spent.tokens, cost=spent.cost or None)

    def exceeded(self, *, wants_more: bool = False) -> BudgetExceeded | None:
        """Return the error for an exceeded limit of the shared budget, or ``None``."""
        return self._total.exceeded(wants_more=wants_more)

    @contextmanager
    def shared_by(self, meter: Any) -> Generator[float | None]:
        """Include a run during a block, which gets the seconds left of the time limit."""
        with self._total.shared_by(meter) as seconds:
            yield seconds

    def run_out(self) -> BudgetExceeded:
        """Return the error for the exceeded time limit."""
        return self._total.run_out()

    def charge(self, *, tokens: int = 0, cost: float = 0.0, tool_calls: int = 0) -> None:
        """Count a run's usage, and stop all runs of the shared budget if it is too much."""
        super().charge(tokens=tokens, cost=cost, tool_calls=tool_calls)
        self._total.charge(tokens=tokens, cost=cost, tool_calls=tool_calls)
