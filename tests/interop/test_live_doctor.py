"""What the doctor says of agents that this project did not write, before a prompt and after one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from interop.live import PLAIN, examined
from interop.model_server import CallTool, ModelServer, Say

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from interop.agents import AgentRecipe, Launch

pytestmark = [
    pytest.mark.interop,
    pytest.mark.parametrize("recipe", PLAIN, ids=lambda recipe: recipe.name),
]


@pytest.mark.scenario("doctor")
async def test_whether_an_agent_works_is_not_known_without_a_prompt(
    recipe: AgentRecipe,
    launch: Launch,
    models: ModelServer,
    project: Path,
    tell: Callable[[str, str], None],
) -> None:
    diagnosis = await examined(launch, project, prompt=False)
    assert diagnosis.ways
    assert diagnosis.verdict == "unknown"
    assert not [request for request in models.requests if request.tools]
    tell("shows", diagnosis.verdict)


@pytest.mark.scenario("doctor with a prompt")
async def test_a_prompt_shows_that_an_agent_works(
    recipe: AgentRecipe,
    launch: Launch,
    models: ModelServer,
    project: Path,
    tell: Callable[[str, str], None],
) -> None:
    models.play(CallTool("return_result", {"result": 7}), Say("Done."))
    diagnosis = await examined(launch, project, prompt=True)
    assert diagnosis.verdict == "works"
    tell("shows", diagnosis.verdict)
