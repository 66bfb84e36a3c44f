"""The pytest plugin: fixtures that make agents for tests.

It is a module beside the package: every run of pytest in an environment with thinkwell imports it, and what
is in the package brings all of that along.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from typing_extensions import Unpack

    from thinkwell.testing import RecordedAgent, Script, ScriptedAgent, ScriptedAgentFactory, ScriptedOptions

__all__ = ("pytest_runtest_call", "pytest_runtest_makereport", "recorded_agent", "scripted_agent")

_AGENTS = pytest.StashKey[list["ScriptedAgent"]]()
"""The agents of a test."""


@pytest.fixture
def scripted_agent(request: pytest.FixtureRequest, tmp_path: Path) -> ScriptedAgentFactory:
    """Return a function that makes scripted agents: ``scripted_agent(script.says("Hello"))``.

    It takes what `thinkwell.testing.ScriptedAgent` takes. Each agent is checked at the end of the test, which
    fails by it, unless the test has failed or has done so itself. `ScriptedAgent.program` keeps the script in
    ``tmp_path``.
    """
    from thinkwell.testing import ScriptedAgent  # only tests that use it pay for it

    agents = cast("pytest.Item", request.node).stash[_AGENTS] = []

    def make(script: Script, **options: Unpack[ScriptedOptions]) -> ScriptedAgent:
        __tracebackhide__ = True
        agents.append(ScriptedAgent(script, **options, folder=tmp_path))
        return agents[-1]

    return make


@pytest.fixture
def recorded_agent() -> type[RecordedAgent]:
    """Return a function that makes agents of recordings: ``recorded_agent("run.ndjson")``.

    What it takes is what `thinkwell.testing.RecordedAgent` takes.
    """
    from thinkwell.testing import RecordedAgent  # only tests that use it pay for it

    return RecordedAgent


def _agents(item: pytest.Item) -> list[ScriptedAgent]:
    return item.stash.get(_AGENTS, list["ScriptedAgent"]())


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a test whose scripts did not go as they say."""
    __tracebackhide__ = True
    result = yield
    for agent in _agents(item):
        if not agent.checked:
            agent.check()
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show where the scripts of a test that fails stand, and what their agents were sent."""
    report = yield
    if report.failed:
        shown = "" if call.excinfo is None else str(call.excinfo.value)
        for agent in _agents(item):
            problem = agent.problem
            told = problem is None or str(problem) in shown or any(one in shown for one in problem.failures)
            lines = str(agent.sent) if told else f"{problem}\n{agent.sent}"
            report.sections.append(("thinkwell: a scripted agent of this test", lines))
    return report
