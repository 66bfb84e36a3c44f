"""Agents by the names under which they are known, installed and started by npx."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import anyio
import pytest

from interop.agents import CACHE
from interop.live import PLAIN, TIMEOUT
from interop.model_server import CallTool, ModelServer, Say
from thinkwell import open_agent
from thinkwell.agents import Npx, find_agent

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from interop.agents import AgentRecipe, Launch

pytestmark = [
    pytest.mark.interop,
    pytest.mark.parametrize("recipe", PLAIN, ids=lambda recipe: recipe.name),
]

NPM = {"npm_config_cache": str(CACHE / "npm"), "npm_config_update_notifier": "false"}
"""Where npx keeps what it has installed."""


@pytest.fixture
def installed(recipe: AgentRecipe, launch: Launch) -> Mapping[str, str]:
    """The variables with which npx finds the agent, without a network."""
    npx = find_agent(recipe.profile).launch
    assert isinstance(npx, Npx)
    npm = shutil.which("npm")
    assert npm is not None
    command = [npm, "exec", "--yes", f"--package={npx.spec}", "--", "node", "--version"]
    subprocess.run(
        command,
        env={**os.environ, **NPM, "TMPDIR": launch.env["TMPDIR"]},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return NPM


@pytest.mark.scenario("started by its profile")
async def test_an_agent_is_known_by_its_name(
    recipe: AgentRecipe, launch: Launch, models: ModelServer, project: Path, installed: Mapping[str, str]
) -> None:
    models.play(CallTool("return_result", {"result": 7}), Say("Done."))
    with anyio.fail_after(TIMEOUT):
        async with open_agent(recipe.profile, env={**launch.env, **installed}, cwd=project) as agent:
            assert agent.name == recipe.profile
            stream = agent.think(int).text("How many?").stream()
            assert await stream.result == 7
            await stream.wait()
    assert models.remaining == ()
