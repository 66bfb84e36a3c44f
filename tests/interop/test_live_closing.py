"""Leaving the block around an agent that this project did not write, in the middle of everything."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest

from interop.live import ASKING, TIMEOUT, nothing_runs, processes_of, shell
from interop.model_server import Hold, ModelServer, Say
from interop.test_live_mcp_servers import started
from thinkwell import ThoughtCancelled, open_agent

if TYPE_CHECKING:
    from pathlib import Path

    from interop.agents import AgentRecipe, Launch

pytestmark = [
    pytest.mark.interop,
    pytest.mark.parametrize("recipe", ASKING, ids=lambda recipe: recipe.name),
]


@pytest.mark.scenario("closed without a process left")
async def test_no_process_is_left_of_a_command_an_answer_and_an_mcp_server(
    recipe: AgentRecipe, launch: Launch, models: ModelServer, tmp_path: Path, project: Path
) -> None:
    held = Hold()
    with anyio.fail_after(TIMEOUT):
        async with (
            open_agent(
                command=launch.command,
                env=launch.env,
                cwd=project,
                permissions="allow",
                mcp_servers=[started(tmp_path / "listed")],
            ) as agent,
            agent.session() as first,
            agent.session() as second,
        ):
            models.play(shell(recipe, "touch began && sleep 987"))
            runs = first.think().text("Sleep.").stream()
            while not (project / "began").exists():  # noqa: ASYNC110 - not every agent tells of its tools
                await anyio.sleep(0.05)
            models.play(Say("This takes long."), held, Say("Never said."))
            speaks = second.think().text("Speak.").stream()
            await anyio.to_thread.run_sync(held.reached.wait)
            home = tmp_path / "home"
            running = processes_of(home)
            assert any("sleep 987" in process for process in running)
            assert any("user_server.py" in process for process in running)
    for stream in (runs, speaks):
        assert isinstance(stream.result.exception(), ThoughtCancelled)
    await nothing_runs(home)
