"""The statistics of trials."""

from __future__ import annotations

import random
import subprocess
import sys
from itertools import combinations
from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinkwell.trials import Estimate, Report, Spent, Status, Trial, pass_at_k


def trial(
    status: Status = "passed",
    *,
    n: int = 1,
    on: str = "issue-7",
    cost: float | None = None,
    seconds: float = 1.0,
) -> Trial:
    return Trial(input=on, agent="claude", repeat=n, status=status, spent=Spent(cost=cost), seconds=seconds)


@given(st.lists(st.booleans(), min_size=1, max_size=8), st.data())
def test_pass_at_k_is_the_share_of_choices_with_a_passed_one(passed: list[bool], data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(passed)))
    choices = [any(chosen) for chosen in combinations(passed, k)]
    assert pass_at_k(len(passed), sum(passed), k) == pytest.approx(sum(choices) / len(choices))


@pytest.mark.parametrize("given", [(3, 1, 4), (3, 4, 1), (3, 1, 0), (3, -1, 1)])
def test_pass_at_k_needs_enough_trials(given: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="give 1 ≤ k ≤ trials"):
        pass_at_k(*given)


def test_pass_at_k_of_many_trials() -> None:
    assert pass_at_k(10_000, 1, 100) == pytest.approx(0.01)
    assert pass_at_k(10_000, 9_950, 100) == 1


def test_pass_at_k_is_the_mean_over_inputs_as_far_as_each_has_trials() -> None:
    trials = [trial(n=n, on="easy") for n in (1, 2, 3)]
    trials += [trial("failed", n=1, on="hard"), trial(n=2, on="hard"), trial("waiting", n=3, on="hard")]
    (summary,) = Report(trials).agents
    assert summary.pass_at == {1: 0.75, 2: 1.0}
    assert (summary.trials, summary.passed) == (5, 4)


def wilson(passed: int, trials: int) -> Estimate:
    """Wilson's interval, by its formula."""
    z, p = 1.959963984540054, passed / trials
    middle = (p + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z / (1 + z * z / trials) * sqrt(p * (1 - p) / trials + z * z / (4 * trials * trials))
    return Estimate(p, middle - half, middle + half)


@pytest.mark.parametrize(("passed", "failed"), [(3, 2), (0, 5), (5, 0), (1, 0), (90, 110)])
def test_the_rate_has_the_interval_of_wilson(passed: int, failed: int) -> None:
    trials = [trial(n=n) for n in range(passed)]
    trials += [trial(("failed", "error")[n % 2 == 1], n=100 + n) for n in range(failed)]
    trials += [trial("cancelled"), trial("running"), trial("waiting")]
    rate = Report(trials).agents[0].rate
    expected = wilson(passed, passed + failed)
    assert rate is not None
    assert (rate.value, rate.low, rate.high) == pytest.approx((expected.value, expected.low, expected.high))


def test_medians_have_the_same_interval_each_time() -> None:
    chance = random.Random(1)
    times = [chance.lognormvariate(3, 1) for _ in range(40)]
    trials = [trial(n=n, seconds=each, cost=each / 100) for n, each in enumerate(times)]
    (first,), (again,) = Report(trials).agents, Report(trials[:]).agents
    assert first == again
    assert first.seconds is not None
    assert first.cost is not None
    assert first.seconds.value == pytest.approx(sum(sorted(times)[19:21]) / 2)
    assert min(times) < first.seconds.low < first.seconds.value < first.seconds.high < max(times)
    assert first.cost.value == pytest.approx(first.seconds.value / 100)


def test_what_is_not_known_is_not_zero() -> None:
    (told,) = Report([trial(cost=0.5, seconds=2), trial(n=2, seconds=2)]).agents
    assert told.cost == Estimate(0.5, 0.5, 0.5)
    assert told.seconds == Estimate(2, 2, 2)
    (untold,) = Report([trial("waiting")]).agents
    assert (untold.rate, untold.cost, untold.seconds, untold.pass_at) == (None, None, None, {})


def test_scipy_is_imported_when_statistics_are_made() -> None:
    code = """
import sys
from thinkwell.trials import Report, Trial
report = Report([Trial(input="a", agent="b", repeat=1, status="passed")])
assert report.to_json() and report.best("a")
assert not {"scipy", "numpy", "pydantic", "rich", "dbos"} & set(sys.modules)
assert report.agents[0].passed == 1
assert "scipy" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_scipy_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.stats", None)
    with pytest.raises(ImportError, match=r"statistics need scipy, .* pip install 'thinkwell\[trials\]'"):
        assert Report([trial()]).agents
