"""The limit for silence: when it counts, when it stands still, and what is said before it ends a run."""

from __future__ import annotations

import math
import threading
import time
from typing import Any

import anyio
import pytest
from limits.virtual import Stopwatch
from pydantic import BaseModel
from scripted import Played, Proceed, Script, Turn, scripted

from thinkwell import ThoughtCancelled, ThoughtStream, ThoughtTimeout
from thinkwell import events as ev
from thinkwell_acp import schema as s

pytestmark = pytest.mark.virtual_time

LIMIT = 60.0


class Answer(BaseModel):
    answer: int


async def hangs(_turn: Turn) -> None:
    await anyio.sleep_forever()


async def talks(turn: Turn) -> None:
    turn.say("Hello")
    await anyio.sleep(20)
    turn.say("there")
    await anyio.sleep_forever()


async def ended(stream: ThoughtStream[Any], within: float = 100_000) -> tuple[float, list[ev.Stalled]]:
    """Wait for the end by silence; return when it came, and the warnings."""
    watch = Stopwatch()
    with pytest.raises(ThoughtTimeout) as caught, anyio.fail_after(within):
        await stream.result
    assert (caught.value.idle, caught.value.seconds) == (True, LIMIT)
    assert "raise idle_timeout=" in str(caught.value)
    seconds = watch.seconds
    await stream.wait()
    assert stream.view.phase == "failed"
    return seconds, await stalls(stream)


async def stalls(stream: ThoughtStream[Any]) -> list[ev.Stalled]:
    """Return the warnings of a run that is over."""
    return [event async for event in stream if isinstance(event, ev.Stalled)]


def call(turn: Turn, tool_id: str, status: Any = "in_progress", title: str = "Run the tests") -> None:
    turn.update(s.ToolCallStart(tool_call_id=tool_id, title=title, status=status))


def progress(turn: Turn, tool_id: str, status: Any) -> None:
    turn.update(s.ToolCallProgress(tool_call_id=tool_id, status=status))


async def ends_after(script: Script, expected: float, *warnings: float, **settings: Any) -> None:
    """Check when silence ends a run of this script, and at which times it was warned."""
    async with scripted(script, **settings) as agent:
        stream = agent.think().text("Go").stream(include="all", idle_timeout=LIMIT)
        seconds, stalled = await ended(stream)
    assert seconds == pytest.approx(expected, abs=0.1)
    assert [event.at for event in stalled] == pytest.approx(list(warnings), abs=0.1)
    for event in stalled:
        assert event.limit == LIMIT
        assert event.idle == pytest.approx(LIMIT / 2, abs=0.1)


# It counts


async def test_the_prompt_is_never_answered() -> None:
    await ends_after(hangs, 60, 30)


async def test_silence_after_some_text() -> None:
    await ends_after(talks, 80, 50)


class Slow(Played):
    """Takes its time for a session, and for the list of tools."""

    def __init__(self, *scripts: Script, opens_after: float = 0, lists_tools: bool = True) -> None:
        super().__init__(scripts, lists_tools=lists_tools, answers={"session/new": self.new_session})
        self.opens_after = opens_after

    async def new_session(self, request: s.NewSessionRequest, proceed: Proceed) -> object:
        await anyio.sleep(self.opens_after)
        return await proceed(request)


async def test_the_session_is_never_opened() -> None:
    async with scripted(agent=Slow(hangs, opens_after=1e6)) as agent:
        stream = agent.think().text("Go").stream(include="all", idle_timeout=LIMIT)
        assert [event.at for event in (await ended(stream))[1]] == pytest.approx([30], abs=0.1)
        assert stream.view.turns == 0


async def test_the_answer_to_session_new_and_the_prompt_are_where_it_begins_anew() -> None:
    async with scripted(agent=Slow(hangs, opens_after=50)) as agent:
        stream = agent.think().text("Go").stream(include="all", idle_timeout=LIMIT)
        seconds, stalled = await ended(stream)
        assert seconds == pytest.approx(110, abs=0.1)
        assert [event.at for event in stalled] == pytest.approx([30, 80], abs=0.1)


async def test_the_tools_are_never_listed() -> None:
    async with scripted(agent=Slow(hangs, lists_tools=False)) as agent:
        stream = agent.think(Answer).text("Go").stream(idle_timeout=3)
        with pytest.raises(ThoughtTimeout):
            await stream.result
        await stream.wait()
        assert stream.view.turns == 0  # the list is waited for longer than that
        seconds, _ = await ended(agent.think(Answer).text("Go").stream(idle_timeout=LIMIT))
        assert seconds == pytest.approx(65, abs=0.1)


async def test_a_reminder_that_is_not_answered() -> None:
    turns: list[Turn] = []

    async def forgets(turn: Turn) -> None:
        turns.append(turn)
        await anyio.sleep(50 if len(turns) == 1 else 1e6)
        call(turn, "left open")

    async with scripted(forgets) as agent:
        stream = agent.think(Answer).text("Go").stream(include="all", idle_timeout=LIMIT)
        seconds, stalled = await ended(stream)
    assert len(turns) == 2
    assert seconds == pytest.approx(110, abs=0.1)  # a call that the first turn left open does not run
    assert [event.at for event in stalled] == pytest.approx([30, 80], abs=0.1)


async def test_after_the_result__which_stays() -> None:
    async def returns(turn: Turn) -> None:
        await anyio.sleep(40)
        await turn.returns(answer=1)
        await anyio.sleep_forever()

    async with scripted(returns) as agent:
        watch = Stopwatch()
        stream = agent.think(Answer).text("Go").stream(idle_timeout=LIMIT)
        assert await stream.result == Answer(answer=1)
        await stream.wait()
        assert watch.seconds == pytest.approx(100, abs=0.1)  # the result was a sign of life
        assert (stream.view.phase, stream.view.cut, stream.view.error) == (
            "completed",
            "ThoughtTimeout",
            None,
        )


async def test_by_run() -> None:
    async with scripted(hangs) as agent:
        watch = Stopwatch()
        with pytest.raises(ThoughtTimeout) as caught:
            await agent.think().text("Go").run(idle_timeout=LIMIT)
        assert caught.value.idle
        assert watch.seconds == pytest.approx(60, abs=0.1)


@pytest.mark.parametrize(
    ("total", "expected", "idle"), [(100.0, 80.0, True), (70.0, 70.0, False), (30.0, 30.0, False)]
)
async def test_with_a_limit_for_all_of_it__the_first_counts(
    total: float, expected: float, idle: bool
) -> None:
    async with scripted(talks) as agent:
        watch = Stopwatch()
        with pytest.raises(ThoughtTimeout) as caught:
            await agent.think().text("Go").stream(timeout=total, idle_timeout=LIMIT).result
        assert watch.seconds == pytest.approx(expected, abs=0.1)
        assert caught.value.idle is idle


async def test_what_ends_the_run_while_it_winds_down_changes_nothing() -> None:
    async def stubborn(_turn: Turn) -> None:
        with anyio.CancelScope(shield=True):
            await anyio.sleep(8)

    async with scripted(stubborn) as agent:
        stream = agent.think().text("Go").stream(timeout=4, idle_timeout=3)
        await stream.wait()
        error = stream.result.exception()
        assert isinstance(error, ThoughtTimeout)
        assert error.idle


# It stands still


async def works(turn: Turn) -> None:
    await anyio.sleep(20)
    call(turn, "t", "pending")
    await anyio.sleep(1000)
    progress(turn, "t", "in_progress")
    await anyio.sleep(1000)
    progress(turn, "t", "completed")
    await anyio.sleep_forever()


async def test_while_a_tool_of_the_agent_runs__and_then_begins_anew() -> None:
    await ends_after(works, 2080, 2050)


async def test_while_the_last_of_several_tools_runs() -> None:
    async def works_twice(turn: Turn) -> None:
        call(turn, "a")
        call(turn, "b")
        await anyio.sleep(100)
        progress(turn, "a", "failed")
        await anyio.sleep(100)
        progress(turn, "b", "completed")
        progress(turn, "b", "in_progress")  # news of what has ended is no new beginning
        await anyio.sleep_forever()

    await ends_after(works_twice, 260, 230)


async def test_a_call_that_is_complete_when_it_is_shown_does_not_run() -> None:
    async def works_at_once(turn: Turn) -> None:
        call(turn, "a", "completed")
        progress(turn, "b", "completed")
        await anyio.sleep_forever()

    await ends_after(works_at_once, 60, 30)


@pytest.mark.parametrize("shown", [False, True])
async def test_while_a_tool_of_ours_runs(shown: bool) -> None:
    async def slow() -> str:
        """Take a while."""
        await anyio.sleep(1000)
        return "done"

    async def calls(turn: Turn) -> None:
        await anyio.sleep(20)
        if shown:  # and never said to be over
            server = turn.server
            call(turn, "t", "pending", title=f"mcp__{server}__slow")
        await turn.call("slow", {})
        await anyio.sleep_forever()

    async with scripted(calls) as agent:
        stream = agent.think().text("Go").tool(slow).stream(include="all", idle_timeout=LIMIT)
        seconds, stalled = await ended(stream)
    assert seconds == pytest.approx(1080, abs=0.1)
    assert [event.at for event in stalled] == pytest.approx([1050], abs=0.1)


async def test_while_a_sync_tool_of_ours_runs() -> None:
    entered, go = threading.Event(), threading.Event()
    returned: list[float] = []

    def slow() -> str:
        """Take a while of real time, in which any amount of the other passes."""
        entered.set()
        go.wait(10)
        return "done"

    async def calls(turn: Turn) -> None:
        await turn.call("slow", {})
        returned.append(anyio.current_time())
        await anyio.sleep_forever()

    async def let_go() -> None:
        await anyio.sleep(3600)
        await anyio.to_thread.run_sync(entered.wait, 10)
        go.set()

    async with scripted(calls) as agent, anyio.create_task_group() as tasks:
        tasks.start_soon(let_go)
        stream = agent.think().text("Go").tool(slow).stream(include="all", idle_timeout=LIMIT)
        seconds, stalled = await ended(stream, within=math.inf)
        assert anyio.current_time() - returned[0] == pytest.approx(LIMIT, abs=0.1)
        assert seconds > 3600
        assert len(stalled) == 1


def permission(turn: Turn, tool_id: str = "t") -> s.RequestPermissionRequest:
    options = (
        s.PermissionOption(option_id="y", name="Yes", kind="allow_once"),
        s.PermissionOption(option_id="n", name="No", kind="reject_once"),
    )
    call = s.ToolCallUpdate(tool_call_id=tool_id, title="rm")
    return s.RequestPermissionRequest(session_id=turn.session_id, tool_call=call, options=options)


async def asks(turn: Turn) -> None:
    await anyio.sleep(20)
    await turn.client.request_permission(permission(turn))
    await anyio.sleep_forever()


async def slow_no(_question: object) -> str:
    await anyio.sleep(250)
    return "deny"


async def test_while_a_question_waits__and_a_refused_call_does_not_run_though_nothing_is_said_of_it() -> None:
    await ends_after(asks, 330, 300, permissions="ask", on_question=slow_no)


async def test_a_call_that_was_allowed_runs() -> None:
    async def slow_yes(_question: object) -> str:
        await anyio.sleep(250)
        return "allow"

    async def asks_and_works(turn: Turn) -> None:
        await turn.client.request_permission(permission(turn))
        await anyio.sleep(250)
        progress(turn, "t", "completed")
        await anyio.sleep_forever()

    await ends_after(asks_and_works, 560, 530, permissions="ask", on_question=slow_yes)


async def test_a_refused_call_of_which_there_is_news_runs() -> None:
    async def asks_and_works(turn: Turn) -> None:
        await turn.client.request_permission(permission(turn))
        progress(turn, "t", "in_progress")
        await anyio.sleep(500)
        progress(turn, "t", "failed")
        await anyio.sleep_forever()

    await ends_after(asks_and_works, 560, 530)


async def test_while_two_questions_wait() -> None:
    waits = iter((100, 200))

    async def slowly(_question: object) -> str:
        await anyio.sleep(next(waits))
        return "deny"

    async def asks_twice(turn: Turn) -> None:
        async with anyio.create_task_group() as tasks:
            for tool_id in "ab":
                tasks.start_soon(turn.client.request_permission, permission(turn, tool_id))
        await anyio.sleep_forever()

    await ends_after(asks_twice, 260, 230, permissions="ask", on_question=slowly)


async def test_while_the_run_waits_for_its_turn() -> None:
    async def busy(turn: Turn) -> str:
        if turn.text == "1":
            for _ in range(100):
                await anyio.sleep(20)
                turn.say("on")
        else:
            await anyio.sleep_forever()
        return "end_turn"

    async with scripted(busy) as agent, agent.session() as session:
        first = session.think().text("1").stream(include="all", idle_timeout=LIMIT)
        second = session.think().text("2").stream(include="all", idle_timeout=LIMIT)
        seconds, stalled = await ended(second)
        assert seconds == pytest.approx(2060, abs=0.5)
        assert [event.at for event in stalled] == pytest.approx([2030], abs=0.5)
        assert len(await first.result) == 200
        assert await stalls(first) == []


# Warnings


async def test_a_healthy_run_of_an_hour_is_left_alone() -> None:
    async def healthy(turn: Turn) -> None:
        for _ in range(180):
            await anyio.sleep(LIMIT / 3)
            turn.say("x")

    async with scripted(healthy) as agent:
        watch = Stopwatch()
        stream = agent.think().text("Go").stream(include="all", idle_timeout=LIMIT)
        assert await stream.result == "x" * 180
        assert watch.seconds == pytest.approx(3600, abs=1)
        assert await stalls(stream) == []


async def test_one_warning_for_each_silence() -> None:
    async def pauses(turn: Turn) -> None:
        for pause in (59, 31, 29, 45, 1):
            await anyio.sleep(pause)
            turn.say("x")
        await anyio.sleep_forever()

    await ends_after(pauses, 225, 30, 89, 149, 195)


async def test_a_warning_is_for_those_who_want_it() -> None:
    async with scripted(hangs) as agent:
        stream = agent.think().text("Go").stream(idle_timeout=LIMIT)
        chosen = agent.think().text("Go").stream(include={"stalled"}, idle_timeout=LIMIT)
        for one in (stream, chosen):
            with pytest.raises(ThoughtTimeout):
                await one.result
        assert [event async for event in stream] == []
        assert [event.type async for event in chosen] == ["stalled"]


async def test_a_warned_run_can_be_cancelled_by_who_reads_the_warning() -> None:
    async with scripted(hangs) as agent:
        stream = agent.think().text("Go").stream(include={"stalled"}, idle_timeout=LIMIT)
        watch = Stopwatch()
        async for _ in stream:
            stream.cancel()
        with pytest.raises(ThoughtCancelled):
            await stream.result
        assert watch.seconds == pytest.approx(30, abs=0.1)


# A clock of our own that comes late


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_time_in_which_our_own_program_was_busy_is_not_the_agents_silence() -> None:
    async def healthy(turn: Turn) -> None:
        for _ in range(6):
            await anyio.sleep(0.1)
            turn.say("x")

    async with scripted(healthy) as agent:
        stream = agent.think().text("Go").stream(idle_timeout=0.5)
        async for _ in stream:
            time.sleep(0.7)  # noqa: ASYNC251 - that is the point
            break
        assert await stream.result == "x" * 6


@pytest.mark.parametrize("limit", [0, -1, float("nan"), "60", True])
async def test_a_limit_that_makes_no_sense(limit: Any) -> None:
    async with scripted(hangs) as agent:
        with pytest.raises((TypeError, ValueError), match="idle_timeout="):
            agent.think().text("Go").stream(idle_timeout=limit)
