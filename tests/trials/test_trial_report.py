"""Reports: the best trial, JSON, data frames."""

from __future__ import annotations

import json

import jsonschema
import pytest

from thinkwell.trials import NonePassed, Report, Spent, Trial

TRIALS = (
    Trial(input="a", agent="claude", repeat=1, status="passed", score=0.5, spent=Spent(cost=0.1), seconds=3),
    Trial(input="a", agent="claude", repeat=2, status="passed", score=0.9, spent=Spent(cost=0.4), seconds=9),
    Trial(input="a", agent="codex", repeat=1, status="passed", score=0.9, spent=Spent(cost=0.2), seconds=8),
    Trial(input="a", agent="codex", repeat=2, status="passed", score=0.9, spent=Spent(tokens=5), seconds=1),
    Trial(input="b", agent="claude", repeat=1, status="failed", score=1.0, seconds=2, attempts=1),
    Trial(input="b", agent="claude", repeat=2, status="error", error="it has exited", seconds=2, attempts=3),
    Trial(input="c", agent="codex", repeat=1, status="passed", spent=Spent(cost=9), seconds=2),
    Trial(input="c", agent="codex", repeat=2, status="passed", spent=Spent(cost=9), seconds=1),
)


def test_the_best_has_the_highest_score_and_costs_least() -> None:
    report = Report(TRIALS)
    assert report.inputs == ("a", "b", "c")
    assert report.best("a") == TRIALS[2]
    assert report.best("c") == TRIALS[7]
    report.best("a").changes.apply()  # without a worktree, nothing
    assert repr(report) == "<Report 6 passed, 1 failed, 1 error>"
    assert repr(Report([])) == "<Report of no trials>"


def test_there_may_be_no_best() -> None:
    with pytest.raises(NonePassed) as caught:
        Report(TRIALS).best("b")
    assert str(caught.value) == (
        "no trial of 'b' has passed (1 failed, 1 error); report.trials has them, with their errors"
    )
    with pytest.raises(ValueError, match="there is no such input, but 'a', 'b', 'c'"):
        Report(TRIALS).best("d")
    many = Report([Trial(input=str(n), agent="claude", repeat=1) for n in range(12)])
    with pytest.raises(ValueError, match="'9' and 2 more"):
        many.best("d")


def test_it_is_json_with_a_schema() -> None:
    report = json.loads(Report(TRIALS).to_json())
    schema = Report.json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(report, schema)
    assert report["version"] == 1
    assert report["trials"][5] == {
        "input": "b",
        "agent": "claude",
        "repeat": 2,
        "status": "error",
        "score": None,
        "spent": {"tool_calls": 0, "tokens": 0, "cost": None},
        "seconds": 2.0,
        "attempts": 3,
        "error": "it has exited",
    }
    for key in report["trials"][0]:
        short = {name: value for name, value in report["trials"][0].items() if name != key}
        with pytest.raises(jsonschema.ValidationError, match=f"'{key}' is a required property"):
            jsonschema.validate({**report, "trials": [short]}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**report, "version": 2}, schema)


def test_it_is_a_data_frame() -> None:
    columns = ["input", "agent", "repeat", "status", "score", "seconds", "attempts", "error"]
    columns += ["tool_calls", "tokens", "cost"]
    frame = Report(TRIALS).to_pandas()
    assert list(frame.columns) == columns
    assert frame.groupby("agent")["cost"].sum().round(1).to_dict() == {"claude": 0.5, "codex": 18.2}
    costs = Report(tuple(Trial(input="a", agent="b", repeat=n) for n in range(200)) + TRIALS).to_polars()[
        "cost"
    ]
    assert costs.null_count() == 200 + 3
    assert costs.sum() == pytest.approx(18.7)
    assert Report(TRIALS).to_polars().columns == columns
