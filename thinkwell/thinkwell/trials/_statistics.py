"""The statistics of trials, with their intervals."""

from __future__ import annotations

from collections import Counter, defaultdict
from importlib import import_module
from math import comb
from statistics import median
from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import ModuleType

    from thinkwell.trials._trial import Trial

__all__ = ("AgentSummary", "Estimate", "pass_at_k", "summarize")

SEED: Final = 20
"""Of the bootstrap: the same trials have the same intervals."""


class Estimate(Struct, frozen=True):
    """A figure, and its 95 % confidence interval."""

    value: float
    """The figure."""
    low: float
    """The lower end of the interval."""
    high: float
    """The upper end of the interval."""


class AgentSummary(Struct, frozen=True, kw_only=True):
    """What the trials of one agent have come to.

    Trials that have not ended, or were cancelled, do not count. Those with an error do: they have not passed.
    """

    agent: str
    """The agent."""
    trials: int
    """How many trials count."""
    passed: int
    """How many of them have passed."""
    rate: Estimate | None
    """The share that has passed, with Wilson's interval. `None`: no trial counts."""
    pass_at: dict[int, float]
    """pass@k: the probability that at least one of `k` trials of an input passes, on average over the inputs.
    Up to the smallest number of trials that an input has."""
    cost: Estimate | None
    """The median cost of a trial in US dollars, with a bootstrapped interval. `None`: not reported."""
    seconds: Estimate | None
    """The median time of a trial in seconds, with a bootstrapped interval."""


def pass_at_k(trials: int, passed: int, k: int) -> float:
    """Return the probability that at least one of `k` trials passes, by the unbiased estimator.

    Args:
        trials: The number of trials of an input.
        passed: How many of them have passed.
        k: How many trials one would make.

    Raises:
        ValueError: There are fewer trials than `k`, or than have passed.
    """
    if not (1 <= k <= trials and 0 <= passed <= trials):
        raise ValueError(f"pass_at_k({trials}, {passed}, {k}): give 1 ≤ k ≤ trials and 0 ≤ passed ≤ trials")
    return 1 - comb(trials - passed, k) / comb(trials, k)


def summarize(agent: str, trials: Iterable[Trial]) -> AgentSummary:
    """Return what the trials of an agent have come to.

    Args:
        agent: The agent.
        trials: All of its trials.
    """
    counted = [trial for trial in trials if trial.status in ("passed", "failed", "error")]
    by_input = defaultdict[str, Counter[str]](Counter)
    for trial in counted:
        by_input[trial.input][trial.status] += 1
    passed = sum(statuses["passed"] for statuses in by_input.values())
    least = min((statuses.total() for statuses in by_input.values()), default=0)
    pass_at = {
        k: sum(pass_at_k(each.total(), each["passed"], k) for each in by_input.values()) / len(by_input)
        for k in range(1, least + 1)
    }
    return AgentSummary(
        agent=agent,
        trials=len(counted),
        passed=passed,
        rate=_rate(passed, len(counted)) if counted else None,
        pass_at=pass_at,
        cost=_median([trial.spent.cost for trial in counted if trial.spent.cost is not None]),
        seconds=_median([trial.seconds for trial in counted]),
    )


def _rate(passed: int, trials: int) -> Estimate:
    low, high = _scipy().binomtest(passed, trials).proportion_ci(method="wilson")
    return Estimate(passed / trials, float(low), float(high))


def _median(values: Sequence[float]) -> Estimate | None:
    if not values:
        return None
    middle = median(values)
    if len(set(values)) == 1:  # also of a single one, which cannot be drawn from
        return Estimate(middle, middle, middle)
    numpy = import_module("numpy")
    drawn = _scipy().bootstrap((values,), numpy.median, method="percentile", rng=SEED)
    low, high = drawn.confidence_interval
    return Estimate(middle, float(low), float(high))


def _scipy() -> ModuleType:
    """Return the statistics of scipy, which has no types, and takes a second to import."""
    try:
        return import_module("scipy.stats")
    except ImportError as exc:
        raise ImportError(
            "thinkwell.trials: statistics need scipy, which is missing; pip install 'thinkwell[trials]'",
            name="scipy",
        ) from exc
