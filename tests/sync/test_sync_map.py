"""`Agent.map` of the blocking API."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
from sync.playing import playing

import thinkwell
from thinkwell import AgentClosed, ThoughtCancelled
from thinkwell.sync.progress import Live
from thinkwell.testing import script

if TYPE_CHECKING:
    from pathlib import Path

    from thinkwell.sync import ThinkBuilder

TASK = thinkwell.think().text("Count ")


def test_outcomes_of_tasks_of_both_kinds() -> None:
    told = script
    for _ in range(11):
        told = told.says("yes").stops()
    with playing(told) as agent:

        def lettered(name: str) -> ThinkBuilder[str]:
            return agent.think().text(f"Count {name}")

        tasks: list[Any] = [TASK, agent.think().text("Count "), lettered]
        for task in tasks:
            with agent.map(task, ["a", "b", "c"], limit=2, ordered=True) as outcomes:
                assert [(each.input, each.result) for each in outcomes] == [(name, "yes") for name in "abc"]
        assert [each.index for each in agent.map(TASK, ["a", "b"]).results()] == [0, 1]
        with pytest.raises(TypeError, match="give a task"):
            agent.map("Count", ["a"])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def test_outcomes_are_read_after_the_agent_was_closed(capfd: pytest.CaptureFixture[str]) -> None:
    with playing(script.says("yes").stops()) as agent:
        outcomes = agent.map(TASK, ["a"])
        with Live(outcomes, style="lines"):
            while "1 waiting" not in repr(outcomes):
                time.sleep(0.001)
    assert [each.result for each in outcomes] == ["yes"]
    assert "a: [" in capfd.readouterr().err


def test_a_result_is_kept(tmp_path: Path) -> None:
    with playing(script.says("once").stops()) as agent:
        for _ in range(2):
            assert agent.think().text("Go").run(key="job", store=tmp_path / "jobs.sqlite") == "once"


def test_cancelling_and_leaving_the_block() -> None:
    with playing(script.hangs()) as agent:
        with agent.map(TASK, ["a", "b", "c"], limit=1) as outcomes:
            outcomes.cancel()
            assert isinstance(next(outcomes).error, ThoughtCancelled)
            assert "0 running" in repr(outcomes)
        late = agent.map(TASK, ["a", "b"], limit=1)
    with pytest.raises(AgentClosed):
        late.results()
