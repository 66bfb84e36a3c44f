"""Real agents that are told something while they work."""

from __future__ import annotations

import os
import random
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import anyio
import anyio.to_thread
import pytest

from interop.agents import CLAUDE_DIRECT, CODEX
from interop.live import TIMEOUT, shell
from interop.model_server import EndTurn, Hold, ModelServer, Say, Step
from thinkwell import Injected, Refused, RunEnded, open_agent
from thinkwell import events as ev

if TYPE_CHECKING:
    from pathlib import Path

    from interop.agents import AgentRecipe, Launch

pytestmark = [
    pytest.mark.interop,
    pytest.mark.parametrize("recipe", [CLAUDE_DIRECT, CODEX], ids=lambda recipe: recipe.name),
]


MOMENTS: Final = int(os.environ.get("MOMENTS", "5"))
"""At how many random moments an agent is told something."""

SEED: Final = int(os.environ.get("SEED", "1"))


class Pause(Hold):
    """Keeps an answer open for some seconds."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds

    def wait(self) -> None:
        self.reached.set()
        self._released.wait(self._seconds)


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


async def test_steered_while_the_run_only_stays_open(
    recipe: AgentRecipe, launch: Launch, models: ModelServer, project: Path
) -> None:
    """Claude for its command in the background, codex as it may have more to say: each reads it at once."""
    with anyio.fail_after(TIMEOUT):
        async with (
            open_agent(command=launch.command, env=launch.env, cwd=project, permissions="allow") as agent,
            agent.session() as session,
        ):
            models.play(shell(recipe, "sleep 8; echo slept"), Say("The login is fine."), EndTurn())
            models.play(Say("The logout is fine, too."), EndTurn(), Say("It has slept."))
            stream = session.think().text("Sleep.").stream(include="all")
            async for event in stream:
                if isinstance(event, ev.ToolStart):
                    break
            await anyio.sleep(1)  # the command has to run: an agent tells of it before
            assert await stream.steer("Also check the login.") == Injected()
            async for event in stream:
                if isinstance(event, ev.TurnEnded):
                    break
            assert await stream.steer("And the logout.") == Injected()
            async for event in stream:
                if isinstance(event, ev.TurnEnded) and event.number == 2:
                    break
            assert "The logout is fine, too." in stream.view.messages
            assert stream.view.background == (("sleep 8; echo slept",) if recipe is CLAUDE_DIRECT else ())
            await stream.wait()
            assert stream.view.user_messages == ("Also check the login.", "And the logout.")
            assert any(b"And the logout." in request.body for request in models.requests)


async def test_steered_at_any_moment(
    recipe: AgentRecipe, launch: Launch, models: ModelServer, project: Path
) -> None:
    """Nothing is lost, nothing comes in another turn, and nothing hangs."""
    came: list[str] = []
    async with (
        open_agent(command=launch.command, env=launch.env, cwd=project, permissions="allow") as agent,
        agent.session() as session,
    ):
        for number in range(SEED, SEED + MOMENTS):
            rng = random.Random(number)
            told, answered, after = f"note-{number}.", f"heard-{number}.", f"next-{number}."
            first: list[Step] = [
                Say(f"begun-{number}."),
                Pause(rng.random()),
                Say("More."),
                Pause(rng.random() / 4),
            ]
            if rng.random() < 0.4:
                first = [
                    shell(recipe, f"sleep {rng.random() * 3:.2f}; echo slept"),
                    Say("It slept."),
                    EndTurn(),
                ]
            models.play(*first, EndTurn(), Say(answered), EndTurn())
            with anyio.fail_after(TIMEOUT):
                stream = session.think().text(f"Begin {number}.").stream(include="all")
                await anyio.sleep(rng.random() * 2)
                outcome: type[object] = RunEnded
                with suppress(RunEnded):
                    outcome = type(await stream.steer(told))
                await stream.wait()
                assert stream.result.exception() is None, number
                heard = any(told.encode() in request.body for request in models.requests)
                assert heard == (outcome is Injected), (number, outcome)
                assert (answered in "".join(stream.view.messages)) == (
                    Say(answered) not in models.remaining
                ), number
                models.skip()
                models.play(Say(after))
                assert await session.think().text("Next.").run() == after, number
            came.append(outcome.__name__)
    assert {Injected.__name__} <= set(came) <= {each.__name__ for each in (Injected, Refused, RunEnded)}, came


async def test_steered_at_the_very_end(
    recipe: AgentRecipe, launch: Launch, models: ModelServer, project: Path
) -> None:
    """codex-acp takes it then, but reads it only with the next prompt."""
    async with (
        open_agent(command=launch.command, env=launch.env, cwd=project) as agent,
        agent.session() as session,
    ):
        for number in range(SEED, SEED + MOMENTS):
            hold = Hold()
            models.play(Say("I review it."), hold, EndTurn(), Say("The login is fine, too."), EndTurn())
            with anyio.fail_after(TIMEOUT):
                stream = session.think().text("Review it.").stream()
                await anyio.to_thread.run_sync(hold.reached.wait, TIMEOUT)
                hold.release()
                await anyio.sleep(random.Random(number).random() * 0.04)
                outcome: type[object] = RunEnded
                with suppress(RunEnded):
                    outcome = type(await stream.steer(f"note-{number}."))
                await stream.wait()
            heard = any(f"note-{number}.".encode() in request.body for request in models.requests)
            assert heard == (outcome is Injected), (number, outcome)
            models.skip()
