"""An agent that does again what it did in a recording."""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from limits.virtual import Backend, Stopwatch, virtual_backend
from recording.test_replay import Review, allow, events_of, line, recorded, review, text
from scripted import EVERY_SESSION_CALL, Played, Turn, scripted

import thinkwell
from thinkwell import (
    AgentExited,
    AgentReported,
    ThoughtCancelled,
    ThoughtStream,
    open_agent,
    tool,
)
from thinkwell import events as ev
from thinkwell.testing import RecordedAgent, replay_agent, script
from thinkwell_acp import RpcError
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from thinkwell import Agent


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> Backend:
    return virtual_backend(request.param)


@asynccontextmanager
async def again(path: Path, speed: float = 0, **options: Any) -> AsyncGenerator[Agent]:
    """Open the agent of a recording, connected by memory."""
    async with (
        RecordedAgent(path, speed=speed).connect() as transport,
        open_agent("recorded", transport=transport, **options) as agent,
    ):
        yield agent


def told(events: list[ev.ThoughtEvent]) -> list[object]:
    """What the events say, without their times and whom they are of."""
    return [
        {field: getattr(event, field) for field in event.__struct_fields__ if field not in ("at", "agent")}
        for event in events
    ]


async def test_it_does_what_it_did(tmp_path: Path) -> None:
    original = await recorded(tmp_path / "r.ndjson", review)

    async with again(tmp_path / "r.ndjson", permissions="ask", on_question=allow) as agent:
        stream = agent.think(Review).text("Review it.").stream()
        assert await stream.result == await original.result
        await stream.wait()
        assert agent.info == s.Implementation(name="scripted", version=thinkwell.__version__)

    assert told(await events_of(stream)) == told(await events_of(original))
    assert stream.session_id == original.session_id


@pytest.mark.parametrize(("speed", "seconds"), [(0, 0), (1, 6), (2, 3)])
async def test_as_fast_as_is_wanted(tmp_path: Path, speed: float, seconds: float) -> None:
    await recorded(tmp_path / "r.ndjson", review)
    async with again(tmp_path / "r.ndjson", speed) as agent:  # which answers questions at once
        watch = Stopwatch()
        await agent.think(Review).text("Review it.").run()
        assert watch.seconds == pytest.approx(seconds, abs=0.2)


async def test_it_asks_again_and_goes_on_whatever_it_is_told(tmp_path: Path) -> None:
    await recorded(tmp_path / "r.ndjson", review)
    asked: list[str] = []

    async def deny(question: Any) -> str:
        asked.append(question.title)
        return "allow"

    async with again(tmp_path / "r.ndjson", permissions="ask", on_question=deny) as agent:
        assert (await agent.think(Review).text("x").run()).verdict == "good"
    assert asked == ["Run the tests"]


async def test_it_calls_tools_over_the_connection_whichever_way_they_were_called(tmp_path: Path) -> None:
    cities: list[str] = []

    @tool
    def weather(city: str) -> str:
        """Tell the weather."""
        cities.append(city)
        return "sunny"

    async def ask(turn: Turn) -> None:
        answer = await turn.call("weather", {"city": "Oslo"})
        turn.say(answer["content"][0]["text"])

    async with scripted(ask, record=tmp_path / "r.ndjson") as agent:
        assert await agent.think().text("x").tool(weather).run() == "sunny"
    async with again(tmp_path / "r.ndjson") as agent:
        assert await agent.think().text("x").tool(weather).run() == "sunny"
    assert cities == ["Oslo", "Oslo"]


async def test_a_call_of_a_tool_that_the_agent_took_back(tmp_path: Path) -> None:
    called: list[str] = []

    @tool
    async def slow() -> None:
        """Take long."""
        called.append("slow")
        await anyio.sleep_forever()

    async def take_back(turn: Turn) -> None:
        with anyio.move_on_after(1):
            await turn.call("slow", {})
        turn.say("Never mind.")

    async with scripted(take_back, record=tmp_path / "r.ndjson") as agent:
        assert await agent.think().text("x").tool(slow).run() == "Never mind."
    async with again(tmp_path / "r.ndjson") as agent:
        assert await agent.think().text("x").tool(slow).run() == "Never mind."
    assert called in (["slow", "slow"], ["slow"])  # played again, it may be taken back before it begins


async def test_servers_for_tools_are_left_to_the_real_agent(tmp_path: Path) -> None:
    await recorded(tmp_path / "r.ndjson", text, output=None)
    server = s.McpServerStdio(name="local", command="/no/such/server", args=(), env=())
    async with again(tmp_path / "r.ndjson", mcp_servers=[server]) as agent:
        assert await agent.think().text("x").run() == "Hello."


async def test_turns_of_sessions_in_any_order(tmp_path: Path) -> None:
    async def name(turn: Turn) -> None:
        turn.say(f"{turn.session_id}: {turn.text}")

    async with (
        scripted(name, record=tmp_path / "r.ndjson") as agent,
        agent.session() as one,
        agent.session() as two,
    ):
        for session, words in ((one, "a"), (two, "b"), (one, "c"), (two, "d")):
            await session.think().text(words).run()
    async with again(tmp_path / "r.ndjson") as agent, agent.session() as one, agent.session() as two:
        assert await two.think().text("x").run() == "session-2: b"
        assert await two.think().text("x").run() == "session-2: d"
        assert await one.think().text("x").run() == "session-1: a"
        assert await one.think().text("x").run() == "session-1: c"
        with pytest.raises(AgentReported, match=r"holds no more session/prompt in session 'session-1'"):
            await one.think().text("x").run()
        with pytest.raises(AgentReported, match="holds no more session/new"):
            await agent.think().text("x").run()


async def test_early_and_late_updates(tmp_path: Path) -> None:
    async def late(turn: Turn) -> None:
        turn.say("In time.")
        turn.agent.client.connection.call("late", {}, lambda _: turn.say("Too late."))

    async def run(agent: Agent) -> ThoughtStream[str]:
        stream = agent.think().text("x").stream(include="all")
        await stream.wait()
        await anyio.sleep(1)
        return stream

    handler = Played(
        [late],
        before_session=script.updates({"sessionUpdate": "current_mode_update", "currentModeId": "fast"}),
    )
    async with scripted(agent=handler, record=tmp_path / "r.ndjson") as agent:
        original = await run(agent)
    async with again(tmp_path / "r.ndjson") as agent:
        stream = await run(agent)
    assert told(await events_of(stream)) == told(await events_of(original))
    assert [event.type for event in original.late] == ["message"]
    assert told(list(stream.late)) == told(list(original.late))


async def test_a_session_that_was_loaded_is_loaded(tmp_path: Path) -> None:
    handler = Played([text], capabilities=EVERY_SESSION_CALL)
    handler.replay = [s.AgentMessageChunk(content=s.TextContent(text="Before."))]
    async with (
        scripted(agent=handler, record=tmp_path / "r.ndjson") as agent,
        agent.session(load="old") as session,
    ):
        history = session.history()
    async with again(tmp_path / "r.ndjson") as agent, agent.session(load="old") as session:
        assert session.history() == history
        assert [message.text for message in history] == ["Before."]
    async with again(tmp_path / "r.ndjson") as agent:
        with pytest.raises(AgentReported, match="holds no more session/load in session 'other'"):
            async with agent.session(load="other"):
                pass


async def test_errors_are_answered_again(tmp_path: Path) -> None:
    async def fail(turn: Turn) -> None:
        turn.say("Hm.")
        raise RpcError(-32603, "broken")

    original = await recorded(tmp_path / "r.ndjson", fail)
    async with again(tmp_path / "r.ndjson") as agent:
        stream = agent.think(Review).text("x").stream()
        with pytest.raises(AgentReported) as caught:
            await stream.result
    expected = original.result.exception()
    assert isinstance(expected, AgentReported)
    assert (caught.value.code, caught.value.message) == (expected.code, expected.message)


async def test_it_dies_again(tmp_path: Path) -> None:
    async def die(turn: Turn) -> None:
        turn.say("Hm.")
        await turn.client.connection.flush()
        await turn.client.connection._transport.aclose()

    await recorded(tmp_path / "r.ndjson", die)
    async with again(tmp_path / "r.ndjson") as agent:
        stream = agent.think(Review).text("x").stream()
        with pytest.raises(AgentExited):
            await stream.result
        assert stream.view.text == "Hm."


def unanswered(path: Path, *more: bytes) -> None:
    """Write a recording of a turn that did not end."""
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "Hm."}}
    path.write_bytes(
        line("recording", version=1, thinkwell="1", time="", agent="a")
        + line("sent", message={"id": 0, "method": "initialize", "params": {}})
        + line("received", message={"id": 0, "result": {"protocolVersion": 1}})
        + line("sent", message={"id": 1, "method": "session/new", "params": {}})
        + line("received", message={"id": 1, "result": {"sessionId": "s"}})
        + line("sent", message={"id": 2, "method": "session/prompt", "params": {"sessionId": "s"}})
        + line(
            "received", message={"method": "session/update", "params": {"sessionId": "s", "update": update}}
        )
        + b"".join(more)
        + line("end")
    )


async def test_a_turn_that_did_not_end_hangs_until_it_is_cancelled(tmp_path: Path) -> None:
    unanswered(tmp_path / "r.ndjson")
    async with again(tmp_path / "r.ndjson") as agent:
        stream = agent.think().text("x").stream()
        await anyio.sleep(3600)
        assert not stream.result.done()
        stream.cancel()
        await stream.wait()
        with pytest.raises(ThoughtCancelled):
            await stream.result
        assert stream.view.text == "Hm."


async def test_a_cut_recording_says_so(tmp_path: Path) -> None:
    path = tmp_path / "r.ndjson"
    await recorded(path, review)
    lines = path.read_bytes().splitlines(keepends=True)
    index = next(i for i, line in enumerate(lines) if b"agent_thought_chunk" in line)
    path.write_bytes(b"".join(lines[: index + 1]))
    async with again(path) as agent:
        stream = agent.think(Review).text("x").stream()
        with pytest.raises(AgentReported, match=f"The recording .* is cut: it ends with line {index + 1}"):
            await stream.result
        assert stream.view.thoughts == "Let me "


async def test_a_question_that_the_agent_took_back(tmp_path: Path) -> None:
    path = tmp_path / "r.ndjson"

    async def take_back(turn: Turn) -> None:
        call = s.ToolCallUpdate(tool_call_id="t", title="Run")
        options = (s.PermissionOption(option_id="y", name="Yes", kind="allow_once"),)
        request = s.RequestPermissionRequest(session_id=turn.session_id, tool_call=call, options=options)
        with anyio.move_on_after(1):
            await turn.client.request_permission(request)
        turn.say("Never mind.")

    async def wait(_question: object) -> str:
        await anyio.sleep(30)
        return "allow"

    async with scripted(take_back, record=path, permissions="ask", on_question=wait) as agent:
        original = agent.think().text("x").stream(include="all")
        await original.wait()
    async with again(path, 1, permissions="ask", on_question=wait) as agent:
        stream = agent.think().text("x").stream(include="all")
        with anyio.fail_after(30):
            await stream.wait()
    assert {"question", "answer"} <= {event.type for event in await events_of(stream)}
    assert stream.view.text == "Never mind."


@pytest.mark.parametrize("speed", [-1, float("inf"), float("nan")])
def test_speeds(tmp_path: Path, speed: float) -> None:
    with pytest.raises(ValueError, match=r"replay_agent\(speed=.*\): give a number from 0 on"):
        replay_agent(tmp_path / "r.ndjson", speed=speed)


class TestProcess:
    """The same, as a program; time is real."""

    @pytest.fixture(params=["asyncio", "trio"])
    def anyio_backend(self, request: pytest.FixtureRequest) -> str:
        backend: str = request.param
        return backend

    async def test_a_program(self, tmp_path: Path) -> None:
        original = await recorded(tmp_path / "r.ndjson", text, output=None)
        command = replay_agent(tmp_path / "r.ndjson")
        assert command[0] == sys.executable
        async with open_agent(command=command) as agent:
            stream = agent.think().text("x").stream()
            assert await stream.result == "Hello."
        assert told(await events_of(stream)) == told(await events_of(original))

    async def test_it_ends_as_it_ended(self, tmp_path: Path) -> None:
        unanswered(tmp_path / "r.ndjson", line("gone", exit_code=7))
        async with open_agent(command=replay_agent(tmp_path / "r.ndjson")) as agent:
            stream = agent.think().text("x").stream()
            with pytest.raises(AgentExited) as caught:
                await stream.result
            assert caught.value.exit_code == 7
            assert stream.view.text == "Hm."
