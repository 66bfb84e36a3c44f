"""What displays need beside the conversation: whose run it is, tokens, answers, attempts, and the time."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from scripted import Played, Turn, scripted

from thinkwell import (
    AgentExited,
    ChooseOption,
    PlanEntry,
    PlanUpdate,
    Question,
    ThoughtCancelled,
    ToolStart,
    ToolUpdate,
    ViewReducer,
    open_agent,
    replay,
)
from thinkwell import events as ev
from thinkwell.testing import script
from thinkwell.view import RunView, TokenCounts
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from pathlib import Path

MODEL = s.SessionConfigSelect(
    id="model",
    name="Model",
    category="model",
    current_value="big",
    options=(
        s.SessionConfigSelectOption(value="small", name="Small 1"),
        s.SessionConfigSelectOption(value="big", name="Big 2"),
    ),
)


def view(*events: ev.ThoughtEvent) -> RunView:
    reducer = ViewReducer(agent="claude", cwd="/project")
    for event in events:
        reducer.apply((event,))
    return reducer.snapshot()


async def speaks(turn: Turn) -> None:
    turn.say("Hello")


async def hangs(turn: Turn) -> None:
    turn.say("Hello")
    await anyio.sleep_forever()


# Whose run it is


async def test_a_view_says_whose_run_it_is_from_the_beginning(tmp_path: Path) -> None:
    agent_ = Played([speaks])
    agent_.modes = s.SessionModeState(
        current_mode_id="plan", available_modes=(s.SessionMode(id="plan", name="Plan"),)
    )
    agent_.options = [MODEL]
    async with scripted(agent=agent_) as agent:
        stream = agent.think().text("Hi").cwd(tmp_path).stream(include={"session"})
        begun = stream.view
        assert (begun.agent, begun.cwd) == (agent.name, str(tmp_path))
        assert (begun.session_id, begun.model, begun.mode) == (None, None, None)
        await stream.result
        seen = stream.view
        assert (seen.agent, seen.cwd, seen.session_id) == (agent.name, str(tmp_path), "session-1")
        assert (seen.model, seen.mode) == ("Big 2", "plan")
        (event,) = [event async for event in stream]
        assert event == ev.SessionOpened(
            seq=1,
            at=event.at,
            agent=agent.name,
            session_id="session-1",
            cwd=str(tmp_path),
            model="Big 2",
            mode="plan",
        )
        assert ev.event_from_json(ev.event_to_json(event)) == event


async def test_each_turn_of_a_session_tells_it_again() -> None:
    async with scripted(speaks) as agent, agent.session() as session:
        for _ in range(2):
            stream = session.think().text("Hi").stream()
            await stream.wait()
            assert stream.view.session_id == session.id


def test_the_model_follows_the_options() -> None:
    options = (s.to_builtins(MODEL),)
    opened = ev.SessionOpened(agent="claude", session_id="1", cwd="/project", model="Small 1")
    assert view(opened).model == "Small 1"
    assert view(opened, ev.ConfigUpdate(raw=options)).model == "Big 2"
    assert view(opened, ev.ConfigUpdate(raw=options)).session_id == "1"


def option(category: str = "model", value: object = "a", **more: object) -> dict[str, object]:
    return {"id": "o", "name": "O", "type": "select", "category": category, "currentValue": value, **more}


OPTIONS: list[tuple[Any, str | None]] = [
    ((), None),
    ((option("mode"),), None),
    ((option(),), "a"),
    ((option(value=True, type="boolean"),), None),
    ((option(options=[{"value": "a", "name": 7}]),), None),
    ((option(type="colour"),), None),
    ((7, option(options=[{"group": "g", "name": "G", "options": [{"value": "a", "name": "A"}]}])), "A"),
]


@pytest.mark.parametrize(("options", "model"), OPTIONS)
def test_the_model_is_that_of_the_options_whatever_they_look_like(options: Any, model: str | None) -> None:
    assert view(ev.ConfigUpdate(raw=options)).model == model


async def test_a_stream_knows_the_file_that_it_is_recorded_in(tmp_path: Path) -> None:
    path = tmp_path / "r.ndjson"
    async with scripted(speaks, record=path) as agent:
        stream = agent.think().text("Hi").stream()
        await stream.wait()
        assert stream.recording == path
    replayed = replay(path, speed=0)
    assert replayed.recording == path
    begun = replay(path, speed=0.001).view  # its session is not open yet
    assert (begun.agent, begun.cwd, begun.session_id) == (stream.view.agent, stream.view.cwd, None)
    async with scripted(speaks) as agent:
        stream = agent.think().text("Hi").stream()
        await stream.wait()
        assert stream.recording is None


# What was used, asked, tried and said


def test_tokens_are_those_of_all_turns() -> None:
    first = ev.TurnEnded(number=1, stop_reason="end_turn", usage=ev.TokenUsage(total=10, input=8))
    second = ev.TurnEnded(number=2, stop_reason="end_turn", usage=ev.TokenUsage(total=5, output=3, thought=1))
    silent = ev.TurnEnded(number=3, stop_reason="end_turn")
    assert view(silent).tokens is None
    assert view(first, second, silent).tokens == TokenCounts(total=15, input=8, output=3, thought=1)


async def test_answers_say_who_decided_and_what_was_said_before() -> None:
    asked: list[RunView] = []

    def passes(question: Question) -> None:
        asked.append(stream.view)

    def allows(question: Question) -> ChooseOption:
        asked.append(stream.view)
        return ChooseOption(option_id="yes")

    options = (s.PermissionOption(option_id="yes", name="Yes", kind="allow_once"),)

    async def asks(turn: Turn) -> None:
        await turn.client.request_permission(
            s.RequestPermissionRequest(
                session_id=turn.session_id,
                tool_call=s.ToolCallUpdate(tool_call_id="rm", title="rm -rf build"),
                options=options,
            )
        )

    async with scripted(asks, permissions="ask", on_question=[passes, allows]) as agent:
        stream = agent.think().text("Hi").stream()
        await stream.wait()
    assert [[one.by for one in seen.questions[0].verdicts] for seen in asked] == [[], ["handler"]]
    assert asked[0].answers == ()
    (answer,) = stream.view.answers
    assert (answer.title, answer.asks, answer.tool_id) == ("rm -rf build", "permission", "rm")
    assert (answer.choice, answer.by) == ("allow_once", "handler")
    assert answer.verdicts[0].verdict is None
    assert 0 <= answer.asked_at <= answer.answered_at
    assert stream.view.denied == ()
    assert stream.view.questions == ()


def test_an_answer_to_a_question_that_was_not_asked_is_no_answer() -> None:
    stray = ev.QuestionAnswered(id="q", choice="reject_once", by="policy", why="")
    assert view(stray).answers == ()
    assert view(stray).denied == ()


def test_a_plan_that_is_replaced_counts_and_one_that_advances_does_not() -> None:
    steps = (PlanEntry(content="look"), PlanEntry(content="leap"))
    advanced = (PlanEntry(content="look", status="completed"), steps[1])
    plans = [PlanUpdate(entries=steps), PlanUpdate(entries=advanced), PlanUpdate(entries=steps[:1])]
    assert [view(*plans[:count]).plan_changes for count in range(4)] == [0, 0, 0, 1]


def test_attempts_notices_and_silence_are_kept() -> None:
    refused = ev.ResultAttempt(accepted=False, value=1, errors=("no",), at=1)
    notice = ev.Notice(severity="warning", title="Slow", at=2)
    stalled = ev.Stalled(idle=30, limit=60, at=3)
    silent = view(refused, notice, stalled)
    assert (silent.attempts, silent.notices, silent.stalled) == ((refused,), (notice,), stalled)
    assert view(refused, notice, stalled, ev.Message(text="Hi", at=4)).stalled is None


@pytest.mark.parametrize(
    ("meta", "parent"),
    [
        (None, None),
        ({"claudeCode": {"parentToolUseId": "task"}}, "task"),
        ({"claudeCode": {"parentToolUseId": "t"}}, None),
        ({"claudeCode": {"parentToolUseId": 7}}, None),
        ({"claudeCode": 7}, None),
    ],
)
@pytest.mark.parametrize("how", ["start", "update", "unseen"])
async def test_a_tool_call_names_the_sub_agent_that_it_is_part_of(
    how: str, meta: dict[str, Any] | None, parent: str | None
) -> None:
    async def calls(turn: Turn) -> None:
        turn.update(s.ToolCallStart(tool_call_id="task", title="ask a helper"))
        if how != "unseen":
            turn.update(
                s.ToolCallStart(tool_call_id="t", title="read", meta=meta if how == "start" else None)
            )
        if how != "start":
            turn.update(s.ToolCallProgress(tool_call_id="t", status="in_progress", meta=meta))

    async with scripted(calls) as agent:
        stream = agent.think().text("Hi").stream()
        await stream.wait()
        told = [event.parent async for event in stream if isinstance(event, ToolStart | ToolUpdate)]
        assert told[-1] == parent
        assert stream.view.tools["t"].parent == parent


# Time, and the end


@pytest.mark.virtual_time
class TestTime:
    async def test_elapsed__stands_still_after_the_end(self) -> None:
        async def slow(turn: Turn) -> None:
            await anyio.sleep(5)

        async with scripted(slow) as agent:
            stream = agent.think().text("Hi").stream()
            assert stream.elapsed == 0
            await anyio.sleep(2)
            assert round(stream.elapsed, 2) == 2
            await stream.wait()
            assert round(stream.elapsed, 2) == 5
            await anyio.sleep(2)
            assert round(stream.elapsed, 2) == 5

    @pytest.mark.parametrize("speed", [0, 1, 2])
    async def test_elapsed__of_a_replay_is_that_of_the_run(self, speed: float, tmp_path: Path) -> None:
        async def slow(turn: Turn) -> None:
            turn.say("Hello")
            await anyio.sleep(4)

        async with scripted(slow, record=tmp_path / "r.ndjson") as agent:
            await agent.think().text("Hi").run()
        stream = replay(tmp_path / "r.ndjson", speed=speed)
        assert round(stream.elapsed, 1) == (0 if speed else 4)
        await anyio.sleep(1)
        assert round(stream.elapsed, 1) == (speed or 4)
        await stream.wait()
        await anyio.sleep(1)
        assert round(stream.elapsed, 1) == 4


@pytest.mark.parametrize(
    ("whose", "cancelled"),
    [
        ("agent", False),
        ("stream", True),
        pytest.param("agent", True, marks=pytest.mark.long),
        pytest.param("stream", False, marks=pytest.mark.long),
    ],
)
async def test_kill__ends_a_deaf_agent_at_once(whose: str, cancelled: bool, tmp_path: Path) -> None:
    played = tmp_path / "deaf.json"
    script.says("Hello").hangs(deaf=True).save(played)
    with anyio.fail_after(20):
        async with open_agent(command=[sys.executable, "-m", "thinkwell.testing", str(played)]) as agent:
            stream = agent.think().text("Hi").stream()
            assert (await anext(aiter(stream))).type == "message"
            if cancelled:
                stream.cancel()
            with anyio.fail_after(5):  # less than a cancelled turn may take
                (agent if whose == "agent" else stream).kill()
                with pytest.raises(ThoughtCancelled if cancelled else AgentExited):
                    await stream.result
                await stream.wait()
            stream.kill()  # it is over: nothing happens


async def test_kill__closes_the_connection_to_an_agent_that_was_not_started_here() -> None:
    async with scripted(hangs) as agent:
        stream = agent.think().text("Hi").stream()
        assert (await anext(aiter(stream))).type == "message"
        agent.kill()
        await stream.wait()
        assert stream.view.phase == "failed"
        assert stream.result.exception() is not None


def test_kill__ends_a_replay(tmp_path: Path) -> None:
    async def record() -> None:
        async with scripted(speaks, record=tmp_path / "r.ndjson") as agent:
            await agent.think().text("Hi").run()

    anyio.run(record)
    stream = replay(tmp_path / "r.ndjson", speed=0)
    stream.kill()
    assert stream.view.text == "Hello"


# Readers that take what is there at once


async def test_batch__takes_all_that_is_there_and_ends_with_nothing() -> None:
    async def talks(turn: Turn) -> None:
        for number in range(5):
            turn.say(f"{number}")
            turn.think("hm")

    async with scripted(talks) as agent:
        stream = agent.think().text("Hi").stream()
        await stream.wait()
        reader = stream._log.reader()
        assert [event.seq for event in await reader.batch()] == list(range(1, 11))
        assert await reader.batch() == await reader.batch() == []
        thoughts = stream._log.reader(frozenset({"thought"}))
        assert [event.seq for event in await thoughts.batch()] == [2, 4, 6, 8, 10]
        assert await thoughts.batch() == []
