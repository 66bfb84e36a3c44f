"""Agents that nothing was made for: what works by the protocol, and what each of them does not do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast

import anyio
import anyio.to_thread
import pytest
from pydantic import BaseModel

from interop.live import examined, shell
from interop.matrix import explanations
from interop.model_server import CallTool, EndTurn, Fail, Hold, ModelServer, Say
from interop.more_agents import ADDED, MORE_AGENTS, WAYS, WITHOUT_TOOLS
from thinkwell import AgentReported, ResultMissing, ThoughtCancelled, ToolsNotSeen, open_agent
from thinkwell.events import ResultAttempt, ToolsSeen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from interop.agents import AgentRecipe, Launch
    from thinkwell import Agent

pytestmark = [pytest.mark.interop, pytest.mark.more_agents]

TIMEOUT = 180
"""Seconds for a whole test; the slowest agent seen needed 40 to start, on a busy machine."""

every_agent = pytest.mark.parametrize("recipe", MORE_AGENTS, ids=lambda recipe: recipe.name)

WITH_TOOLS = tuple(recipe for recipe in MORE_AGENTS if recipe.name not in WITHOUT_TOOLS)

with_tools = pytest.mark.parametrize("recipe", WITH_TOOLS, ids=lambda recipe: recipe.name)

without_tools = pytest.mark.parametrize(
    "recipe",
    [recipe for recipe in MORE_AGENTS if recipe.name in WITHOUT_TOOLS],
    ids=lambda recipe: recipe.name,
)


class Finding(BaseModel):
    """Something that was found, and what lies below it."""

    title: str
    severity: Literal["low", "high"]
    parts: list[Finding] = []


class Report(BaseModel):
    """What the agent is asked for."""

    findings: list[Finding]
    score: int


GIVEN = {
    "findings": [{"title": "Race", "severity": "high", "parts": [{"title": "No lock", "severity": "low"}]}],
    "score": 7,
}
REPORT = Report.model_validate(GIVEN)


@pytest.fixture(autouse=True)
def explained(request: pytest.FixtureRequest) -> None:
    """Expect what an agent is known not to do."""
    recipe: AgentRecipe = request.getfixturevalue("recipe")
    node = cast("pytest.Item", request.node)
    scenarios = {scenario for mark in node.iter_markers("scenario") for scenario in mark.args}
    for note in explanations():
        if note.fault and note.agent == recipe.heading and note.scenario in scenarios:
            # Some of it is a matter of time.
            request.applymarker(pytest.mark.xfail(reason=note.reason, strict=False))


def opened(
    recipe: AgentRecipe,
    launch: Launch,
    project: Path,
    *,
    way: Literal["http", "stdio"] | None = None,
    permissions: Literal["deny", "allow"] = "deny",
) -> AbstractAsyncContextManager[Agent]:
    """Open the agent, with our tools going a way that it takes."""
    return open_agent(
        command=launch.command,
        env=launch.env,
        cwd=project,
        tools_via=way or WAYS.get(recipe.name, (None,))[0],
        permissions=permissions,
        startup_timeout=TIMEOUT,
    )


def calls(recipe: AgentRecipe, name: str, args: Mapping[str, object]) -> CallTool:
    """Return the call of a tool, with what the agent demands of every call."""
    return CallTool(name, {**args, **ADDED.get(recipe.name, {})})


@pytest.mark.scenario("our tool called first", "nested models")
@pytest.mark.parametrize(
    ("recipe", "way"),
    [
        pytest.param(recipe, way, id=f"{recipe.name}-{way}")
        for recipe in WITH_TOOLS
        for way in WAYS.get(recipe.name, ("http", "stdio"))
    ],
)
async def test_typed_result_after_a_tool_of_ours(
    recipe: AgentRecipe, launch: Launch, models: ModelServer, project: Path, way: Literal["http", "stdio"]
) -> None:
    words: list[str] = []

    def lookup(word: str) -> str:
        """Look up what a word means."""
        words.append(word)
        return "without input or output"

    models.play(
        Say("Looking it up."),
        calls(recipe, "lookup", {"word": "sans-io"}),
        calls(recipe, "return_result", GIVEN),
        Say("The report is in."),
    )
    with anyio.fail_after(TIMEOUT):
        async with opened(recipe, launch, project, way=way) as agent:
            stream = agent.think(Report).text("Review the core.").tool(lookup).stream(include="all")
            assert await stream.result == REPORT
            await stream.wait()
    assert words == ["sans-io"]
    assert "The report is in." in stream.view.text
    # Some fetch the tools in the turn, and not before.
    assert [event.via async for event in stream if isinstance(event, ToolsSeen)] in ([way], [])
    assert models.remaining == ()


@pytest.mark.scenario("typed result")
@with_tools
async def test_typed_result_alone(
    recipe: AgentRecipe, launch: Launch, models: ModelServer, project: Path
) -> None:
    with anyio.fail_after(TIMEOUT):
        async with opened(recipe, launch, project) as agent:
            models.play(calls(recipe, "return_result", {"result": 7}), Say("Done."))
            assert await agent.think(int).text("How many?").run() == 7


@pytest.mark.scenario("two turns in one session")
@with_tools
async def test_turns_in_a_session(
    recipe: AgentRecipe, launch: Launch, models: ModelServer, project: Path
) -> None:
    with anyio.fail_after(TIMEOUT):
        async with opened(recipe, launch, project) as agent, agent.session() as session:
            models.play(
                calls(recipe, "return_result", {"result": GIVEN}), Say("The report is in."), EndTurn()
            )
            assert await session.think(Report).text("Review the core.").run() == REPORT
            models.play(Say("It is a race."))
            assert "It is a race." in await session.think().text("In short?").run()
            asked = [request.body for request in models.requests if request.tools]
            assert b"The report is in." in asked[-1]
            models.play(calls(recipe, "return_result", {"result": [1, 2]}), Say("Counted."))
            assert await session.think(list[int]).text("How many?").run() == [1, 2]


@pytest.mark.scenario("invalid result repaired")
@with_tools
async def test_invalid_result_repaired(
    recipe: AgentRecipe, launch: Launch, models: ModelServer, project: Path
) -> None:
    with anyio.fail_after(TIMEOUT):
        async with opened(recipe, launch, project) as agent, agent.session() as session:
            models.play(
                calls(recipe, "return_result", {"result": "many"}),
                calls(recipe, "return_result", {"result": 7}),
                Say("Done."),
            )
            stream = session.think(int).text("How many?").stream(include="all")
            assert await stream.result == 7
            await stream.wait()
    attempts = [event.accepted async for event in stream if isinstance(event, ResultAttempt)]
    assert attempts == [False, True]


@pytest.mark.scenario("permission denied")
@every_agent
async def test_permission_denied_by_default(
    recipe: AgentRecipe, launch: Launch, models: ModelServer, project: Path
) -> None:
    with anyio.fail_after(TIMEOUT):
        async with opened(recipe, launch, project) as agent:
            models.play(shell(recipe, "touch marker"), Say("Done."))
            stream = agent.think().text("Run it.").stream(include="all")
            await stream.wait()
            assert stream.view.stop_reason in ("end_turn", "cancelled")
    assert not (project / "marker").exists()
    assert models.remaining != (shell(recipe, "touch marker"), Say("Done."))


@pytest.mark.scenario("permission allowed")
@every_agent
async def test_permission_allowed(
    recipe: AgentRecipe, launch: Launch, models: ModelServer, project: Path
) -> None:
    with anyio.fail_after(TIMEOUT):
        async with opened(recipe, launch, project, permissions="allow") as agent:
            models.play(shell(recipe, "touch marker"), Say("Done."))
            assert "Done." in await agent.think().text("Run it.").run()
    assert (project / "marker").exists()


@pytest.mark.scenario("cancel in mid text")
@every_agent
async def test_cancel_in_mid_text(
    recipe: AgentRecipe, launch: Launch, models: ModelServer, project: Path
) -> None:
    with anyio.fail_after(TIMEOUT):
        async with opened(recipe, launch, project) as agent, agent.session() as session:
            hold = Hold()
            models.play(Say("This takes long."), hold, Say("Never said."))
            stream = session.think().text("Go.").stream()
            # Not until there is text: some show it only when all of it is there.
            await anyio.to_thread.run_sync(hold.reached.wait, TIMEOUT)
            stream.cancel()
            with pytest.raises(ThoughtCancelled):
                await stream.result
            await stream.wait()
            assert "Never said." not in stream.view.text
            models.skip()
            models.play(Say("Here again."))
            assert "Here again." in await session.think().text("Are you there?").run()


@pytest.mark.scenario("cancel in mid tool")
@with_tools
async def test_cancel_in_a_tool_of_ours(
    recipe: AgentRecipe, launch: Launch, models: ModelServer, project: Path
) -> None:
    began, ended = anyio.Event(), anyio.Event()

    async def ponder() -> None:
        """Ponder over something that has no answer."""
        began.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()

    with anyio.fail_after(TIMEOUT):
        async with opened(recipe, launch, project) as agent, agent.session() as session:
            models.play(calls(recipe, "ponder", {}), Say("I have pondered."))
            stream = session.think(int).text("Ponder.").tool(ponder).stream()
            with anyio.fail_after(60):
                await began.wait()
            stream.cancel()
            await ended.wait()
            await stream.wait()
            assert isinstance(stream.result.exception(), ThoughtCancelled)
            models.skip()
            models.play(Say("Here again."))
            assert "Here again." in await session.think().text("Are you there?").run()


@pytest.mark.scenario("model error")
@every_agent
async def test_model_error(recipe: AgentRecipe, launch: Launch, models: ModelServer, project: Path) -> None:
    with anyio.fail_after(TIMEOUT):
        async with opened(recipe, launch, project) as agent, agent.session() as session:
            models.play(*[Fail(400, "The model is on strike.")] * 4)
            stream = session.think(int).text("How many?").stream(reminders=0)
            with pytest.raises((AgentReported, ResultMissing, ToolsNotSeen), match="The model is on strike"):
                await stream.result
            await stream.wait()
            models.skip()
            models.play(Say("Here again."))
            assert "Here again." in await session.think().text("Are you there?").run()


@pytest.mark.scenario("three sessions at once", "closed without a process left")
@every_agent
async def test_three_sessions_at_once(
    recipe: AgentRecipe, launch: Launch, models: ModelServer, project: Path
) -> None:
    with anyio.fail_after(TIMEOUT):
        async with (
            opened(recipe, launch, project) as agent,
            agent.session() as first,
            agent.session() as second,
            agent.session() as third,
        ):
            sessions = (first, second, third)
            assert len({session.id for session in sessions}) == len(sessions)
            # Whichever asks first takes the first step: that each gets one, and all at once, is the point.
            models.play(*[step for _ in sessions for step in (Say("Done."), EndTurn())])
            streams = [session.think().text("Go.").stream() for session in sessions]
            for stream in streams:
                assert "Done." in await stream.result


@pytest.mark.scenario("doctor")
@every_agent
async def test_whether_an_agent_works_is_not_known_without_a_prompt(
    recipe: AgentRecipe,
    launch: Launch,
    models: ModelServer,
    project: Path,
    tell: Callable[[str, str], None],
) -> None:
    diagnosis = await examined(launch, project, prompt=False)
    assert diagnosis.verdict == "unknown"
    assert not [request for request in models.requests if request.tools]
    tell("shows", diagnosis.verdict)


@pytest.mark.scenario("doctor with a prompt")
@every_agent
async def test_a_prompt_shows_whether_an_agent_works(
    recipe: AgentRecipe,
    launch: Launch,
    models: ModelServer,
    project: Path,
    tell: Callable[[str, str], None],
) -> None:
    models.play(calls(recipe, "return_result", {"result": 7}), Say("Done."))
    diagnosis = await examined(launch, project, prompt=True)
    assert diagnosis.verdict == ("does not" if recipe.name in WITHOUT_TOOLS else "works")
    tell("shows", diagnosis.verdict)


@pytest.mark.scenario(
    "typed result",
    "our tool called first",
    "nested models",
    "two turns in one session",
    "cancel in mid tool",
    "invalid result repaired",
)
@without_tools
async def test_tools_not_seen(
    recipe: AgentRecipe,
    launch: Launch,
    models: ModelServer,
    project: Path,
    tell: Callable[[str, str], None],
) -> None:
    tell("not offered", "tools")
    with anyio.fail_after(TIMEOUT):
        async with opened(recipe, launch, project) as agent:
            models.play(Say("There is no such tool."))
            with pytest.raises(ToolsNotSeen, match="There is no such tool"):
                await agent.think(int).text("How many?").run()
