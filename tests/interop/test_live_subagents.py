"""Claude Code with a sub-agent: what that says and does stands apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest

from interop.agents import CLAUDE_DIRECT
from interop.live import TIMEOUT
from interop.model_server import CallTool, EndTurn, ModelServer, Say, Think
from thinkwell import open_agent

if TYPE_CHECKING:
    from pathlib import Path

    from interop.agents import AgentRecipe, Launch

pytestmark = [
    pytest.mark.interop,
    pytest.mark.parametrize("recipe", [CLAUDE_DIRECT], ids=lambda recipe: recipe.name),
]


async def test_a_sub_agent_reads_a_file(
    recipe: AgentRecipe, launch: Launch, models: ModelServer, project: Path
) -> None:
    file = project / "a.txt"
    file.write_text("hello\n")
    asked = {"description": "Read a.txt", "prompt": "Read it.", "subagent_type": "general-purpose"}
    models.play(
        Say("I ask a helper."),
        CallTool("Agent", {**asked, "run_in_background": False}),
        Think("Let me look."),
        Say("The helper looks."),
        CallTool("Read", {"file_path": str(file)}),
        Say("It says hello."),
        EndTurn(),
        Say("The helper says: hello."),
    )
    with anyio.fail_after(TIMEOUT):
        async with open_agent(
            command=launch.command, env=launch.env, cwd=project, permissions="allow"
        ) as agent:
            stream = agent.think().text("Have a helper read a.txt.").stream()
            assert await stream.result == "The helper says: hello."
            await stream.wait()
    view = stream.view
    assert view.messages == ("I ask a helper.", "The helper says: hello.")
    (helper,) = view.agents.values()
    assert (helper.text, helper.thoughts) == ("The helper looks.It says hello.", "Let me look.")
    assert [view.tools[id_].name for id_ in helper.calls] == ["Read"]
