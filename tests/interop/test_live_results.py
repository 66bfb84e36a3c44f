"""Results and what comes instead of them, with agents that this project did not write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import anyio
import pytest
from pydantic import BaseModel

from interop.live import CUT_OFF, PLAIN, TIMEOUT
from interop.model_server import CallTool, Fail, ModelServer, Say
from thinkwell import AgentReported, ResultMissing, ToolsNotSeen, open_agent
from thinkwell.events import ResultAttempt, ToolsSeen

if TYPE_CHECKING:
    from pathlib import Path

    from interop.agents import AgentRecipe, Launch

pytestmark = pytest.mark.interop

plain = pytest.mark.parametrize("recipe", PLAIN, ids=lambda recipe: recipe.name)
cut_off = pytest.mark.parametrize("recipe", CUT_OFF, ids=lambda recipe: recipe.name)


class Finding(BaseModel):
    """Something that was found, and what lies below it."""

    title: str
    severity: Literal["low", "high"]
    parts: list[Finding] = []


class Pioneer(BaseModel):
    """A small result."""

    name: str
    born: int


class Author(BaseModel):
    """Who wrote the code."""

    name: str
    mail: str | None = None


class Report(BaseModel):
    """What the agent is asked for."""

    findings: list[Finding]
    author: Author | None = None
    reviewer: Author | None = None


UNDERSTOOD = Report(
    findings=[
        Finding(title="Long module", severity="low"),
        Finding(title="Race", severity="high", parts=[Finding(title="No lock", severity="high")]),
    ],
    author=Author(name="Ada", mail=None),
)


GIVEN = UNDERSTOOD.model_dump(exclude_unset=True)


@plain
@pytest.mark.scenario("nested models")
async def test_models_within_models_come_back_whole(
    launch: Launch, models: ModelServer, project: Path
) -> None:
    with anyio.fail_after(TIMEOUT):
        async with open_agent(command=launch.command, env=launch.env, cwd=project) as agent:
            models.play(CallTool("return_result", GIVEN), Say("Done."))
            stream = agent.think(Report).text("Review the core.").stream()
            assert await stream.result == UNDERSTOOD
            await stream.wait()
            offered = b"".join(request.body for request in models.requests if request.tools)
            assert all(name in offered for name in (b"Long", b"severity", b"reviewer"))
            async with (
                agent.session() as session
            ):  # whose tool takes anything, so that the prompt has the schema
                models.play(CallTool("return_result", {"result": [GIVEN]}), Say("Done."))
                assert await session.think(list[Report]).text("Review all.").run() == [UNDERSTOOD]


@plain
@pytest.mark.scenario("invalid result repaired")
async def test_an_agent_is_told_what_is_wrong_with_its_result_and_mends_it(
    recipe: AgentRecipe, launch: Launch, models: ModelServer, project: Path
) -> None:
    wrong, right = ({"name": "Ada", "born": born} for born in ("long ago", 1815))
    with anyio.fail_after(TIMEOUT):
        async with (
            open_agent(command=launch.command, env=launch.env, cwd=project) as agent,
            agent.session() as session,
        ):
            # In a session the tool takes anything; else it has a schema, which some agents check themselves.
            # That comes last: opencode offers the tools of a session for a moment after it was closed.
            for think, first, second, ours in (
                (session.think(Pioneer), {"result": wrong}, {"result": right}, True),
                (agent.think(Pioneer), wrong, right, not recipe.checks_arguments),
            ):
                models.play(CallTool("return_result", first), CallTool("return_result", second), Say("Done."))
                stream = think.text("Who was it?").stream(include="all")
                assert await stream.result == Pioneer(name="Ada", born=1815)
                await stream.wait()
                attempts = [event async for event in stream if isinstance(event, ResultAttempt)]
                assert [attempt.accepted for attempt in attempts] == [False] * ours + [True]
                told = [request.body for request in models.requests if request.tools][-2]
                assert (b"The result is invalid" in told) == ours
                assert b"integer" in told  # whoever has looked says what is wanted
    assert models.remaining == ()


@plain
@pytest.mark.scenario("model error")
async def test_an_error_of_the_model_is_told_and_the_session_goes_on(
    launch: Launch, models: ModelServer, project: Path
) -> None:
    with anyio.fail_after(TIMEOUT):
        async with (
            open_agent(command=launch.command, env=launch.env, cwd=project) as agent,
            agent.session() as session,
        ):
            models.play(*[Fail(400, "The model is on strike.")] * 3)
            # Some answer the prompt with an error; others end the turn, with the error as their text.
            with pytest.raises((AgentReported, ResultMissing), match="The model is on strike"):
                await session.think(int).text("How many?").run()
            models.skip()
            models.play(CallTool("return_result", {"result": 7}), Say("Done."))
            assert await session.think(int).text("How many now?").run() == 7


@cut_off
@pytest.mark.scenario("our tools not seen")
async def test_an_agent_that_does_not_reach_our_tools_is_told_apart(
    recipe: AgentRecipe, launch: Launch, models: ModelServer, project: Path
) -> None:
    models.play(Say("There is no such tool."))
    with anyio.fail_after(TIMEOUT):
        async with open_agent(
            command=launch.command, env=launch.env, cwd=project, tools_via=recipe.cut_off_from
        ) as agent:
            with pytest.raises(ToolsNotSeen, match="There is no such tool") as caught:
                await agent.think(int).text("How many?").run()
    assert caught.value.via == ("http", "stdio") if recipe.cut_off_from is None else (recipe.cut_off_from,)
    assert models.remaining == ()


@pytest.mark.parametrize(
    "recipe", [recipe for recipe in CUT_OFF if recipe.cut_off_from], ids=lambda recipe: recipe.name
)
async def test_where_one_way_to_our_tools_is_cut_off_another_is_gone(
    launch: Launch, models: ModelServer, project: Path
) -> None:
    with anyio.fail_after(TIMEOUT):
        async with open_agent(command=launch.command, env=launch.env, cwd=project) as agent:
            for number in range(2):
                models.play(CallTool("return_result", {"result": number}), Say("Done."))
                stream = agent.think(int).text("How many?").stream(include={"tools_seen"}, reminders=0)
                assert await stream.result == number
                await stream.wait()
                assert [event.via async for event in stream if isinstance(event, ToolsSeen)] == ["stdio"]
