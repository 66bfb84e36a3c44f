"""How a listen ends: by its result, by an error, by a handler that fails, by its caller, by its time."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import pytest
from asking import permission
from listen.line_programs import hears, listened, message, program
from listen.talkers import SOON
from pydantic import BaseModel, computed_field
from scripted import Turn, scripted

from thinkwell import (
    AgentReported,
    ResultRefused,
    ThoughtCancelled,
    ThoughtTimeout,
    replay,
)
from thinkwell import events as ev
from thinkwell.listen import (
    AgentApproval,
    AgentFailure,
    AgentProgress,
    AgentQuestion,
    AgentResult,
    Handlers,
    listen,
)
from thinkwell.testing import ScriptedAgent, script, virtual_backend
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from pathlib import Path

    from lines.program import Program
    from listen.line_programs import Play

    from thinkwell import ThoughtStream

pytestmark = pytest.mark.anyio

VIRTUAL = pytest.mark.parametrize(
    "anyio_backend", [virtual_backend("asyncio"), virtual_backend("trio")], ids=["asyncio", "trio"]
)
"""Time that passes when nothing else can."""


class Quit(BaseException):
    """The process is to end."""


async def asks_and_waits(program: Program) -> None:
    """Report, ask, and never end."""
    await program.writes(
        message("progress", message="one"),
        message("progress", message="two"),
        message("question", question="?"),
    )
    await anyio.sleep_forever()


def slowly(seconds: float, type_: str = "progress", field: str = "message") -> tuple[Handlers, list[object]]:
    """Return handlers that take so long for each message of a type, and the texts that they have handled."""
    handlers = Handlers()
    seen: list[object] = []

    @handlers.on(type_)
    async def note(fields: dict[str, Any]) -> None:
        await anyio.sleep(seconds)
        seen.append(fields[field])

    return handlers, seen


def says(*words: str) -> Play:
    """Return a program that reports these at once."""

    async def play(program: Program) -> None:
        await program.writes(*(message("progress", message=word) for word in words))

    return play


def errors(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.levelno >= logging.ERROR]


# The end of the run


@VIRTUAL
async def test_everything_before_the_result_is_handled_first() -> None:
    handlers, seen = slowly(1)

    @handlers.on("result")
    async def end(result: AgentResult) -> str:
        seen.append(result)
        return "which is ignored"

    assert await listened(says("a", "b", "c"), handlers) == "Done"
    assert seen == ["a", "b", "c", AgentResult(text="Done")]


async def test_all_fields_of_a_line_are_the_result() -> None:
    handlers = Handlers()
    seen: list[dict[str, Any]] = []
    handlers.on("result")(seen.append)

    async def play(program: Program) -> None:
        await program.say("result", text="Fine", files=12)

    assert await listened(play, handlers) == "Fine"
    assert seen == [{"text": "Fine", "files": 12}]


class Report(BaseModel):
    summary: str
    files: int = 0


async def test_results_over_acp() -> None:
    seen: list[dict[str, Any]] = []
    handlers = Handlers()
    handlers.on("result")(seen.append)
    played = ScriptedAgent(
        script.returns({"summary": "Fine"}).stops().returns(3).stops().returns(["a"]).stops().says("Fine")
    )
    async with played.open() as agent:
        with anyio.fail_after(SOON):
            assert await agent.think(Report).text("Go").listen(handlers) == Report(summary="Fine")
            assert await agent.think(int).text("Go").listen(handlers) == 3
            assert await agent.think(list[str]).text("Go").listen(handlers) == ["a"]
            assert await agent.think(str).text("Go").listen(handlers) == "Fine"
    assert seen == [{"summary": "Fine", "files": 0}, {"result": 3}, {"result": ["a"]}, {"text": "Fine"}]


@pytest.mark.parametrize(
    ("fields", "code"),
    [({"code": 7, "disk": "sda"}, 7), ({"code": "E42", "hint": "make room"}, None), ({}, None)],
)
async def test_an_error_in_lines_keeps_all_its_fields(fields: dict[str, Any], code: int | None) -> None:
    whole, typed = Handlers(), Handlers()
    seen: list[object] = []
    whole.on("error")(seen.append)

    @typed.on("error")
    async def failed(failure: AgentFailure) -> None:
        seen.append(failure)

    async def play(program: Program) -> None:
        await program.say("error", message="No disk", **fields)

    for handlers in (whole, typed):
        with pytest.raises(AgentReported, match="No disk"):
            await listened(play, handlers)
    assert seen == [{"message": "No disk", **fields}, AgentFailure(message="No disk", code=code)]


async def test_an_error_over_acp_has_its_data() -> None:
    seen: list[dict[str, Any]] = []
    handlers = Handlers()
    handlers.on("error")(seen.append)
    failing = script.fails(code=7, message="No disk", data={"disk": "sda"}).fails(code=8, message="No memory")
    async with ScriptedAgent(failing).open() as agent:
        for _ in range(2):
            with anyio.fail_after(SOON), pytest.raises(AgentReported):
                await agent.think().text("Go").listen(handlers)
    assert seen == [
        {"message": "No disk", "code": 7, "data": {"disk": "sda"}},
        {"message": "No memory", "code": 8},
    ]


async def test_other_failures_are_no_messages() -> None:
    handlers = Handlers()

    @handlers.on("error")
    @handlers.on("result")
    async def never(failure: object) -> None:
        raise AssertionError(failure)

    played = ScriptedAgent(script.says("No.").stops("refusal"))
    async with played.open() as agent:
        with anyio.fail_after(SOON), pytest.raises(ResultRefused):
            await agent.think().text("Go").listen(handlers)


async def test_a_run_that_is_over_is_heard_as_far_as_it_is_kept() -> None:
    handlers, seen = slowly(0)
    async with program(says("one")) as agent:
        with anyio.fail_after(SOON):
            stream = agent.think().text("Go").stream(include={"report"})
            await stream.wait()
            assert await listen(stream, handlers) == "Done"
    assert seen == ["one"]


# A handler that fails


async def failure(
    handlers: Handlers, caplog: pytest.LogCaptureFixture, **options: Any
) -> tuple[BaseException, ThoughtStream[str]]:
    """Return why a listen fails whose agent never ends."""
    stream: ThoughtStream[str] | None = None
    async with program(asks_and_waits, **options) as agent:
        stream = agent.think().text("Go").stream(include="all")
        with anyio.fail_after(SOON):
            with pytest.raises(BaseException) as failed:  # noqa: PT011 - whatever it is
                await listen(stream, handlers)
            with pytest.raises(ThoughtCancelled):
                await stream.result
    assert not errors(caplog)
    return failed.value, stream


@pytest.mark.parametrize("error", [KeyError("disk"), ExceptionGroup("all", [ValueError("x")]), Quit()])
@pytest.mark.parametrize("type_", ["progress", "question"])
async def test_the_very_error_of_a_handler_is_raised(
    type_: str, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    handlers = Handlers()
    cancelled: list[str] = []

    @handlers.on(type_)
    async def fail(fields: object) -> None:
        raise error

    @handlers.on("question" if type_ == "progress" else "progress", concurrency=1)
    async def other(fields: object) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.append("other")

    failed, stream = await failure(handlers, caplog)
    assert failed is error
    assert stream.view.phase == "cancelled"
    assert cancelled in ([], ["other"])


async def test_a_handler_that_fails_while_another_has_failed_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    handlers = Handlers()

    @handlers.on("progress", concurrency=1)
    async def second(fields: object) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            raise LookupError("second")

    @handlers.on("question")
    async def first(fields: object) -> None:
        await anyio.wait_all_tasks_blocked()
        raise KeyError("first")

    with pytest.raises(KeyError, match="first"):
        await listened(asks_and_waits, handlers)
    (record,) = errors(caplog)
    assert "has failed while it was ended" in record.message
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], LookupError)


@pytest.mark.parametrize("in_thread", [False, True])
async def test_a_failure_after_the_end_is_raised_too(in_thread: bool) -> None:
    def fail(fields: object) -> None:
        raise KeyError("late")

    async def fail_later(fields: object) -> None:
        fail(fields)

    handlers = Handlers()
    handlers.on("result")(fail if in_thread else fail_later)
    async with program(says()) as agent:
        with anyio.fail_after(SOON):
            stream = agent.think().text("Go").stream()
            with pytest.raises(KeyError, match="late"):
                await listen(stream, handlers)
            assert await stream.result == "Done"


async def test_a_handler_that_was_cancelled_by_itself_has_failed(anyio_backend_name: str) -> None:
    if anyio_backend_name == "trio":
        return  # nothing can be cancelled there without a scope that is left
    handlers = Handlers()

    @handlers.on("progress")
    async def wait(fields: object) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future.cancel()
        await future

    with pytest.raises(RuntimeError, match=r"wait\(\).* was cancelled") as failed:
        await listened(asks_and_waits, handlers)
    assert isinstance(failed.value.__cause__, asyncio.CancelledError)


async def test_scopes_of_a_handler_are_its_own() -> None:
    handlers = Handlers()
    seen: list[str] = []

    @handlers.on("progress")
    async def note(progress: AgentProgress) -> None:
        with anyio.move_on_after(0):
            await anyio.sleep_forever()
        with anyio.CancelScope() as scope:
            scope.cancel()
            await anyio.sleep_forever()
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.sleep_forever)
            group.cancel_scope.cancel()
        seen.append(progress.message)

    assert await listened(says("a", "b"), handlers) == "Done"
    assert seen == ["a", "b"]


# A caller who is cancelled


@pytest.mark.parametrize("way", ["sleep", "group", "nursery"])
async def test_a_caller_who_is_cancelled_cancels_the_run(
    way: str, anyio_backend_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    handlers = Handlers()
    began, ended = anyio.Event(), anyio.Event()
    told: list[s.RequestPermissionResponse] = []

    async def forever() -> None:
        if way == "nursery" and anyio_backend_name == "trio":
            import trio

            async with trio.open_nursery() as nursery:
                nursery.start_soon(trio.sleep_forever)
                nursery.start_soon(trio.sleep_forever)
        else:
            async with anyio.create_task_group() as group:
                group.start_soon(anyio.sleep_forever)

    @handlers.on("approval")
    async def approve(approval: AgentApproval) -> bool:
        began.set()
        try:
            await (anyio.sleep_forever() if way == "sleep" else forever())
        finally:
            ended.set()
        return True

    async def play(turn: Turn) -> None:
        with anyio.CancelScope(shield=True):
            told.append(await turn.client.request_permission(permission(turn.session_id)))

    async with scripted(play) as agent:
        stream = agent.think().text("Go").stream()
        with anyio.fail_after(SOON), anyio.CancelScope() as caller:
            async with anyio.create_task_group() as group:

                async def cancel() -> None:
                    await began.wait()
                    caller.cancel()

                group.start_soon(cancel)
                await listen(stream, handlers)
        assert caller.cancelled_caught
        assert ended.is_set()
        assert stream.view.phase == "cancelled"
    assert isinstance(told[0].outcome, s.CancelledPermissionOutcome)
    assert not errors(caplog)


async def test_the_run_is_cancelled_before_the_handlers_have_ended() -> None:
    handlers = Handlers()
    cancelled = anyio.Event()

    @handlers.on("progress")
    async def slow(progress: AgentProgress) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await cancelled.wait()

    async def play(turn: Turn) -> None:
        turn.update(s.ToolCallStart(tool_call_id="t1", title="Read"))
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()

    async with scripted(play) as agent:
        with anyio.move_on_after(0.1), anyio.fail_after(SOON):
            await agent.think().text("Go").listen(handlers)
    assert cancelled.is_set()


async def test_a_caller_who_was_cancelled_before(caplog: pytest.LogCaptureFixture) -> None:
    async with program(asks_and_waits) as agent:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await agent.think().text("Go").listen(Handlers())
    assert scope.cancelled_caught
    assert not errors(caplog)


# Time


@VIRTUAL
async def test_the_timeout_covers_the_run() -> None:
    handlers = Handlers()
    cancelled: list[float] = []

    @handlers.on("question", timeout=None)
    async def answer(question: AgentQuestion) -> str:
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.append(anyio.current_time())
        return "never"

    async with program(asks_and_waits) as agent:
        began = anyio.current_time()
        stream = agent.think().text("Go").stream()
        with pytest.raises(ThoughtTimeout) as failed:
            await listen(stream, handlers, timeout=30)
        with pytest.raises(ThoughtTimeout):  # it was not just cancelled
            await stream.result
    assert (failed.value.seconds, failed.value.idle) == (30, False)
    assert [time - began for time in cancelled] == pytest.approx([30], abs=0.1)


@VIRTUAL
@pytest.mark.parametrize("started", [False, True])
async def test_the_timeout_covers_the_handlers(started: bool) -> None:
    handlers, seen = slowly(20)
    async with program(says("a", "b")) as agent:
        task = agent.think().text("Go")
        listening = (
            listen(task.stream(), handlers, timeout=30) if started else task.listen(handlers, timeout=30)
        )
        with pytest.raises(ThoughtTimeout) as failed:
            await listening
    assert failed.value.seconds == 30
    assert seen == ["a"]


@VIRTUAL
async def test_the_timeout_of_the_stream_ends_its_handlers() -> None:
    handlers, seen = slowly(20)
    async with program(asks_and_waits) as agent:
        stream = agent.think().text("Go").stream(timeout=30)
        with pytest.raises(ThoughtTimeout) as failed:
            await listen(stream, handlers, timeout=3600)
    assert failed.value.seconds == 30
    assert seen == ["one"]


@VIRTUAL
async def test_after_silence_the_handlers_run_to_their_end() -> None:
    handlers, seen = slowly(20)
    async with program(asks_and_waits) as agent:
        with pytest.raises(ThoughtTimeout) as failed:
            await agent.think().text("Go").listen(handlers, idle_timeout=10)
    assert failed.value.idle
    assert seen == ["one", "two"]


@pytest.mark.parametrize("seconds", [0, -1, "1"])
async def test_timeouts_are_checked(seconds: Any) -> None:
    async with program(asks_and_waits) as agent:
        stream = agent.think().text("Go").stream()
        with pytest.raises((TypeError, ValueError), match="timeout"):
            await listen(stream, Handlers(), timeout=seconds)
        stream.cancel()


@VIRTUAL
async def test_a_message_whose_handler_takes_too_long_is_dropped(caplog: pytest.LogCaptureFixture) -> None:
    handlers = Handlers()
    seen: list[str] = []

    @handlers.on("progress", timeout=5)
    async def slow(progress: AgentProgress) -> str:
        await anyio.sleep(10 if progress.message == "a" else 4)
        seen.append(progress.message)
        return progress.message

    async def play(program: Program) -> None:
        await program.writes(*(message("progress", message=letter) for letter in "abc"))
        assert [await program.value() for _ in range(2)] == ["b", "c"]

    async with program(play) as agent:
        began = anyio.current_time()
        await agent.think().text("Go").listen(handlers)
        assert anyio.current_time() - began == pytest.approx(13, abs=0.1)
    assert seen == ["b", "c"]
    (record,) = [record for record in caplog.records if "took longer than 5 seconds" in record.message]
    assert "slow()" in record.message


async def test_a_thread_that_takes_too_long_is_not_waited_for() -> None:
    handlers = Handlers()
    over, ended = threading.Event(), threading.Event()

    @handlers.on("approval", timeout=0.05)
    def never(fields: object) -> bool:
        over.wait(30)
        ended.set()
        return True

    async def play(program: Program) -> None:
        assert await program.ask("approval", description="Write") is False

    assert await listened(play, handlers) == "Done"
    assert not ended.is_set()
    over.set()
    await anyio.to_thread.run_sync(ended.wait)


@VIRTUAL
async def test_a_handler_has_its_time_from_when_it_begins() -> None:
    handlers = Handlers()
    asked: list[str] = []

    @handlers.on("question", timeout=10)
    async def answer(question: AgentQuestion) -> str:
        asked.append(question.question)
        await anyio.sleep(9)
        return "yes"

    async def play(program: Program) -> None:
        await program.writes(*(message("question", question=f"{number}") for number in range(4)))
        assert [await program.value() for _ in range(4)] == ["yes"] * 4

    async with program(play) as agent:
        await agent.think().text("Go").listen(handlers)
    assert asked == ["0", "1", "2", "3"]


# Questions that are over before their handler is


@VIRTUAL
async def test_the_handler_of_a_question_that_is_answered_elsewhere_is_cancelled() -> None:
    handlers = Handlers()
    seen: list[str] = []

    @handlers.on("approval")
    async def think(approval: AgentApproval) -> bool:
        seen.append(approval.description)
        try:
            await anyio.sleep(60)
        except anyio.get_cancelled_exc_class():
            seen.append("cancelled")
            raise
        return True

    played = ScriptedAgent(script.asks("May I?", expect="reject_once").says("Done"))
    async with played.open(permissions="ask") as agent:
        stream = agent.think().text("Go").stream(include="all")

        async def person() -> None:
            async for event in stream:
                if isinstance(event, ev.QuestionAsked):
                    await anyio.sleep(1)
                    stream.answer(event.id, False)

        async with anyio.create_task_group() as group:
            group.start_soon(person)
            assert await listen(stream, handlers) == "Done"
    assert seen == ["May I?", "cancelled"]


@VIRTUAL
async def test_a_question_that_is_over_before_its_turn_is_never_asked() -> None:
    handlers = Handlers()
    seen: list[str] = []

    @handlers.on("question", timeout=None)
    async def think(question: AgentQuestion) -> str:
        seen.append(question.question)
        await anyio.sleep(50)
        return "yes"

    async def play(program: Program) -> None:
        await program.writes(*(message("question", question=f"{number}", id=number) for number in range(3)))
        told = [await program.response() for _ in range(3)]
        assert {response["id"]: response["value"] for response in told} == {0: "yes", 1: None, 2: None}

    async with program(play, question_timeout=60) as agent:
        assert await agent.think().text("Go").listen(handlers) == "Done"
    assert seen == ["0", "1"]


@VIRTUAL
async def test_questions_that_are_open_at_the_end_are_not_asked_any_more() -> None:
    handlers = Handlers()
    seen: list[str] = []

    @handlers.on("question")
    async def think(question: AgentQuestion) -> str:
        seen.append(question.question)
        await anyio.sleep_forever()
        return "never"

    async def play(program: Program) -> None:
        await program.writes(message("question", question="one"), message("question", question="two"))
        await anyio.sleep(1)

    async with program(play) as agent:
        began = anyio.current_time()
        assert await agent.think().text("Go").listen(handlers) == "Done"
        assert anyio.current_time() - began == pytest.approx(1, abs=0.1)
    assert seen == ["one"]


# A recording


async def test_the_handlers_of_a_recording_hear_what_was_said(tmp_path: Path) -> None:
    handlers = Handlers()
    seen: list[object] = []
    path = tmp_path / "run.jsonl"

    @handlers.on("progress")
    async def note(progress: AgentProgress) -> str:
        seen.append(progress.message)
        return "nobody hears that"

    @handlers.on("result")
    async def end(result: AgentResult) -> None:
        seen.append(result.text)

    @handlers.on("question")
    async def never(question: AgentQuestion) -> str:
        seen.append("asked")
        return "yes"

    async def play(program: Program) -> None:
        await program.say("progress", message="one")
        await program.hear()
        assert await program.ask("question", question="?") == "yes"
        await program.say("log", message="two")
        await program.say("partial", text="Done")

    await listened(play, handlers, record=path)
    assert seen == ["one", "asked", "Done"]
    seen.clear()
    with anyio.fail_after(SOON):
        assert await listen(replay(path, include="all"), handlers) == "Done"
    assert seen == ["one", "Done"]


@VIRTUAL
async def test_a_recording_is_left_where_a_handler_fails(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    played = ScriptedAgent(script.uses("Read").pauses(60).says("Done"))
    async with played.open(record=path) as agent:
        await agent.think().text("Go").run()
    handlers = Handlers()

    @handlers.on("progress")
    async def fail(progress: AgentProgress) -> None:
        raise KeyError("disk")

    with anyio.fail_after(SOON), pytest.raises(KeyError, match="disk"):
        await listen(replay(path, speed=1), handlers)


@VIRTUAL
async def test_a_recording_may_take_too_long(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    played = ScriptedAgent(script.says("One").pauses(60).says("Done"))
    async with played.open(record=path) as agent:
        await agent.think().text("Go").run()
    stream = replay(path, speed=1)
    with pytest.raises(ThoughtTimeout):
        await listen(stream, Handlers(), timeout=10)
    assert stream.view.phase == "cancelled"


# After the result

DONE = script.returns({"summary": "Done"})


async def test_what_the_agent_says_after_the_result_is_handled() -> None:
    handlers, heard = slowly(0, "partial", "text")
    async with ScriptedAgent(DONE.says("That was all.")).open() as agent:
        with anyio.fail_after(SOON):
            report = await agent.think(Report).text("Go").listen(handlers)
    assert report.summary == "Done"
    assert heard == ["That was all."]


@VIRTUAL
async def test_the_rest_of_a_turn_delays_its_result_by_ten_seconds_at_most() -> None:
    async with ScriptedAgent(DONE.hangs()).open() as agent:
        begun = anyio.current_time()

        report = await agent.think(Report).text("Go").listen(Handlers(), timeout=600)

        assert report.summary == "Done"
        assert 10 <= anyio.current_time() - begun < 11


@VIRTUAL
async def test_a_question_after_the_listener_has_left_is_declined() -> None:
    handlers = Handlers()

    @handlers.on("approval")
    async def decide(approval: object) -> bool:
        raise AssertionError(approval)

    late = DONE.pauses(20).asks("Delete it", expect="reject_once")
    async with ScriptedAgent(late).open() as agent:
        stream = agent.think(Report).text("Go")
        assert (await stream.listen(handlers)).summary == "Done"
        await anyio.sleep(60)


@VIRTUAL
async def test_a_question_that_is_open_when_the_listener_leaves_goes_to_the_next_handler() -> None:
    handlers = Handlers()

    @handlers.on("approval", timeout=None)
    async def never(approval: object) -> None:
        await anyio.sleep_forever()

    async def allow(question: object) -> bool:
        return True

    async with ScriptedAgent(DONE.asks("Delete it", expect="allow_once")).open(
        permissions="ask", on_question=allow
    ) as agent:
        report = await agent.think(Report).text("Go").listen(handlers, timeout=600)
        assert report.summary == "Done"
        await anyio.sleep(1)


class Broken(BaseModel):
    score: int

    @computed_field
    def worth(self) -> int:
        raise KeyError("no price")


async def test_a_result_without_a_form_in_json_is_an_error_only_where_it_has_a_handler() -> None:
    handlers = Handlers()
    handlers.on("result")(hears)
    returning = script.returns({"score": 1}).stops().returns({"score": 2})
    async with ScriptedAgent(returning).open() as agent:
        task = agent.think(Broken).text("Go")
        with anyio.fail_after(SOON):
            with pytest.raises(TypeError, match="the agent returned what cannot be written as JSON"):
                await task.listen(handlers)
            assert (await task.listen(Handlers())).score == 2


@VIRTUAL
async def test_an_agent_that_goes_on_talking_does_not_hold_its_listener() -> None:
    handlers, heard = slowly(1, "partial", "text")
    talking = DONE
    for number in range(100):
        talking = talking.pauses(0.5).says(f"{number}")
    async with ScriptedAgent(talking).open() as agent:
        begun = anyio.current_time()
        await agent.think(Report).text("Go").listen(handlers)
        assert anyio.current_time() - begun < 30
        assert 10 <= len(heard) <= 20


async def test_a_handler_that_fails_after_its_question_has_ended_is_logged_and_the_result_returned(
    caplog: pytest.LogCaptureFixture,
) -> None:
    handlers = Handlers()
    begun = anyio.Event()

    @handlers.on("question")
    async def fails(question: object) -> str:
        begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            raise LookupError("while cleaning up")

    async def play(program: Program) -> None:
        await program.say("question", question="Which?")
        await begun.wait()
        await program.say("result", text="Done")

    assert await listened(play, handlers) == "Done"
    assert "has failed over a question that had ended" in caplog.text
