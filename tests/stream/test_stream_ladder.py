"""An agent that keeps us waiting: what is tried, in which order, and for how long. Time is virtual."""

from __future__ import annotations

import anyio
import pytest
from pydantic import BaseModel
from stream.wire_agent import Json, answer, end_turn, refuse, say, wire_agent
from trio.testing import MockClock

from thinkwell import ThoughtCancelled, ToolsNotSeen
from thinkwell.testing import ScriptedAgent, script

CANCEL_TIMEOUT, LEAVE_TIMEOUT, CLOSE_TIMEOUT = 10, 2, 5
"""Seconds: what docs/topics/lifetimes.md promises."""


class Answer(BaseModel):
    answer: int


CLOSES: Json = {"sessionCapabilities": {"close": {}}}


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, object]]:
    return "trio", {"clock": MockClock(autojump_threshold=0)}


async def test_turn_is_not_ended__the_agent_is(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "thinkwell")
    async with wire_agent() as (agent, wire):
        stream = agent.think().text("Hi").stream()
        await wire.begin()
        started = anyio.current_time()
        stream.cancel()
        await stream.wait()
        assert anyio.current_time() - started == pytest.approx(CANCEL_TIMEOUT)
        await wire.expect("session/cancel")
        assert wire.unread == []
        with pytest.raises(ThoughtCancelled):
            await stream.result
        assert stream.view.phase == "cancelled"
    assert "has not ended the cancelled turn of session s within 10 s" in caplog.text
    assert "so its process is ended" in caplog.text


async def test_the_session_is_not_closed__that_is_waited_for_a_little(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "thinkwell")
    async with wire_agent(capabilities=CLOSES) as (agent, wire):
        stream = agent.think().text("Hi").stream()
        await wire.write(end_turn(await wire.begin()))
        started = anyio.current_time()
        await stream.wait()
        assert anyio.current_time() - started == pytest.approx(LEAVE_TIMEOUT)
    assert "has not closed session s within 2 s" in caplog.text


async def test_turn_is_not_ended__another_run_keeps_the_agent(caplog: pytest.LogCaptureFixture) -> None:
    async with wire_agent() as (agent, wire):
        stubborn = agent.think().text("1").stream()
        first = await wire.begin("s1")
        other = agent.think().text("2").stream()
        second = await wire.begin("s2")
        stubborn.cancel()
        await stubborn.wait()
        assert "because 1 other runs need the agent" in caplog.text
        # Its session lives on in the agent. What it says belongs to nobody's turn.
        await wire.write(say("too late", "s1"), end_turn(first), say("Hello", "s2"), end_turn(second))
        assert await other.result == "Hello"
        assert [event.type for event in stubborn.late] == ["message"]
        assert [event async for event in stubborn] == []
        assert stubborn.view.stop_reason == "end_turn"


async def test_turn_is_not_ended__the_session_is_closed() -> None:
    async with wire_agent(capabilities=CLOSES) as (agent, wire):
        stream = agent.think().text("Hi").stream()
        prompt = await wire.begin()
        stream.cancel()
        await wire.expect("session/cancel")
        closing = await wire.expect("session/close", within=60)
        await wire.write(answer(closing, {}), end_turn(prompt, "cancelled"))
        await wire.expect("session/close")  # of the run, which had the session to itself
        await wire.hang_up()
        await stream.wait()
        assert stream.view.stop_reason == "cancelled"


@pytest.mark.parametrize("how", ["refused", "silence", "turn goes on"])
async def test_turn_is_not_ended_by_closing_the_session__the_agent_is(
    how: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with wire_agent(capabilities=CLOSES) as (agent, wire):
        stream = agent.think().text("Hi").stream()
        await wire.begin()
        started = anyio.current_time()
        stream.cancel()
        await wire.expect("session/cancel")
        closing = await wire.expect("session/close", within=60)
        if how == "refused":
            await wire.write(refuse(closing, "not now"))
        elif how == "turn goes on":
            await wire.write(answer(closing, {}))
        await stream.wait()
        waited = anyio.current_time() - started
        assert waited == pytest.approx(CANCEL_TIMEOUT + (0 if how == "refused" else CLOSE_TIMEOUT))
        with pytest.raises(ThoughtCancelled):
            await stream.result
    assert "so its process is ended" in caplog.text


async def test_our_tools_are_never_looked_at__the_prompt_is_sent_all_the_same() -> None:
    played = ScriptedAgent(script.says("which tool?"), lists_tools=False, repeats=True)
    async with played.open() as opened:
        stream = opened.think(Answer).text("Hi").stream()
        stream_of_text = opened.think().text("Hi").stream()
        with pytest.raises(ToolsNotSeen) as caught:
            await stream.result
        assert (caught.value.via, caught.value.text) == (("acp",), "which tool?")
        assert await stream_of_text.result == "which tool?"


async def test_leaving_the_agent__its_turns_get_less_time_since_its_process_ends_anyway() -> None:
    started = 0.0
    async with wire_agent() as (agent, wire):
        stream = agent.think().text("Hi").stream()
        await wire.begin()
        started = anyio.current_time()
    assert anyio.current_time() - started < LEAVE_TIMEOUT + 2
    with pytest.raises(ThoughtCancelled):
        await stream.result
