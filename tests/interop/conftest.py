"""The stand-in for the model, and an agent that is tied to it."""

from __future__ import annotations

import os
import signal
import tempfile
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import anyio
import pytest

from interop.agents import AGENTS, VENDOR_PREFIXES, AgentRecipe, Launch
from interop.live import nothing_runs, pids_of
from interop.matrix_plugin import (
    pytest_collection_modifyitems,
    pytest_configure,
    pytest_runtest_makereport,
    pytest_terminal_summary,
)
from interop.model_server import ModelServer
from interop.more_agents import STAYS

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from pathlib import Path

__all__ = (
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_runtest_makereport",
    "pytest_terminal_summary",
)


@pytest.fixture
def models() -> Iterator[ModelServer]:
    """The model that the agents talk to."""
    with ModelServer() as server:
        yield server


@pytest.fixture(params=AGENTS, ids=lambda agent: agent.name)
def recipe(request: pytest.FixtureRequest) -> AgentRecipe:
    """The agent to test with; a test that parametrizes `recipe` itself chooses others."""
    agent = request.param
    assert isinstance(agent, AgentRecipe)
    return agent


@pytest.fixture
def launch(
    recipe: AgentRecipe, models: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Launch]:
    """An installed agent, tied to the stand-in; when the test is over, nothing of it may run."""
    for name in [name for name in os.environ if name.startswith(VENDOR_PREFIXES)]:
        monkeypatch.delenv(name)
    with _launch(recipe, models, tmp_path / "home") as made:
        yield made


@pytest.fixture
def next_launch(
    next_recipe: AgentRecipe, launch: Launch, models: ModelServer, tmp_path: Path
) -> Iterator[Launch]:
    """Another one, for tests that parametrize `next_recipe`."""
    with _launch(next_recipe, models, tmp_path / "next") as made:
        yield made


@contextmanager
def _launch(recipe: AgentRecipe, models: ModelServer, home: Path) -> Generator[Launch]:
    launch = recipe.launch(home=home, model_url=models.url)
    # Short, since agents put sockets there.
    with tempfile.TemporaryDirectory(prefix="agent-", ignore_cleanup_errors=True) as temporary:
        yield replace(launch, env={**launch.env, "TMPDIR": temporary})
        if recipe.name in STAYS:
            for pid in pids_of(home):
                os.kill(pid, signal.SIGKILL)
        anyio.run(nothing_runs, home)


@pytest.fixture
def tell(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Tells the matrix something of the agent. `record_property` warns where a report in XML is wanted."""
    item = cast("pytest.Item", request.node)
    return lambda name, value: item.user_properties.append((name, value))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The folder that the agent works in."""
    folder = tmp_path / "project"
    folder.mkdir()
    return folder
