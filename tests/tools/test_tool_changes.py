"""Result types and tools that change from turn to turn in one session."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from mcp_agent import mcp_agent
from msgspec.structs import replace
from pydantic import BaseModel
from scripted import Played, Proceed, Turn, scripted

from thinkwell import CapabilityMissing, tool
from thinkwell_acp import schema as s

# The client leaves its HTTP library's generators to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:Async generator 'http:ResourceWarning")
REOPENS = s.SessionCapabilities(close=s.SessionCloseCapabilities(), resume=s.SessionResumeCapabilities())


class Answer(BaseModel):
    value: int


class Other(BaseModel):
    text: str


def one(x: int) -> int:
    return x


def two(x: int) -> int:
    return x * 2


def capabilities(sessions: s.SessionCapabilities) -> s.AgentCapabilities:
    return s.AgentCapabilities(mcp_capabilities=s.McpCapabilities(acp=True), session_capabilities=sessions)


async def returns_by_the_prompt(turn: Turn) -> None:
    await turn.returns(
        result={"value": 1} if '"value"' in turn.text else {"text": "t"} if '"text"' in turn.text else 3
    )


async def test_result_types_may_change_under_one_stable_tool() -> None:
    handler = Played([returns_by_the_prompt])
    async with scripted(agent=handler) as agent, agent.session() as session:
        assert await session.think(Answer).text("Go").run() == Answer(value=1)
        assert await session.think(Other).text("Go").run() == Other(text="t")
        assert await session.think(int).text("Go").run() == 3
    (listed,) = handler.sent.tools
    assert listed.name == "return_result"
    schema = listed.schema
    assert list(schema["properties"]) == ["result"]
    assert "type" not in schema["properties"]["result"]
    assert schema["required"] == ["result"]
    assert len({prompt.session_id for prompt in handler.sent.prompts}) == 1


async def test_a_session_with_one_type_says_it_in_the_tool_and_not_in_the_prompt() -> None:
    async def script(turn: Turn) -> None:
        assert "JSON Schema" not in turn.text
        await turn.returns(value=1)
        turn.say("text")

    handler = Played([script])
    async with scripted(agent=handler) as agent, agent.session(output=Answer) as session:
        assert await session.think(Answer).text("Go").run() == Answer(value=1)
        assert await session.think().text("Go").run() == "text"
        with pytest.raises(TypeError, match="opened with output=Answer"):
            session.think(Other)
    (listed,) = handler.sent.tools
    assert listed.schema == Answer.model_json_schema()


async def test_text_is_no_type_for_a_session() -> None:
    async with scripted() as agent:
        with pytest.raises(TypeError, match="leave it out"):
            async with agent.session(output=str):
                pass


async def test_turns_run_in_the_order_in_which_they_were_asked() -> None:
    running = 0

    async def script(turn: Turn) -> None:
        nonlocal running
        running += 1
        assert running == 1
        await anyio.wait_all_tasks_blocked()
        turn.say(turn.text)
        running -= 1

    async with scripted(script) as agent, agent.session() as session:
        streams = [session.think().text(f"{n}").stream() for n in range(5)]
        assert [await stream.result for stream in streams] == [str(n) for n in range(5)]


# Tools that change


@pytest.mark.fast_time(0.1)  # slowly: the agent has 0.3 s to list the tools again
@pytest.mark.parametrize("way", ["acp", "http", "stdio"])
async def test_an_agent_that_fetches_the_changed_list_sees_it_before_the_prompt(way: str) -> None:
    lists: list[list[str]] = []

    async def script(turn: Turn) -> None:
        lists.append([one["name"] for one in await turn.list_tools()])
        name = lists[-1][0]
        answer = await turn.call(name, {"x": 4})
        await turn.returns(result={"value": answer["content"][0]["text"]})

    with anyio.fail_after(20):
        async with mcp_agent(way, script) as (agent, _), agent.session() as session:
            assert await session.think(Answer).text("Go").tool(one).run() == Answer(value=4)
            assert await session.think(Answer).text("Go").tool(two).run() == Answer(value=8)
            assert await session.think(Answer).text("Go").tool(two).run() == Answer(value=8)
            assert await session.think(Answer).text("Go").tool(one).tool(two).run() == Answer(value=4)
    both = ["one", "two", "return_result"]
    assert lists == [["one", "return_result"], ["two", "return_result"], ["two", "return_result"], both]


@pytest.mark.virtual_time
async def test_the_prompt_waits_a_moment_after_a_changed_list() -> None:
    times: list[float] = []

    async def script(turn: Turn) -> None:
        times.append(anyio.current_time())
        turn.say("Done")

    async with scripted(agent=Played([script], relists=True)) as agent, agent.session() as session:
        for function, pause in ((one, 0.1), (one, 0), (two, 0.1)):
            began = anyio.current_time()
            await session.think().text("Go").tool(function).run()
            assert times[-1] - began == pytest.approx(pause)


@pytest.mark.virtual_time
async def test_without_a_new_list_the_session_is_closed_and_resumed() -> None:
    async def script(turn: Turn) -> None:
        answer = await turn.call("two", {"x": 4})
        await turn.returns(result=answer["content"][0]["text"])

    handler = Played([returns_by_the_prompt, script], capabilities=capabilities(REOPENS))
    async with scripted(agent=handler) as agent, agent.session() as session:
        assert await session.think(Answer).text("Go").run() == Answer(value=1)
        assert list(handler.sent.closed) == []
        assert await session.think(int).text("Go").tool(two).run() == 8
        assert list(handler.sent.closed) == [session.id]
        assert len({prompt.session_id for prompt in handler.sent.prompts}) == 1
        assert [opened.method for opened in handler.sent.sessions] == ["session/new", "session/resume"]


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    "sessions",
    [
        s.SessionCapabilities(),
        s.SessionCapabilities(close=s.SessionCloseCapabilities()),
        s.SessionCapabilities(resume=s.SessionResumeCapabilities()),
    ],
)
async def test_where_that_is_not_advertised_nothing_is_sent(sessions: s.SessionCapabilities) -> None:
    handler = Played([returns_by_the_prompt], capabilities=capabilities(sessions))
    async with scripted(agent=handler) as agent, agent.session() as session:
        assert await session.think(Answer).text("Go").run() == Answer(value=1)
        with pytest.raises(CapabilityMissing, match="did not fetch the changed list") as caught:
            await session.think(int).text("Go").tool(two).run()
        assert caught.value.capability == "sessionCapabilities.close and sessionCapabilities.resume"
        assert len(handler.sent.prompts) == 1
        assert await session.think(Answer).text("Go").run() == Answer(
            value=1
        )  # the session is as good as before


@pytest.mark.virtual_time
async def test_an_agent_that_does_not_list_when_it_resumes() -> None:
    async def forget(request: s.ResumeSessionRequest, proceed: Proceed) -> object:
        return await proceed(replace(request, mcp_servers=()))

    handler = Played(
        [returns_by_the_prompt], capabilities=capabilities(REOPENS), answers={"session/resume": forget}
    )
    async with scripted(agent=handler) as agent, agent.session() as session:
        assert await session.think(int).text("Go").run() == 3
        with pytest.raises(CapabilityMissing, match="was reopened"):
            await session.think(int).text("Go").tool(two).run()
    assert len(handler.sent.prompts) == 1


@pytest.mark.virtual_time
async def test_a_tool_that_is_gone_says_what_to_use() -> None:
    answers: list[Any] = []

    async def script(turn: Turn) -> None:
        try:
            answers.append(await turn.call("one", {"x": 1}))
        except Exception as exc:
            answers.append(exc)
        turn.say("Done")

    async with scripted(agent=Played([script], relists=True)) as agent, agent.session() as session:
        await session.think().text("Go").tool(one).run()
        await session.think().text("Go").tool(two).run()
        await session.think().text("Go").run()
    first, second, third = answers
    assert first["isError"] is False
    assert "Unknown tool: one. Tools offered now: two, return_result." in str(second)
    assert "Tools offered now: return_result." in str(third)


@pytest.mark.virtual_time
async def test_fewer_tools_are_no_reason_to_refuse() -> None:
    async def script(turn: Turn) -> None:
        turn.say("Done")

    handler = Played([script], capabilities=capabilities(REOPENS))
    async with scripted(agent=handler) as agent, agent.session() as session:
        await session.think().text("Go").tool(one).run()
        opened = handler.sent.sessions
        assert await session.think().text("Go").run() == "Done"
        assert await session.think().text("Go").tool(one).run() == "Done"
        assert handler.sent.sessions == opened


@pytest.mark.virtual_time
async def test_a_known_name_with_another_schema_is_refused_at_once() -> None:
    def other(text: str) -> str:
        return text

    async def script(turn: Turn) -> None:
        turn.say("Done")

    handler = Played([script], relists=True)
    async with scripted(agent=handler) as agent, agent.session() as session:
        await session.think().text("Go").tool(one).run()
        builder = session.think().text("Go").tool(tool(other, name="one"))
        with pytest.raises(ValueError, match=r"offered a tool 'one' with other parameters before.*name="):
            builder.stream()
        assert len(handler.sent.prompts) == 1
        await session.think().text("Go").tool(one, description="Other words are fine.").run()
    assert len(handler.sent.prompts) == 2


async def test_a_call_between_the_turns_is_told_so() -> None:
    turns: list[Turn] = []

    async def script(turn: Turn) -> None:
        turns.append(turn)

    async with scripted(script) as agent, agent.session() as session:
        await session.think(Answer).text("Go").stream().wait()
        answer = await turns[0].returns(result=2)
    assert answer["isError"] is True
    assert "No task is running" in answer["content"][0]["text"]
