"""A host of lines, the middleware, and an agent that this project did not write."""

from __future__ import annotations

import shlex
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import anyio
import pytest
from pydantic import BaseModel

from interop.live import ASKING, TIMEOUT, shell
from interop.model_server import CallTool, ModelServer, Say
from thinkwell import AgentReported, open_agent
from thinkwell.listen import AgentApproval, Handlers, Transcript

if TYPE_CHECKING:
    from pathlib import Path

    from interop.agents import AgentRecipe, Launch

pytestmark = [
    pytest.mark.interop,
    pytest.mark.parametrize("recipe", ASKING, ids=lambda recipe: recipe.name),
]


class Finding(BaseModel):
    """What the agent is asked for."""

    title: str
    lines: list[int]


def middleware(launch: Launch) -> list[str]:
    """The command of the middleware with an agent behind it."""
    return [sys.executable, "-m", "thinkwell", "middleware", "--command", shlex.join(launch.command)]


async def test_a_host_of_lines_decides_what_an_agent_may_do(
    recipe: AgentRecipe, launch: Launch, models: ModelServer, project: Path
) -> None:
    transcript = Transcript()
    handlers = Handlers(transcript=transcript)
    heard: list[str] = []

    @handlers.on("approval")
    def approve(approval: AgentApproval) -> bool | str:
        return approval.description == "touch allowed" or "not that one"

    @handlers.on("partial")
    def hear(partial: dict[str, str]) -> None:
        heard.append(partial["text"])

    with anyio.fail_after(TIMEOUT):
        async with open_agent(
            command=middleware(launch), env=launch.env, cwd=project, protocol="ndjson", init={"timeout": 60}
        ) as agent:
            models.play(shell(recipe, "touch allowed"), Say("Done."))
            assert await agent.think().text("Run it.").listen(handlers) == "Done."
            # Before that codex warns in a message of its own that it does not know the model.
            assert "".join(heard).endswith("Done.")
            models.play(shell(recipe, "touch denied"), Say("Not done."))
            with suppress(AgentReported):  # some end the turn where they are denied something
                await agent.think().text("Run it.").listen(handlers)
    assert (project / "allowed").exists()
    assert not (project / "denied").exists()
    assert [(record.question, record.answer) for record in transcript] == [
        ("touch allowed", True),
        ("touch denied", "not that one"),
    ]


async def test_a_host_of_lines_gets_a_typed_result(
    recipe: AgentRecipe, launch: Launch, models: ModelServer, project: Path
) -> None:
    with anyio.fail_after(TIMEOUT):
        async with open_agent(
            command=middleware(launch),
            env=launch.env,
            cwd=project,
            protocol="ndjson",
            prompt_format="json",
        ) as agent:
            models.play(
                CallTool("return_result", {"result": {"title": "Race", "lines": [7, 9]}}), Say("Done.")
            )
            found = await agent.think(Finding).text("What is wrong?").run()
            assert found == Finding(title="Race", lines=[7, 9])
            models.play(Say("Nothing else."))
            assert await agent.think().text("And what else?").run() == "Nothing else."
