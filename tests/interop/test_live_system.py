"""System prompts of real agents: their model gets them, in every way to open a session."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import anyio
import pytest
from msgspec.structs import replace

from interop.agents import CLAUDE_DIRECT, CODEX, GEMINI, OPENCODE
from interop.live import TIMEOUT
from interop.model_server import EndTurn, ModelServer, Say
from thinkwell import CapabilityMissing, open_agent
from thinkwell.agents import find_agent

if TYPE_CHECKING:
    from pathlib import Path

    from interop.agents import AgentRecipe, Launch
    from thinkwell import Session

SystemMode: TypeAlias = Literal["append", "replace"]

pytestmark = pytest.mark.interop

RHYME: Final = "Speak in rhyme, please."
OTHER: Final = "Speak plainly, please."
CLAUDES: Final = "You are an agent working with the user"
"""What Claude Code's own instructions begin with."""

takes = pytest.mark.parametrize(
    ("recipe", "mode"),
    [(CLAUDE_DIRECT, "append"), (CLAUDE_DIRECT, "replace"), (CODEX, "append")],
    ids=["claude-append", "claude-replace", "codex-append"],
)
takes_none = pytest.mark.parametrize("recipe", [OPENCODE, GEMINI], ids=lambda recipe: recipe.name)


@takes
async def test_the_model_gets_it_for_as_long_as_the_session_lives(
    recipe: AgentRecipe, mode: SystemMode, launch: Launch, models: ModelServer, project: Path
) -> None:
    async def turn(session: Session) -> str:
        models.play(Say("Fine."), EndTurn())
        with anyio.fail_after(TIMEOUT):
            assert "Fine." in await session.think().text("How are you?").run()
        return next(each for each in reversed(models.requests) if each.tools).body.decode()

    how = partial(open_agent, recipe.profile, command=launch.command, env=launch.env, cwd=project)
    async with how() as agent:
        async with agent.session() as session:
            plain = await turn(session)
        async with agent.session(system=RHYME, system_mode=mode) as session:
            told = await turn(session)
            assert RHYME not in plain
            assert RHYME in told
            assert (CLAUDES in plain) == (recipe is CLAUDE_DIRECT)
            assert (CLAUDES in told) == (CLAUDES in plain and mode == "append")
            async with session.fork() as copy:
                assert RHYME in await turn(copy)
        if mode == "append" and recipe is CODEX:
            with pytest.raises(CapabilityMissing):
                agent.session(system=RHYME, system_mode="replace")
    for old in ("load", "resume", "fork"):  # by another process
        source: dict[str, Any] = {old: session.id}
        async with how() as agent:
            async with agent.session(**source) as again:
                assert RHYME in await turn(again)
            with pytest.raises(CapabilityMissing):
                agent.session(**source, system=OTHER)
            async with agent.session(**source, system=OTHER, system_fallback="prompt") as again:
                assert OTHER in await turn(again)


@takes
@pytest.mark.parametrize("old", ["load", "resume", "fork"])
async def test_none_that_comes_later_reaches_the_model(
    recipe: AgentRecipe,
    mode: SystemMode,
    old: str,
    launch: Launch,
    models: ModelServer,
    project: Path,
) -> None:
    """The reason for `keeps_system` in its profile. If this fails, the agent has become better."""
    profile = replace(find_agent(recipe.profile), keeps_system=False)
    ids: list[str] = []
    for system in (None, RHYME):
        source: dict[str, Any] = {} if system is None else {old: ids[0]}
        models.play(Say("Fine."))
        with anyio.fail_after(TIMEOUT):
            async with (
                open_agent(profile, command=launch.command, env=launch.env, cwd=project) as agent,
                agent.session(**source, system=system, system_mode=mode if system else "append") as session,
            ):
                assert "Fine." in await session.think().text("How are you?").run()
                ids.append(session.id)
    assert not any(RHYME.encode() in request.body for request in models.requests)


@takes_none
async def test_an_agent_that_takes_none_gets_it_before_the_prompt_or_not_at_all(
    launch: Launch, models: ModelServer, project: Path
) -> None:
    with anyio.fail_after(TIMEOUT):
        async with open_agent(command=launch.command, env=launch.env, cwd=project) as agent:
            with pytest.raises(CapabilityMissing, match=r"sessionCapabilities\.systemPrompt"):
                agent.session(system=RHYME)
            models.play(Say("Fine."))
            async with agent.session(system=RHYME, system_fallback="prompt") as session:
                assert "Fine." in await session.think().text("How are you?").run()
    assert any(RHYME.encode() in request.body for request in models.requests)
