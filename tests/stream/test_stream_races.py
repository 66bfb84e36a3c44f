"""What comes at an awkward moment: each result is settled exactly once, and nothing hangs."""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from pydantic import BaseModel
from scripted import Played, Turn, playing, scripted
from stream.wire_agent import answer, end_turn, permission, refuse, say, update, wire_agent

from thinkwell import (
    Agent,
    AgentExited,
    ResultMissing,
    ThoughtCancelled,
    ThoughtEvent,
    ThoughtStream,
    ThoughtTimeout,
    ToolDone,
    ToolStart,
    ToolUpdate,
    open_agent,
)
from thinkwell_acp import memory_transport_pair

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from pathlib import Path


class Answer(BaseModel):
    answer: int


@asynccontextmanager
async def mortal(handler: Played) -> AsyncGenerator[tuple[Agent, Callable[[], Awaitable[None]]]]:
    """Open a scripted agent and give the means to end it."""
    ours, theirs = memory_transport_pair()
    async with playing(theirs, handler), open_agent("mortal", transport=ours) as agent:
        yield agent, theirs.aclose


async def over(stream: ThoughtStream[Any]) -> Exception | None:
    """Wait for the end and return the error."""
    with anyio.fail_after(30):
        await stream.wait()
    return stream.result.exception()


async def kept(stream: ThoughtStream[Any]) -> list[ThoughtEvent]:
    with anyio.fail_after(30):
        return [event async for event in stream]


async def says_and_waits(turn: Turn) -> None:
    turn.say("Hello")
    await anyio.sleep_forever()


# Cancelling, by when it comes


async def test_cancelled_before_the_run_has_started__nothing_is_sent() -> None:
    async with wire_agent() as (agent, wire):
        stream = agent.think().text("Hi").stream()
        stream.cancel()
        assert type(await over(stream)) is ThoughtCancelled
        assert wire.unread == []
        assert stream.late == ()
        assert await kept(stream) == []


async def test_cancelled_while_the_session_is_opened__the_agent_is_told_and_its_answer_is_harmless() -> None:
    async with wire_agent() as (agent, wire):
        stream = agent.think().text("Hi").stream()
        opening = await wire.expect("session/new")
        stream.cancel()
        assert type(await over(stream)) is ThoughtCancelled
        assert (await wire.expect("$/cancel_request"))["params"] == {"requestId": opening["id"]}
        await wire.write(answer(opening, {"sessionId": "s"}))
        other = agent.think().text("Hi").stream()
        await wire.write(end_turn(await wire.begin("t")))
        assert await other.result == ""


async def test_cancelled_while_another_run_has_the_session__only_the_waiting_one() -> None:
    hold = anyio.Event()

    async def holds(turn: Turn) -> None:
        await hold.wait()
        turn.say(turn.text)

    handler = Played([holds])
    async with scripted(agent=handler) as agent, agent.session() as session:
        first = session.think().text("1").stream()
        second = session.think().text("2").stream()
        third = session.think().text("3").stream(timeout=0.01)
        second.cancel()
        assert type(await over(second)) is ThoughtCancelled
        assert isinstance(await over(third), ThoughtTimeout)
        assert second.late == ()
        fourth = session.think().text("4").stream()
        hold.set()
        with anyio.fail_after(30):
            assert await first.result == "1"
            assert await fourth.result == "4"
        assert len(handler.sent.prompts) == 2


async def test_cancelled_while_a_tool_runs__the_tool_is_cancelled_and_no_other_is_run() -> None:
    started = anyio.Event()
    ended: list[str] = []
    answers: list[dict[str, Any]] = []

    async def slow() -> str:
        """Take for ever."""
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("slow")
        return "never"

    async def calls(turn: Turn) -> str:
        with anyio.CancelScope(shield=True):
            answers.append(await turn.call("slow", {}))
            answers.append(await turn.call("slow", {}))
            answers.append(await turn.returns(answer=1))
        return "cancelled"

    async with scripted(calls) as agent:
        stream = agent.think(Answer).text("Hi").tool(slow).stream()
        await started.wait()
        stream.cancel()
        stream.cancel()
        assert type(await over(stream)) is ThoughtCancelled
    assert ended == ["slow"]
    assert [one["isError"] for one in answers] == [True] * 3
    assert [one["content"][0]["text"].split(".")[0] for one in answers] == [
        "The task was cancelled",
        "The task was cancelled",
        "No result is accepted any more",
    ]


async def test_turn_ends_while_a_tool_runs__the_tool_is_cancelled() -> None:
    started, ended = anyio.Event(), anyio.Event()

    async def quick() -> str:
        """Answer at once."""
        return "done"

    async def slow() -> None:
        """Take for ever."""
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()

    async def leaves(turn: Turn) -> None:
        turn.say((await turn.call("quick", {}))["content"][0]["text"])
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(turn.call, "slow", dict[str, object]())
            await started.wait()
            tasks.cancel_scope.cancel()

    async with scripted(leaves) as agent:
        stream = agent.think().text("Hi").tool(quick).tool(slow).stream()
        assert await stream.result == "done"
        with anyio.fail_after(30):
            await ended.wait()


async def test_cancelled_with_tools_open__they_are_done_at_once_and_corrections_still_come() -> None:
    async with wire_agent() as (agent, wire):
        stream = agent.think().text("Hi").stream()
        prompt = await wire.begin()
        await wire.write(
            update("tool_call", toolCallId="a", title="A", content=[{"type": "terminal", "terminalId": "x"}]),
            update("tool_call", toolCallId="b", title="B", status="completed"),
        )
        reader = stream.events()
        assert [(await anext(reader)).type for _ in range(3)] == ["tool_start", "tool_start", "tool_done"]
        stream.cancel()
        done = await anext(reader)
        assert isinstance(done, ToolDone)
        assert (done.id, done.status, done.title, len(done.content)) == ("a", "cancelled", "A", 1)
        await wire.write(
            update("tool_call_update", toolCallId="a", status="completed", rawOutput=1),
            update("tool_call", toolCallId="c", title="C"),
            end_turn(prompt, "cancelled"),
        )
        correction, start, last = [event async for event in reader]
        assert isinstance(correction, ToolUpdate)
        assert (correction.id, correction.status, correction.output) == ("a", "completed", 1)
        assert isinstance(start, ToolStart)
        assert isinstance(last, ToolDone)
        assert (last.id, last.status) == ("c", "cancelled")
        assert {id_: tool.status for id_, tool in stream.view.tools.items()} == {
            "a": "completed",
            "b": "completed",
            "c": "cancelled",
        }


@pytest.mark.parametrize("answered", ["end_turn", "error"])
async def test_cancelled_while_the_answer_is_under_way__it_is_cancelled_whatever_the_answer(
    answered: str,
) -> None:
    async with wire_agent() as (agent, wire):
        stream = agent.think().text("Hi").stream()
        prompt = await wire.begin()
        await wire.write(end_turn(prompt) if answered == "end_turn" else refuse(prompt, "aborted"))
        stream.cancel()
        assert type(await over(stream)) is ThoughtCancelled
        assert stream.view.phase == "cancelled"
        assert stream.view.stop_reason == ("end_turn" if answered == "end_turn" else None)


async def test_cancelled_after_the_end__nothing_happens() -> None:
    async with wire_agent() as (agent, wire):
        stream = agent.think().text("Hi").stream()
        await wire.write(end_turn(await wire.begin()))
        assert await over(stream) is None
        stream.cancel()
        assert await stream.result == ""
        assert stream.view.phase == "completed"
        assert wire.unread == []


async def test_cancelled_after_the_result__the_result_stays() -> None:
    async def returns(turn: Turn) -> None:
        await turn.returns(answer=1)
        await anyio.sleep_forever()

    async with scripted(returns) as agent:
        stream = agent.think(Answer).text("Hi").stream()
        assert await stream.result == Answer(answer=1)
        stream.cancel()
        assert await over(stream) is None
        assert (stream.view.phase, stream.view.cut) == ("completed", "ThoughtCancelled")


async def test_cancelled_between_two_turns__no_other_prompt_is_sent() -> None:
    streams: list[ThoughtStream[Answer]] = []

    async def forgets(turn: Turn) -> None:
        turn.say("no result")

    async def cancel_at_the_end() -> None:
        async for event in streams[0].events():
            if event.type == "turn_end":
                streams[0].cancel()
                return

    handler = Played([forgets])
    async with scripted(agent=handler) as agent, anyio.create_task_group() as tasks:
        streams.append(agent.think(Answer).text("Hi").stream(include="all"))
        tasks.start_soon(cancel_at_the_end)
        assert type(await over(streams[0])) is ThoughtCancelled
    assert 1 <= len(handler.sent.prompts) <= 2


async def test_agent_says_itself_that_the_turn_is_cancelled() -> None:
    async with wire_agent() as (agent, wire):
        stream = agent.think().text("Hi").stream()
        prompt = await wire.begin()
        await wire.write(update("tool_call", toolCallId="t", title="T"), end_turn(prompt, "cancelled"))
        error = await over(stream)
        assert isinstance(error, ResultMissing)  # nobody here has cancelled it
        assert error.stop_reason == "cancelled"
        start, done = await kept(stream)
        assert isinstance(start, ToolStart)
        assert isinstance(done, ToolDone)
        assert done.status == "cancelled"


async def test_cancelled_caller_of_run__cancels_the_run() -> None:
    async with wire_agent() as (agent, wire):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(agent.think().text("Hi").run)
            prompt = await wire.begin()
            tasks.cancel_scope.cancel()
            with anyio.CancelScope(shield=True):
                await wire.expect("session/cancel")
                await wire.write(end_turn(prompt, "cancelled"))
        assert wire.unread == []


async def test_timeout__cancels_and_raises() -> None:
    async with scripted(says_and_waits) as agent:
        stream = agent.think().text("Hi").stream(timeout=0.05)
        with pytest.raises(ThoughtTimeout) as caught:
            await stream.result
        assert caught.value.seconds == 0.05
        await stream.wait()
        assert stream.view.phase == "failed"
        assert [event.type for event in await kept(stream)] == ["message"]


# The end of the agent, by when it comes


async def test_agent_ends_while_the_session_is_opened() -> None:
    async with wire_agent() as (agent, wire):
        stream = agent.think().text("Hi").stream()
        await wire.expect("session/new")
        await wire.hang_up()
        assert isinstance(await over(stream), AgentExited)
        assert await kept(stream) == []


async def test_agent_ends_while_its_look_at_our_tools_is_awaited() -> None:
    handler = Played([], lists_tools=False)
    async with mortal(handler) as (agent, end):
        stream = agent.think(Answer).text("Hi").stream(include="all")
        async for event in stream:
            if event.type == "phase":
                break
        await end()
        with anyio.fail_after(2):
            await stream.wait()
        assert isinstance(stream.result.exception(), AgentExited)


async def test_agent_ends_in_a_turn_with_a_question_open__all_is_settled() -> None:
    asked = anyio.Event()

    async def ponders(_question: object) -> None:
        asked.set()
        await anyio.sleep_forever()

    async with wire_agent(permissions="ask", on_question=ponders) as (agent, wire):
        stream = agent.think().text("Hi").stream(include="all")
        await wire.begin()
        await wire.write(permission(1), say("Hello"))
        await asked.wait()
        await wire.hang_up()
        assert isinstance(await over(stream), AgentExited)
        events = await kept(stream)
        assert events[-1].type == "phase", "nothing comes behind the end"
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        assert [event.status for event in events if isinstance(event, ToolDone)] == ["cancelled"]
        assert stream.view.questions == ()


async def test_agent_ends_after_the_result__the_result_stays() -> None:
    async def returns(turn: Turn) -> None:
        await turn.returns(answer=1)
        await anyio.sleep_forever()

    handler = Played([returns])
    async with mortal(handler) as (agent, end):
        stream = agent.think(Answer).text("Hi").stream()
        assert await stream.result == Answer(answer=1)
        await end()
        assert await over(stream) is None
        assert (stream.view.phase, stream.view.cut) == ("completed", "AgentExited")


async def test_agent_has_ended_before_a_turn_of_its_session() -> None:
    async def greets(turn: Turn) -> None:
        turn.say("Hello")

    handler = Played([greets])
    async with mortal(handler) as (agent, end), agent.session() as session:
        assert await session.think().text("Hi").run() == "Hello"
        await end()
        with anyio.fail_after(30):
            with pytest.raises(AgentExited):
                await session.think().text("Hi").run()
            stream = session.think().text("Hi").stream()
            await stream.wait()
        assert stream.view.turns == 0
        assert stream.view.phase == "failed"


# What is wrong on our side


async def test_file_of_the_prompt_has_gone__the_result_says_so(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("notes")
    async with wire_agent(capabilities={"promptCapabilities": {"embeddedContext": True}}) as (agent, wire):
        builder = agent.think().resource(path)
        path.unlink()
        stream = builder.stream()
        await wire.write(answer(await wire.expect("session/new"), {"sessionId": "s"}))
        assert isinstance(await over(stream), FileNotFoundError)


async def test_error_that_was_not_foreseen__is_the_result_and_is_logged_with_its_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with wire_agent() as (agent, wire):
        values: list[object] = []
        builder = agent.think().text("Hi").meta({"key": values})
        values.append(object())
        stream = builder.stream()
        await wire.write(answer(await wire.expect("session/new"), {"sessionId": "s"}))
        assert isinstance(await over(stream), TypeError)
        assert stream.view.phase == "failed"
    (record,) = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert record.name == "thinkwell"
    assert record.exc_info is not None
