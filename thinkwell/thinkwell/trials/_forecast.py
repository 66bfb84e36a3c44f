"""`Forecast`: what would run, what it may cost at most, and by how much a crash may exceed that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from thinkwell._display.numbers import plural
from thinkwell.trials._plan import Limits
from thinkwell.trials._trial import Spent, run_again

if TYPE_CHECKING:
    from collections.abc import Iterable

    from thinkwell.trials._plan import Plan
    from thinkwell.trials._trial import Trial

__all__ = ("Forecast", "forecast")


class Forecast(Struct, frozen=True, kw_only=True):
    """What would run, and what it may cost. ``str()`` says it in words."""

    trials: int
    """How many trials there are."""
    kept: int
    """How many are in the store, with those of inputs, agents and repeats that the plan no longer has."""
    ended: int
    """How many of the plan's have ended, and do not run again."""
    at_once: int
    """How many run at a time, in one worker."""
    budget: Limits | None
    """The limits of all together; ``None``: there are none."""
    spent: Spent
    """What was spent so far, by lost attempts, too."""
    dearest: float | None
    """What the dearest trial so far has cost, in US dollars; ``None``: not known."""

    @property
    def waiting(self) -> int:
        """How many would run."""
        return self.trials - self.ended

    @property
    def overshoot(self) -> float | None:
        """By how many US dollars the limit may be exceeded, and by how many more each crash may exceed it.

        Agents report what they use during a turn or at its end. What they have not reported yet is counted
        too late, or, if they are killed, not at all: for each trial that runs, a trial's cost at most.
        """
        return None if self.dearest is None else self.dearest * min(self.at_once, self.waiting)

    def __str__(self) -> str:
        done = f" {self.ended} of {self.trials} have ended." if self.ended else ""
        told = [f"{plural(self.waiting, 'trial')} would run, {self.at_once} at a time.{done}"]
        if self.waiting:
            told.append(_limits(self))
            if self.budget is not None:
                told.append(_excess(self))
        return "\n".join(told)


def forecast(plan: Plan, kept: Iterable[Trial], *, rerun_errors: bool) -> Forecast:
    """Return what would run.

    Args:
        plan: The plan.
        kept: The trials in the store.
        rerun_errors: Whether those run again that ended with the status ``error``.
    """
    names, again = set(plan.trials()), run_again(rerun_errors=rerun_errors)
    known = list(kept)
    costs = [trial.spent.cost for trial in known if trial.spent.cost is not None]
    return Forecast(
        trials=len(names),
        kept=len(known),
        ended=sum(t.name in names and t.ended and t.status not in again for t in known),
        at_once=plan.limit,
        budget=plan.budget,
        spent=Spent(
            tool_calls=sum(trial.spent.tool_calls for trial in known),
            tokens=sum(trial.spent.tokens for trial in known),
            cost=sum(costs) if costs else None,
        ),
        dearest=max(costs, default=None),
    )


def _limits(of: Forecast) -> str:
    limits, spent = of.budget or Limits(), of.spent
    shown = [
        f"{limit:,g} {unit} (spent: {used:,g})"
        for limit, unit, used in (
            (limits.max_cost, limits.currency, spent.cost or 0.0),
            (limits.max_tokens, "tokens", spent.tokens),
            (limits.max_tool_calls, "tool calls", spent.tool_calls),
        )
        if limit is not None
    ]
    if shown:
        return f"All of them together may use at most {', '.join(shown)}."
    about = (
        "" if of.dearest is None else f" At the dearest so far, they cost {of.dearest * of.waiting:,.2f} USD."
    )
    return f"They have no limit: set one, such as max_cost, in [budget].{about}"


def _excess(of: Forecast) -> str:
    most = plural(min(of.at_once, of.waiting), "trial")
    about = "" if of.overshoot is None else f", about {of.overshoot:,.2f} USD at the dearest so far"
    return (
        "Agents report what they use late, some at the end of a turn: a limit may be exceeded by what "
        f"{most} had not reported{about}. Each crash may add as much."
    )
