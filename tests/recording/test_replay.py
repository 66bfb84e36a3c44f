"""A recorded run comes again: the same events at the same times, the same result."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

import anyio
import pytest
from limits.virtual import Backend, virtual_backend
from pydantic import BaseModel
from scripted import Turn, scripted

from thinkwell import (
    Buffer,
    BufferOverflow,
    JsonSchema,
    LoginRequired,
    QuestionNotOpen,
    RecordedFailure,
    RecordingCut,
    RecordingError,
    ResultInvalid,
    ResultMissing,
    RunEnded,
    ThoughtCancelled,
    ThoughtStream,
    replay,
    wait_for_answer,
)
from thinkwell import events as ev
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> Backend:
    return virtual_backend(request.param)


class Review(BaseModel):
    verdict: str
    lines: list[int] = []


async def review(turn: Turn) -> None:
    """Think, ask, use a tool, return the result, and say something after it."""
    turn.think("Let me ")
    turn.think("see.")
    await anyio.sleep(2)
    call = s.ToolCallUpdate(tool_call_id="t", title="Run the tests")
    options = (s.PermissionOption(option_id="y", name="Yes", kind="allow_once"),)
    question = s.RequestPermissionRequest(session_id=turn.session_id, tool_call=call, options=options)
    await turn.client.request_permission(question)
    turn.update(s.ToolCallStart(tool_call_id="t", title="Run the tests", kind="execute"))
    await anyio.sleep(3)
    turn.update(s.ToolCallProgress(tool_call_id="t", status="completed"))
    await turn.returns(verdict=5)
    await turn.returns(verdict="good", lines=[1, 2])
    await anyio.sleep(1)
    turn.say("Done.")


async def recorded(
    path: Path,
    script: Callable[[Turn], Awaitable[str | None]],
    output: type[object] | None = Review,
    **options: Any,
) -> ThoughtStream[Any]:
    """Record a run that is awaited to its end."""
    async with scripted(script, record=path, permissions="ask", on_question=allow) as agent:
        stream = agent.think(output).text("Review it.").stream(**options)
        await stream.wait()
        stream.result.exception()
    return cast("ThoughtStream[Any]", stream)


async def allow(_question: object) -> str:
    await anyio.sleep(1)
    return "allow"


async def events_of(stream: ThoughtStream[Any]) -> list[ev.ThoughtEvent]:
    return [event async for event in stream]


async def test_events_and_result_are_the_same(tmp_path: Path) -> None:
    original = await recorded(tmp_path / "r.ndjson", review)

    again = replay(tmp_path / "r.ndjson", Review, speed=0)

    assert await events_of(again) == await events_of(original)
    assert await again.result == await original.result == Review(verdict="good", lines=[1, 2])
    assert again.view == original.view
    assert (again.id, again.session_id) == (original.id, original.session_id)


async def test_with_every_kind_of_event(tmp_path: Path) -> None:
    original = await recorded(tmp_path / "r.ndjson", review, include="all")

    again = replay(tmp_path / "r.ndjson", speed=0)

    kinds = {event.type for event in await events_of(original)}
    assert {"question", "answer", "verdict", "result_attempt", "phase", "turn_start", "tools_seen"} <= kinds
    assert await events_of(again) == await events_of(original)
    assert await again.result == {"verdict": "good", "lines": [1, 2]}


async def test_more_kinds_than_were_kept(tmp_path: Path) -> None:
    original = await recorded(tmp_path / "r.ndjson", review, include="all")
    await recorded(tmp_path / "few.ndjson", review, include={"message"})

    again = replay(tmp_path / "few.ndjson", speed=0, include="all")

    assert [event.type for event in await events_of(again)] == [e.type for e in await events_of(original)]
    fewer = await events_of(replay(tmp_path / "r.ndjson", speed=0, include={"thought"}))
    assert [(event.seq, event.type) for event in fewer] == [(1, "thought"), (2, "thought")]


async def test_at_the_speed_of_the_run(tmp_path: Path) -> None:
    original = await recorded(tmp_path / "r.ndjson", review)
    for speed in (1, 2, 0.5):
        began = anyio.current_time()
        again = replay(tmp_path / "r.ndjson", Review, speed=speed)
        seen = [(round(anyio.current_time() - began, 3), event.at) async for event in again]
        assert seen
        assert [at for _, at in seen] == [event.at for event in await events_of(original)]
        for when, at in seen:
            assert when == pytest.approx(at / speed, abs=0.01)
        assert again.result.done()


async def test_the_result_settles_by_itself_and_before_the_end(tmp_path: Path) -> None:
    await recorded(tmp_path / "r.ndjson", review)
    began = anyio.current_time()
    again = replay(tmp_path / "r.ndjson", Review)
    assert not again.result.done()
    await anyio.sleep(1)

    assert (await again.result).verdict == "good"

    assert anyio.current_time() - began == pytest.approx(6, abs=0.05)
    phases: list[str] = [again.view.phase]
    await again.wait()
    assert anyio.current_time() - began == pytest.approx(7, abs=0.05)
    phases.append(again.view.phase)
    assert phases == ["responding", "completed"]
    await again.wait()
    again.cancel()
    assert (await again.result).verdict == "good"
    assert again.view.phase == "completed"


async def test_what_is_looked_at_later_has_happened(tmp_path: Path) -> None:
    await recorded(tmp_path / "r.ndjson", review)
    again = replay(tmp_path / "r.ndjson", Review)
    await anyio.sleep(2.5)
    assert [question.title for question in again.view.questions] == ["Run the tests"]
    with pytest.raises(QuestionNotOpen):
        again.answer(again.view.questions[0].id, "allow")
    await anyio.sleep(60)
    assert again.result.done()
    assert again.view.text == "Done."


async def test_two_readers_and_one_that_comes_late_see_the_same(tmp_path: Path) -> None:
    await recorded(tmp_path / "r.ndjson", review)
    again = replay(tmp_path / "r.ndjson")
    seen: list[list[ev.ThoughtEvent]] = [[], [], []]

    async def read(index: int, delay: float) -> None:
        await anyio.sleep(delay)
        async for event in again:
            seen[index].append(event)

    async with anyio.create_task_group() as tasks:
        for index, delay in enumerate((0, 3, 100)):
            tasks.start_soon(read, index, delay)
    assert seen[0] == seen[1] == seen[2] != []


async def test_cancelling_ends_it_where_it_is(tmp_path: Path) -> None:
    original = await recorded(tmp_path / "r.ndjson", review)
    again = replay(tmp_path / "r.ndjson")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(events_of, again)
        await anyio.sleep(4)
        again.cancel()
        await again.wait()
    before = [event for event in await events_of(original) if event.at < 4]
    assert "tool_start" in {event.type for event in before}
    assert await events_of(again) == before
    with pytest.raises(ThoughtCancelled):
        await again.result
    assert isinstance(again.view.error, ThoughtCancelled)
    await anyio.sleep(100)
    assert await events_of(again) == before


async def test_cancelling_between_the_result_and_the_end_keeps_the_result(tmp_path: Path) -> None:
    await recorded(tmp_path / "r.ndjson", review)
    again = replay(tmp_path / "r.ndjson", Review)
    await again.result
    again.cancel()
    assert (await again.result).verdict == "good"
    assert isinstance(again.view.error, ThoughtCancelled)


async def test_a_replayed_run_cannot_be_told_anything(tmp_path: Path) -> None:
    await recorded(tmp_path / "r.ndjson", review)
    again = replay(tmp_path / "r.ndjson")
    with pytest.raises(RunEnded):
        await again.steer("Also check auth", otherwise="queue")
    again.cancel()


async def test_a_full_buffer_fails_the_replay(tmp_path: Path) -> None:
    await recorded(tmp_path / "r.ndjson", review)
    again = replay(tmp_path / "r.ndjson", speed=0, buffer=Buffer(max_events=2, overflow="error"))
    with pytest.raises(BufferOverflow):
        await again.result


# Results


async def text(turn: Turn) -> None:
    turn.say("Hello.")


async def silent(turn: Turn) -> str:
    return "max_tokens"


@pytest.mark.parametrize("output", [None, str])
async def test_a_text_result(tmp_path: Path, output: Any) -> None:
    await recorded(tmp_path / "r.ndjson", text, output=None)
    assert await replay(tmp_path / "r.ndjson", output, speed=0).result == "Hello."


async def test_the_type_has_to_fit_the_run(tmp_path: Path) -> None:
    await recorded(tmp_path / "text.ndjson", text, output=None)
    await recorded(tmp_path / "value.ndjson", review)
    with pytest.raises(TypeError, match=r"replay\(…, Review\): the result of run-\d+ is a text; leave"):
        replay(tmp_path / "text.ndjson", Review)
    with pytest.raises(TypeError, match=r"replay\(…, str\): the result of run-\d+ is no text; give its type"):
        replay(tmp_path / "value.ndjson", str)


async def test_a_result_under_a_key_of_its_own(tmp_path: Path) -> None:
    async def number(turn: Turn) -> None:
        await turn.returns(result=7)

    await recorded(tmp_path / "r.ndjson", number, output=int)
    assert await replay(tmp_path / "r.ndjson", int, speed=0).result == 7
    assert await replay(tmp_path / "r.ndjson", speed=0).result == 7
    assert await replay(tmp_path / "r.ndjson", JsonSchema({"type": "integer"}), speed=0).result == 7
    again = replay(tmp_path / "r.ndjson", list[str], speed=0)
    with pytest.raises(ResultInvalid) as caught:
        await again.result
    assert caught.value.raw == {"result": 7}


async def test_a_bare_result_that_was_to_have_a_key(tmp_path: Path) -> None:
    async def number(turn: Turn) -> None:
        await turn.returns(value=7)

    await recorded(tmp_path / "r.ndjson", number, output=int)
    assert await replay(tmp_path / "r.ndjson", int, speed=0).result == 7
    assert await replay(tmp_path / "r.ndjson", speed=0).result == {"value": 7}


async def test_a_failed_run_fails_again(tmp_path: Path) -> None:
    original = await recorded(tmp_path / "r.ndjson", silent)
    again = replay(tmp_path / "r.ndjson", speed=0)
    with pytest.raises(ResultMissing) as caught:
        await again.result
    expected = original.result.exception()
    assert isinstance(expected, ResultMissing)
    assert vars(caught.value) == vars(expected)
    assert again.view.error is caught.value


async def test_a_value_that_stays_invalid(tmp_path: Path) -> None:
    async def wrong(turn: Turn) -> None:
        await turn.returns(verdict=[["deep"]])

    await recorded(tmp_path / "r.ndjson", wrong, retries=0)
    again = replay(tmp_path / "r.ndjson", speed=0)
    with pytest.raises(ResultInvalid) as caught:
        await again.result
    assert caught.value.raw == {"verdict": [["deep"]]}
    assert caught.value.attempts == 1
    assert "verdict" in str(caught.value)


async def test_late_events(tmp_path: Path) -> None:
    async def late(turn: Turn) -> None:
        turn.say("In time.")
        turn.agent.client.connection.call("late", {}, lambda _: turn.say("Too late."))

    async with scripted(late, text, record=tmp_path / "r.ndjson") as agent, agent.session() as session:
        first = session.think().text("One").stream()
        await first.wait()
        await anyio.sleep(1)
        second = session.think().text("Two").stream()
        await second.wait()
        assert [event.type for event in first.late] == ["message"]
    for stream in (first, second):
        again = replay(tmp_path / "r.ndjson", run=stream.id, speed=0)
        assert again.late == stream.late
        assert await events_of(again) == await events_of(stream)


# Files


async def test_several_runs(tmp_path: Path) -> None:
    async with scripted(text, record=tmp_path / "r.ndjson") as agent:
        one, two = agent.think().text("1").stream(), agent.think().text("2").stream()
        await one.result
        await two.result
    with pytest.raises(
        RecordingError, match=rf'several runs \({one.id}, {two.id}\): say which, run="{one.id}"'
    ):
        replay(tmp_path / "r.ndjson")
    with pytest.raises(RecordingError, match="it holds no 'run-x', but run-"):
        replay(tmp_path / "r.ndjson", run="run-x")
    for stream in (one, two):
        again = replay(tmp_path / "r.ndjson", run=stream.id, speed=0)
        assert again.session_id == stream.session_id
        assert await again.result == "Hello."


async def test_a_recording_cut_anywhere_replays_to_the_cut_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "r.ndjson"
    original = await recorded(path, review, include="all")
    whole, all_events = path.read_bytes(), await events_of(original)
    seen: set[int] = set()
    ends = {at + near for at in range(len(whole)) if whole[at - 1 : at] == b"\n" for near in (-1, 0, 1)}
    for end in sorted(ends.union(range(0, len(whole), 101)) - {-1, len(whole)}):
        path.write_bytes(whole[:end])
        try:
            again = replay(path, Review, speed=0)
        except RecordingError as exc:
            assert "it is no recording" in str(exc) or "no run was begun in it: " in str(exc)  # noqa: PT017
            continue
        events = await events_of(again)
        if isinstance(again.view.error, RecordingCut):
            assert events.pop().type == "phase"  # it says that it failed
        seen.add(len(events))
        assert events == all_events[: len(events)]
        if b'"type":"run_end"' in whole[: whole.rfind(b"\n", 0, end) + 1] or whole[end : end + 1] == b"":
            assert again.view.error is None
            continue
        error = again.view.error
        if isinstance(error, RecordingCut):
            assert f"{path} is cut: " in str(error)
            assert again.result.exception() in (None, error)
        else:
            assert end >= len(whole) - 200, "only the last line is missing"
    assert seen == set(range(len(all_events) + 1))


async def test_a_cut_after_the_result_keeps_the_result(tmp_path: Path) -> None:
    path = tmp_path / "r.ndjson"
    await recorded(path, review)
    lines = path.read_bytes().splitlines(keepends=True)
    index = next(i for i, line in enumerate(lines) if line.startswith(b'{"type":"result"'))
    path.write_bytes(b"".join(lines[: index + 1]))
    again = replay(path, Review)
    assert (await again.result).verdict == "good"
    await again.wait()
    assert isinstance(again.view.error, RecordingCut)
    assert str(again.view.error).endswith(
        f"is cut: it ends with line {index + 1}. Everything before that was replayed"
    )


async def test_a_broken_line_is_a_cut(tmp_path: Path) -> None:
    path = tmp_path / "r.ndjson"
    await recorded(path, review)
    lines = path.read_bytes().splitlines(keepends=True)
    index = next(i for i, line in enumerate(lines) if b'"tool_start"' in line and b'"event"' in line)
    lines[index] = b'{"type":"event","at":"soon"}\n'
    path.write_bytes(b"".join(lines))
    again = replay(path, speed=0)
    assert [event.type for event in await events_of(again)] == ["thought", "thought"]
    with pytest.raises(RecordingCut, match=f"line {index + 1} cannot be read"):
        await again.result


async def test_lines_of_a_later_version_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "r.ndjson"
    original = await recorded(path, review)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b'{"type":"weather","at":1}\n'.join(lines))
    assert await events_of(replay(path, speed=0)) == await events_of(original)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "it is no recording of thinkwell's"),
        (b"hello\n", "it is no recording of thinkwell's"),
        (b'{"type":"end","at":0}\n', "it is no recording of thinkwell's"),
        (
            b'{"type":"recording","at":0,"version":2,"thinkwell":"9","time":"","agent":"a"}\n',
            "its format has version 2, written by thinkwell 9; this is thinkwell for version 1",
        ),
        (
            b'{"type":"recording","at":0,"version":1,"thinkwell":"9","time":"","agent":"a"}\n{"type":"end","at":1}\n',
            "no run was begun in it",
        ),
    ],
)
async def test_what_is_no_recording(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "r.ndjson"
    path.write_bytes(content)
    with pytest.raises(RecordingError, match=problem) as caught:
        replay(path)
    assert caught.value.path == str(path)
    with pytest.raises(FileNotFoundError):
        replay(tmp_path / "nothing")


@pytest.mark.parametrize("speed", [-1, float("inf"), float("nan")])
async def test_speeds(tmp_path: Path, speed: float) -> None:
    with pytest.raises(ValueError, match=r"replay\(speed=.*\): give a number from 0 on"):
        replay(tmp_path / "r.ndjson", speed=speed)


def test_all_at_once_needs_no_event_loop(tmp_path: Path) -> None:
    path = tmp_path / "r.ndjson"
    anyio.run(recorded, path, text, None)
    assert replay(path, speed=0).view.text == "Hello."
    with pytest.raises(RuntimeError):
        replay(path)


def line(type_: str, **fields: object) -> bytes:
    return json.dumps({"type": type_, "at": 0, **fields}).encode() + b"\n"


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        ({"name": "ValueError", "message": "no"}, "with ValueError: no"),
        (
            {"name": "LoginRequired", "message": "log in", "fields": {"agent": "a", "methods": 5}},
            "with LoginReq",
        ),
        ({"name": "AgentReported", "message": "odd"}, "with AgentReported: odd"),
        ({"name": "annotations", "message": "odd"}, "with annotations: odd"),
        ({"name": "AuthMethod", "message": "odd"}, "with AuthMethod: odd"),
    ],
)
async def test_errors_of_no_known_class(tmp_path: Path, failure: object, text: str) -> None:
    path = tmp_path / "r.ndjson"
    path.write_bytes(
        line("recording", version=1, thinkwell="1", time="", agent="a")
        + line("run", run="r", include=["message"], text=True)
        + line("result", run="r", error=failure)
        + line("run_end", run="r", error=failure)
        + line("end")
    )
    again = replay(path, speed=0)
    with pytest.raises(RecordedFailure, match=text):
        await again.result
    assert again.view.error is again.result.exception()


async def test_a_login_that_is_wanted_is_told_with_its_ways(tmp_path: Path) -> None:
    method: dict[str, object] = {"id": "m", "name": "Browser", "type": "agent", "command": [], "env": {}}
    failure: dict[str, object] = {
        "name": "LoginRequired",
        "message": "",
        "fields": {"agent": "a", "methods": [method]},
    }
    path = tmp_path / "r.ndjson"
    path.write_bytes(
        line("recording", version=1, thinkwell="1", time="", agent="a")
        + line("run", run="r", include=["message"], text=True)
        + line("run_end", run="r", error=failure)
        + line("end")
    )
    again = replay(path, speed=0)
    assert "Browser" in str(again.view.error)
    with pytest.raises(LoginRequired):
        await again.result


async def test_a_run_that_ended_without_a_result(tmp_path: Path) -> None:
    path = tmp_path / "r.ndjson"
    path.write_bytes(
        line("recording", version=1, thinkwell="1", time="", agent="a")
        + line("run", run="r", include=["message"], text=True)
        + line("run_end", run="r")
        + line("end")
    )
    with pytest.raises(RecordingCut, match="its run has no result"):
        await replay(path).result


async def test_a_question_that_stays_open_is_cancelled_as_it_was(tmp_path: Path) -> None:
    async with scripted(
        review, record=tmp_path / "r.ndjson", permissions="ask", on_question=wait_for_answer
    ) as agent:
        stream = agent.think(Review).text("x").stream(include="all")
        await anyio.sleep(10)
        stream.cancel()
        await stream.wait()
    again = replay(tmp_path / "r.ndjson", speed=0)
    assert await events_of(again) == await events_of(stream)
    with pytest.raises(ThoughtCancelled):
        await again.result
    assert again.view == stream.view or repr(again.view.error) == repr(stream.view.error)
