"""Real agents whose model service fails: they try again, or others take over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import anyio
import pytest

from interop.agents import CLAUDE_ONCE, CODEX_ONCE
from interop.live import TIMEOUT, shell
from interop.model_server import CallTool, Fail, ModelServer, Say
from thinkwell import Overloaded, Retry, open_agent, tool
from thinkwell import events as ev

if TYPE_CHECKING:
    from pathlib import Path

    from interop.agents import AgentRecipe, Launch
    from thinkwell import ThoughtStream

pytestmark = [
    pytest.mark.interop,
    pytest.mark.parametrize(
        ("recipe", "next_recipe"),
        [(CLAUDE_ONCE, CODEX_ONCE), (CODEX_ONCE, CLAUDE_ONCE)],
        ids=["claude-then-codex", "codex-then-claude"],
    ),
]

BUSY: Final = Fail(429, "Too many requests", "rate_limit_error")
SOON: Final = Retry(random=lambda: 0.0)
DIALECTS: Final = {"claude": "messages", "codex": "responses"}


async def switches(stream: ThoughtStream[str]) -> list[tuple[str, str, str, str]]:
    await stream.wait()
    failed = [each async for each in stream if isinstance(each, ev.TryFailed)]
    return [(each.agent, each.error, each.then, each.next_agent) for each in failed]


async def test_it_tries_again_and_then_another_agent_takes_over_that_knows_what_was_said(
    recipe: AgentRecipe,
    next_recipe: AgentRecipe,
    launch: Launch,
    next_launch: Launch,
    models: ModelServer,
    project: Path,
) -> None:
    first, second = recipe.profile, next_recipe.profile
    other = open_agent(second, command=next_launch.command, env=next_launch.env, cwd=project)
    with anyio.fail_after(TIMEOUT):
        async with open_agent(
            first, command=launch.command, env=launch.env, cwd=project, fallback=[other]
        ) as agent:
            models.play(BUSY, BUSY, Say("It parses text."))
            stream = agent.think().text("What is in parser.py?").stream(include="all", retry=SOON)
            assert "It parses text." in await stream.result
            assert await switches(stream) == [(first, "Overloaded", "retry", first)] * 2

            models.play(CallTool("look", {"name": "parser.py"}), BUSY, BUSY, Say("It parses text."))
            before = len(models.requests)
            task = agent.think().text("What is in parser.py?").tool(look)
            stream = task.stream(include="all", retry=Retry(attempts=2, random=SOON.random))
            assert "It parses text." in await stream.result
            assert await switches(stream) == [
                (first, "Overloaded", "retry", first),
                (first, "Overloaded", "fallback", second),
            ]
            asked = [each for each in models.requests[before:] if each.dialect and each.tools]
            assert list(dict.fromkeys(each.dialect for each in asked)) == [DIALECTS[first], DIALECTS[second]]
            told = asked[-1].body.decode()
            assert "What is in parser.py?" in told
            assert f"Before you, {first} worked on this task" in told
            assert "look (completed)" in told
            assert "429" not in told


@tool(readonly=True)
def look(name: str) -> str:
    """Look at a file."""
    return f"{name} is short"


async def test_after_an_effect_no_agent_does_it_again_unless_that_is_allowed(
    recipe: AgentRecipe,
    next_recipe: AgentRecipe,
    launch: Launch,
    next_launch: Launch,
    models: ModelServer,
    project: Path,
) -> None:
    written = project / "log.txt"
    write = shell(recipe, f"echo once >> {written}")
    first, other = (
        open_agent(one.profile, command=how.command, env=how.env, cwd=project, permissions="allow")
        for one, how in ((recipe, launch), (next_recipe, next_launch))
    )
    with anyio.fail_after(TIMEOUT):
        async with first as agent:
            task = agent.think().text("Write it.")
            models.play(write, BUSY)
            stream = task.fallback(other).stream(include="all", retry=SOON)
            assert await switches(stream) == []
            assert isinstance(stream.result.exception(), Overloaded)

            models.play(write, BUSY, Say("It is there."))
            stream = task.fallback(other, after_effects=True).stream(include="all", retry=SOON)
            assert "It is there." in await stream.result
            assert await switches(stream) == [(recipe.profile, "Overloaded", "fallback", next_recipe.profile)]
            assert b"Something may have been changed: look before" in models.requests[-1].body
            assert written.read_text().split() == ["once"] * 2
