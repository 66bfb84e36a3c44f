"""Cancelling in the middle of a tool, with agents that this project did not write."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest

from interop.live import ASKING, TIMEOUT, processes_of, shell
from interop.model_server import CallTool, ModelServer, Say
from thinkwell import ThoughtCancelled, open_agent

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from interop.agents import AgentRecipe, Launch
    from thinkwell import Session

pytestmark = [
    pytest.mark.interop,
    pytest.mark.parametrize("recipe", ASKING, ids=lambda recipe: recipe.name),
]

LEAVING = 16.0
"""Seconds: 10 for the agent to end its turn, 5 for it to close the session, and one more."""


@pytest.mark.scenario("cancel in mid tool")
async def test_cancel_in_our_own_tool_cancels_it_and_the_session_goes_on(
    launch: Launch, models: ModelServer, project: Path
) -> None:
    began, ended = anyio.Event(), anyio.Event()

    async def wait() -> None:
        """Wait for something that never comes."""
        began.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()

    with anyio.fail_after(TIMEOUT):
        async with (
            open_agent(command=launch.command, env=launch.env, cwd=project) as agent,
            agent.session() as session,
        ):
            # Some agents hear of the tool's end before the cancellation, and ask their model again.
            models.play(CallTool("wait"), Say("I waited."))
            stream = session.think(int).text("Wait.").tool(wait).stream()
            await began.wait()
            stream.cancel()
            await ended.wait()
            await _is_over(stream.wait)
            assert isinstance(stream.result.exception(), ThoughtCancelled)
            await _goes_on(session, models)


@pytest.mark.scenario("cancel in mid tool")
async def test_cancel_in_a_command_of_the_agent_ends_the_command(
    recipe: AgentRecipe, launch: Launch, models: ModelServer, tmp_path: Path, project: Path
) -> None:
    with anyio.fail_after(TIMEOUT):
        async with (
            open_agent(command=launch.command, env=launch.env, cwd=project, permissions="allow") as agent,
            agent.session() as session,
        ):
            models.play(shell(recipe, "touch began && sleep 987"), Say("Never said."))
            stream = session.think().text("Sleep.").stream()
            while not (project / "began").exists():  # noqa: ASYNC110 - gemini tells nothing of its tools
                await anyio.sleep(0.05)
            assert _commands(tmp_path / "home")
            stream.cancel()
            await _is_over(stream.wait)
            assert isinstance(stream.result.exception(), ThoughtCancelled)
            await _goes_on(session, models)
            assert _commands(tmp_path / "home") == []


async def _is_over(wait: Callable[[], Awaitable[None]]) -> None:
    with anyio.fail_after(LEAVING):
        await wait()


async def _goes_on(session: Session, models: ModelServer) -> None:
    """Take another turn in the session."""
    models.skip()
    models.play(Say("Here again."))
    assert await session.think().text("Are you there?").run() == "Here again."


def _commands(home: Path) -> list[str]:
    return [process for process in processes_of(home) if "sleep 987" in process]
