"""The pytest plugin: fixtures that make agents for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from typing_extensions import Unpack

    from thinkwell.testing import RecordedAgent, Script, ScriptedAgent, ScriptedAgentFactory, ScriptedOptions

__all__ = ("pytest_runtest_makereport", "recorded_agent", "scripted_agent")

_AGENTS = pytest.StashKey[list["ScriptedAgent"]]()
"""The agents of a test."""


@pytest.fixture
def scripted_agent(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[ScriptedAgentFactory]:
    """Return a function that makes scripted agents: ``scripted_agent(script.says("Hello"))``.

    It takes what `thinkwell.testing.ScriptedAgent` takes. Each agent is checked when the test ends, unless
    the test has failed or has done so itself. `ScriptedAgent.program` keeps the script in ``tmp_path``.
    """
    from thinkwell.testing import ScriptedAgent  # only tests that use it pay for it

    item = cast("pytest.Item", request.node)
    agents = item.stash[_AGENTS] = []

    def make(script: Script, **options: Unpack[ScriptedOptions]) -> ScriptedAgent:
        agents.append(ScriptedAgent(script, **options, folder=tmp_path))
        return agents[-1]

    yield make
    for agent in agents:
        if not agent.checked:
            agent.check()


@pytest.fixture
def recorded_agent() -> type[RecordedAgent]:
    """Return a function that makes agents of recordings: ``recorded_agent("run.ndjson")``.

    What it takes is what `thinkwell.testing.RecordedAgent` takes.
    """
    from thinkwell.testing import RecordedAgent  # only tests that use it pay for it

    return RecordedAgent


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show what has become of the scripts of a test that fails."""
    report = yield
    if call.when == "call" and report.failed:
        for agent in item.stash.get(_AGENTS, list["ScriptedAgent"]()):
            agent.checked = True
            if (problem := agent.problem) is not None:
                report.sections.append(("thinkwell: a script of this test", str(problem)))
    return report
