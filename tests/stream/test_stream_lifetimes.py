"""The table of lifetimes: what a user does, and what happens. One test or more for each row."""

from __future__ import annotations

import gc
import logging
import sys
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from daemons import is_alive, wait_gone
from pydantic import BaseModel
from scripted import Played, Turn, scripted
from stream.wire_agent import end_turn, permission, refuse, say, update, wire_agent

from thinkwell import (
    AgentClosed,
    AgentExited,
    AgentReported,
    Message,
    ThoughtCancelled,
    ThoughtEvent,
    ThoughtStream,
    ToolDone,
    open_agent,
)
from thinkwell_acp import schema as s

RAW_AGENT = Path(__file__).parent / "programs" / "raw_agent.py"


class Answer(BaseModel):
    answer: int


def message(text: str) -> s.SessionUpdate:
    return s.AgentMessageChunk(content=s.TextContent(text=text))


def texts(events: list[ThoughtEvent]) -> list[str]:
    return [event.text for event in events if isinstance(event, Message)]


async def read(stream: ThoughtStream[Any]) -> list[str]:
    with anyio.fail_after(30):
        return texts([event async for event in stream])


async def greets(turn: Turn) -> None:
    turn.say("Hello", "1")
    turn.say("there", "2")


async def waits(turn: Turn) -> None:
    turn.say("Hello")
    await anyio.sleep_forever()


# You do: stream


async def test_stream__returns_at_once_and_the_run_has_started() -> None:
    async with wire_agent() as (agent, wire):
        stream = agent.think().text("Hi").stream()
        assert not stream.result.done()
        prompt = await wire.begin()
        assert prompt["params"]["prompt"] == [{"type": "text", "text": "Hi"}]
        assert stream.session_id == "s"
        await wire.write(say("Hello"), end_turn(prompt))
        assert await stream.result == "Hello"


# iterate, never await


async def test_iterate_never_await__the_result_settles_in_the_background() -> None:
    async with scripted(greets) as agent:
        stream = agent.think().text("Hi").stream()
        assert await read(stream) == ["Hello", "there"]
        assert stream.result.done()
        assert stream.result.exception() is None


async def _fail_unseen() -> str:
    async with wire_agent() as (agent, wire):
        stream = agent.think().text("Hi").stream()
        prompt = await wire.begin()
        await wire.write(refuse(prompt, "out of ink"))
        assert await read(stream) == []
        return stream.id


async def test_iterate_never_await__an_unseen_error_is_logged_once_at_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.DEBUG, "thinkwell"):
        run = await _fail_unseen()
        gc.collect()
    (record,) = [record for record in caplog.records if "never awaited" in record.getMessage()]
    assert (record.name, record.levelname) == ("thinkwell", "WARNING")
    assert run in record.getMessage()
    assert "out of ink" in record.getMessage()


async def _fail_seen(how: str) -> None:
    async with wire_agent() as (agent, wire):
        stream = agent.think().text("Hi").stream()
        prompt = await wire.begin()
        if how == "given up":
            with anyio.move_on_after(0.01):
                await stream.result
            assert stream.result.exception() is None
        await wire.write(refuse(prompt, "out of ink"))
        await stream.wait()
        if how == "awaited":
            with pytest.raises(AgentReported):
                await stream.result
        elif how == "asked for":
            assert isinstance(stream.result.exception(), AgentReported)
        elif how == "viewed":
            assert isinstance(stream.view.error, AgentReported)


@pytest.mark.parametrize(
    ("how", "warnings"), [("awaited", 0), ("asked for", 0), ("viewed", 0), ("given up", 1)]
)
async def test_iterate_never_await__only_an_error_that_was_shown_is_no_news(
    how: str, warnings: int, caplog: pytest.LogCaptureFixture
) -> None:
    await _fail_seen(how)
    gc.collect()
    assert len([record for record in caplog.records if "never awaited" in record.getMessage()]) == warnings


async def test_iterate_never_await__a_cancelled_run_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    async with scripted(waits) as agent:
        stream = agent.think().text("Hi").stream()
        async with stream:
            pass
        assert repr(stream.result) == f"<ThoughtResult {stream.id} failed: ThoughtCancelled>"
        del stream
    gc.collect()
    assert not caplog.records


# await the result, never iterate


async def test_await_the_result_never_iterate__works_and_events_are_kept() -> None:
    async with scripted(greets) as agent:
        stream = agent.think().text("Hi").stream()
        assert await stream.result == "there"
        assert await stream.result == "there"
        assert await read(stream) == ["Hello", "there"]
        assert await agent.think().text("Hi").run() == "there"


# both at once, or from several tasks


async def test_both_at_once_or_from_several_tasks__each_reader_sees_every_event_from_the_first() -> None:
    async def counts(turn: Turn) -> None:
        for number in range(50):
            turn.say(str(number))
            if not number % 10:
                await anyio.lowlevel.checkpoint()

    seen: list[list[str]] = []
    results: list[str] = []

    async def iterate(stream: ThoughtStream[str]) -> None:
        seen.append(await read(stream))

    async def wait(stream: ThoughtStream[str]) -> None:
        results.append(await stream.result)

    async with scripted(counts) as agent:
        stream = agent.think().text("Count").stream()
        async with anyio.create_task_group() as tasks:
            for _ in range(2):
                tasks.start_soon(iterate, stream)
                tasks.start_soon(wait, stream)
        await iterate(stream)
    numbers = [str(number) for number in range(50)]
    assert seen == [numbers] * 3
    assert results == ["".join(numbers)] * 2


# break out of the loop


async def test_break_out_of_the_loop__nothing_is_cancelled_and_a_later_loop_starts_from_the_first() -> None:
    async with wire_agent() as (agent, wire):
        stream = agent.think().text("Hi").stream()
        prompt = await wire.begin()
        await wire.write(say("one"), say("two"))
        async for _ in stream:
            break
        await wire.write(say("three"), end_turn(prompt))
        assert await read(stream) == ["one", "two", "three"]
        assert await stream.result == "onetwothree"
        assert wire.unread == []


# iterate after the end


async def test_iterate_after_the_end__the_whole_run_again_and_then_the_end() -> None:
    async with scripted(greets) as agent:
        stream = agent.think().text("Hi").stream()
        await stream.wait()
    for _ in range(2):
        assert await read(stream) == ["Hello", "there"]


# the turn ends


async def test_the_turn_ends__iterators_end_after_the_last_event_read_before_the_response() -> None:
    async with wire_agent() as (agent, wire):
        stream = agent.think().text("Hi").stream()
        prompt = await wire.begin()
        await wire.write(*[say(str(number)) for number in range(1000)], end_turn(prompt), say("late"))
        assert await read(stream) == [str(number) for number in range(1000)]
        assert await stream.result == "".join(map(str, range(1000)))
        await stream.wait()
        assert texts(list(stream.late)) == ["late"]


def now() -> str:
    """Tell the time."""
    return "noon"


async def test_the_turn_ends__a_late_update_is_late_and_never_in_the_next_turn() -> None:
    turns: list[Turn] = []

    async def greets_again(turn: Turn) -> None:
        turns.append(turn)
        await greets(turn)

    handler = Played([greets_again])
    async with scripted(agent=handler) as agent, agent.session() as session:
        between = session.events()
        first = session.think().text("1").stream()
        await first.wait()
        handler.client.update(session.id, message("late one"))
        assert texts([await anext(between)]) == ["late one"]
        second = session.think().text("2").tool(now).stream()
        with anyio.fail_after(30):
            await anyio.wait_all_tasks_blocked()
        assert handler.sent.messages[-1].params["method"] == "notifications/tools/list_changed"
        assert second.late == ()
        handler.client.update(session.id, message("later"))  # the second run has the session, but no turn yet
        await turns[0].list_tools()
        assert await read(second) == ["Hello", "there"]
        await second.wait()
        handler.client.update(session.id, message("late two"))
        assert texts([await anext(between), await anext(between)]) == ["later", "late two"]
        assert texts(list(first.late)) == ["late one", "later"]
        assert texts(list(second.late)) == ["late two"]
        assert await read(first) == ["Hello", "there"]


# return_result arrives and is valid


async def test_return_result_arrives_and_is_valid__the_result_resolves_and_events_go_on() -> None:
    go_on = anyio.Event()

    async def returns(turn: Turn) -> None:
        await turn.returns(answer=42)
        await go_on.wait()
        turn.say("That was it")

    async with scripted(returns) as agent:
        stream = agent.think(Answer).text("?").stream()
        assert await stream.result == Answer(answer=42)
        before = stream.view
        go_on.set()
        assert await read(stream) == ["That was it"]
        assert (before.phase, stream.view.phase) == ("prompted", "completed")


# await stream.result is cancelled


async def test_await_stream_result_is_cancelled__only_that_wait() -> None:
    async with wire_agent() as (agent, wire):
        stream = agent.think().text("Hi").stream()
        prompt = await wire.begin()
        with anyio.move_on_after(0.01) as scope:
            await stream.result
        assert scope.cancelled_caught
        await wire.write(say("Hello"), end_turn(prompt))
        assert await stream.result == "Hello"
        assert wire.unread == []


# stream.cancel() / leave async with stream early


async def test_stream_cancel__tells_the_agent_answers_questions_and_raises() -> None:
    asked = anyio.Event()

    async def ponders(_question: object) -> None:
        asked.set()
        await anyio.sleep_forever()

    async with wire_agent(permissions="ask", on_question=ponders) as (agent, wire):
        stream = agent.think().text("Hi").stream(include="all")
        prompt = await wire.begin()
        await wire.write(update("tool_call", toolCallId="t", title="rm"), permission(1))
        await asked.wait()
        assert [question.tool_id for question in stream.view.questions] == ["t"]
        stream.cancel()
        with pytest.raises(ThoughtCancelled):
            await stream.result
        assert (await wire.expect("session/cancel"))["params"] == {"sessionId": "s"}
        assert (await wire.expect(None))["result"] == {"outcome": {"outcome": "cancelled"}}
        await wire.write(permission(2))  # asked before the agent has read that it is cancelled
        assert (await wire.expect(None))["result"] == {"outcome": {"outcome": "cancelled"}}
        with anyio.move_on_after(0.01) as scope:
            await stream.wait()
        assert scope.cancelled_caught, "the run is over when the agent has answered"
        await wire.write(say("bye"), end_turn(prompt, "cancelled"))
        await stream.wait()
        assert stream.view.phase == "cancelled"
        assert stream.view.questions == ()
        assert isinstance(stream.view.error, ThoughtCancelled)
        assert await read(stream) == ["bye"]
        done = [event async for event in stream if isinstance(event, ToolDone)]
        assert [(event.id, event.status) for event in done] == [("t", "cancelled")]


async def test_leave_async_with_stream_early__cancels_and_waits() -> None:
    async with wire_agent() as (agent, wire), anyio.create_task_group() as tasks:
        async with agent.think().text("Hi").stream() as stream:
            prompt = await wire.begin()
            await wire.write(say("Hello"))
            async for _ in stream:
                break

            async def end() -> None:
                await wire.expect("session/cancel")
                await wire.write(end_turn(prompt, "cancelled"))

            tasks.start_soon(end)
        assert stream.view.phase == "cancelled"
        assert stream.view.stop_reason == "cancelled"
        with pytest.raises(ThoughtCancelled):
            await stream.result


# leave async with open_agent


async def test_leave_async_with_open_agent__unfinished_runs_are_cancelled_and_results_settled() -> None:
    async with scripted(waits) as agent:
        streams = [agent.think().text("Hi").stream() for _ in range(3)]
        async for _ in streams[0]:
            break
    for stream in streams:
        with pytest.raises(AgentClosed):
            await stream.result
        assert stream.view.phase == "cancelled"
    assert await read(streams[0]) == ["Hello"]
    with pytest.raises(AgentClosed):
        agent.think().text("Hi").stream()


@pytest.mark.skipif(sys.platform == "win32", reason="looks at processes as POSIX has them")
async def test_leave_async_with_open_agent__the_whole_process_tree_is_gone() -> None:
    async with open_agent(command=[sys.executable, str(RAW_AGENT), "family"]) as agent:
        stream = agent.think().text("Hi").stream()
        grandchild = 0
        async for event in stream:
            assert isinstance(event, Message)
            grandchild = int(event.text)
            break
        assert is_alive(grandchild)
    await wait_gone(grandchild)


# the agent dies


async def test_the_agent_dies__its_runs_raise_agent_exited_and_other_agents_are_untouched() -> None:
    dies = [sys.executable, str(RAW_AGENT), "die"]
    async with scripted(greets) as other, open_agent(command=dies) as agent:
        stream = agent.think().text("Hi").stream()
        assert await read(stream) == ["before the end"]
        with pytest.raises(AgentExited) as caught:
            await stream.result
        assert caught.value.exit_code == 7
        assert caught.value.stderr_tail == "out of paper\n"
        assert stream.view.phase == "failed"
        assert stream.view.error is caught.value
        with pytest.raises(AgentExited):
            await agent.think().text("Are you there?").run()
        assert await other.think().text("Hi").run() == "there"
