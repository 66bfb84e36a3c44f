"""Agents by the names under which they are known, installed and started by npx."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest

from interop.live import NPM, PLAIN, TIMEOUT, fetch_for_npx
from interop.model_server import CallTool, ModelServer, Say
from thinkwell import open_agent

if TYPE_CHECKING:
    from pathlib import Path

    from interop.agents import AgentRecipe, Launch

pytestmark = [
    pytest.mark.interop,
    pytest.mark.parametrize("recipe", PLAIN, ids=lambda recipe: recipe.name),
]


@pytest.mark.scenario("started by its profile")
async def test_an_agent_is_known_by_its_name(
    recipe: AgentRecipe, launch: Launch, models: ModelServer, project: Path
) -> None:
    fetch_for_npx(recipe)
    models.play(CallTool("return_result", {"result": 7}), Say("Done."))
    with anyio.fail_after(TIMEOUT):
        async with open_agent(recipe.profile, env={**launch.env, **NPM}, cwd=project) as agent:
            assert agent.name == recipe.profile
            stream = agent.think(int).text("How many?").stream()
            assert await stream.result == 7
            await stream.wait()
    assert models.remaining == ()
