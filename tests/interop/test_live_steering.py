"""Real agents that are told something while they work."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import pytest

from interop.agents import CLAUDE_DIRECT, CODEX
from interop.live import TIMEOUT, shell
from interop.model_server import EndTurn, Hold, ModelServer, Say
from thinkwell import Injected, open_agent
from thinkwell import events as ev

if TYPE_CHECKING:
    from pathlib import Path

    from interop.agents import AgentRecipe, Launch

pytestmark = [
    pytest.mark.interop,
    pytest.mark.parametrize("recipe", [CLAUDE_DIRECT, CODEX], ids=lambda recipe: recipe.name),
]


async def test_steered_in_mid_text(
    recipe: AgentRecipe, launch: Launch, models: ModelServer, project: Path
) -> None:
    with anyio.fail_after(TIMEOUT):
        async with (
            open_agent(command=launch.command, env=launch.env, cwd=project) as agent,
            agent.session() as session,
        ):
            hold = Hold()
            models.play(Say("I review it."), hold, EndTurn(), Say("The login is fine, too."))
            stream = session.think().text("Review it.").stream(include="all")
            await anyio.to_thread.run_sync(hold.reached.wait, TIMEOUT)
            assert await stream.steer("Also check the login.") == Injected()
            hold.release()
            assert "The login is fine, too." in await stream.result
            await stream.wait()
            assert any(b"Also check the login." in request.body for request in models.requests)
            assert stream.view.user_messages == ("Also check the login.",)
            assert [event.outcome async for event in stream if isinstance(event, ev.Steered)] == ["injected"]
            models.play(Say("Here again."))
            assert "Here again." in await session.think().text("Are you there?").run()


async def test_steered_in_mid_tool(
    recipe: AgentRecipe, launch: Launch, models: ModelServer, project: Path
) -> None:
    """claude-agent-acp moves the command to the background, and works again when it has ended."""
    with anyio.fail_after(TIMEOUT):
        async with (
            open_agent(command=launch.command, env=launch.env, cwd=project, permissions="allow") as agent,
            agent.session() as session,
        ):
            models.play(shell(recipe, "sleep 5; echo slept"), Say("The login is fine."), EndTurn())
            models.play(Say("It has slept."))
            stream = session.think().text("Sleep.").stream(include="all")
            async for event in stream:
                if isinstance(event, ev.ToolStart):
                    break
            await anyio.sleep(1)  # the command has to run: an agent tells of it before
            assert await stream.steer("Also check the login.") == Injected()
            await stream.wait()
            assert "The login is fine." in stream.view.messages
            assert not stream.view.background
            assert stream.late == () or all(isinstance(each, ev.SessionInfoUpdate) for each in stream.late)
            if recipe is CLAUDE_DIRECT:
                cycles = [each.origin async for each in stream if isinstance(each, ev.AgentCycle)]
                assert cycles == ["task-notification"]
                assert stream.view.messages[-1] == "It has slept."
