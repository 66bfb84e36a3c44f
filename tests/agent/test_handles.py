"""The handles: what users may call, and how they look in a log: short, and without what was said."""

from __future__ import annotations

import re

import anyio
import pytest
from pydantic import BaseModel

from thinkwell import (
    Agent,
    AgentStatistics,
    ResultMissing,
    Session,
    ThinkBuilder,
    ThoughtResult,
    ThoughtStream,
    ToolContext,
)
from thinkwell.testing import ScriptedAgent, ScriptedTurn, script


class Review(BaseModel):
    text: str


def plain(x: int) -> int:
    return x


PUBLIC: dict[type, str] = {
    Agent: """
        answer auth_methods auth_status authenticate capabilities close delete_session info kill
        launch_phases list_sessions logout map name providers questions session statistics think
        use_provider
    """,
    Session: """
        answer close commands cwd events fork history id mode model models modes options set_mode set_model
        set_option think title usage
    """,
    ThoughtResult: "done exception",
    ThoughtStream: "answer cancel drafts elapsed events id kill late recording session_id steer view wait",
    ThinkBuilder: """
        code cwd explain fallback image line listen meta quote resource run skill stream system text tool
    """,
    ToolContext: "ask cancelled progress raise_if_cancelled",
}


@pytest.mark.parametrize("type_", PUBLIC)
def test_the_handles_show_what_users_call_and_no_more(type_: type) -> None:
    assert [name for name in dir(type_) if not name.startswith("_")] == PUBLIC[type_].split()


async def test_handles_say_what_they_are_and_not_what_was_said() -> None:
    go = anyio.Event()

    async def hold(_: ScriptedTurn) -> None:
        await go.wait()

    played = ScriptedAgent(script.says("secret words").does(hold).returns({"text": "secret result"}))
    async with played.open() as agent:
        assert repr(agent) == "<Agent scripted>"
        builder = agent.think(Review).text("secret prompt").quote("x").tool(plain)
        assert repr(builder) == "<ThinkBuilder for Review, 1 part, 1 tool>"
        assert repr(agent.think()) == "<ThinkBuilder for str, 0 parts, 0 tools>"
        stream = builder.stream()
        with anyio.fail_after(30):
            async for _ in stream:
                break
        shown = r"<ThoughtStream run-\d+ responding, [1-9]\d* events buffered, 0 questions open>"
        assert re.fullmatch(shown, repr(stream))
        told = f"<ThoughtResult {stream.id} pending; for a task: asyncio.ensure_future(stream.result)>"
        assert repr(stream.result) == told
        go.set()
        await stream.result
        await stream.wait()
        assert repr(stream.result) == f"<ThoughtResult {stream.id} done: Review>"
        assert "completed" in repr(stream)
        assert "secret" not in repr([stream, stream.result, builder])
        async with agent.session() as session:
            assert repr(session) == "<Session session-2 of scripted>"


async def test_statistics_tell_what_the_agent_is_doing() -> None:
    played = ScriptedAgent(script.says("a").asks("May I?"), repeats=True)
    async with played.open(permissions="ask") as agent:
        assert agent.statistics() == AgentStatistics(runs=(), buffered_events=0, open_questions=0)
        streams = [agent.think().text("Go").stream() for _ in range(2)]
        with anyio.fail_after(30):
            for stream in streams:
                async for _ in stream.events():
                    break
            while len(agent.questions) < 2:
                await anyio.lowlevel.checkpoint()
        told = agent.statistics()
        assert [(run.id, run.session_id, run.phase) for run in told.runs] == [
            (stream.id, stream.session_id, stream.view.phase) for stream in streams
        ]
        assert told.open_questions == 2
        assert [run.open_questions for run in told.runs] == [1, 1]
        assert told.buffered_events == sum(run.buffered_events for run in told.runs) >= 2
        assert "1 questions open" in repr(streams[0])
        for stream in streams:
            stream.answer(stream.view.questions[0].id, "allow")
            await stream.result
            await stream.wait()
        assert agent.statistics().runs == ()


async def test_a_failure_is_named_by_its_type_only() -> None:
    async with ScriptedAgent(script.says("secret").stops("max_tokens")).open() as agent:
        stream = agent.think().text("Go").stream()
        await stream.wait()
        assert repr(stream.result) == f"<ThoughtResult {stream.id} failed: ResultMissing>"
        assert isinstance(stream.result.exception(), ResultMissing)
