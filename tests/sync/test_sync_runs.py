"""Runs of the blocking API."""

from __future__ import annotations

import gc
import sys
import threading
import time
import traceback
import warnings
from contextlib import nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from sync.playing import playing, program

from thinkwell import (
    AgentClosed,
    AgentNotFound,
    AgentReported,
    Injected,
    JsonSchema,
    Message,
    Queued,
    RecordingError,
    ResultMissing,
    Retry,
    ThoughtCancelled,
    ThoughtTimeout,
    events,
)
from thinkwell.agents import AgentProfile, Program
from thinkwell.errors import QuestionNotOpen
from thinkwell.listen import Handlers
from thinkwell.sync import ThoughtStream, open_agent, replay
from thinkwell.testing import script

HERE = Path(__file__)


@dataclass
class Review:
    score: int


class Gate:
    """A tool that returns when it is opened."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.open = threading.Event()

    def gate(self) -> str:
        """Wait."""
        self.reached.set()
        assert self.open.wait(30)
        return "open"


def texts(stream: ThoughtStream[Any]) -> list[str]:
    return [event.text for event in stream if isinstance(event, Message)]


def test_a_typed_result_in_one_line() -> None:
    with playing(script.returns({"score": 7})) as agent:
        assert agent.think(Review).text("Go.").run() == Review(7)


def test_events_and_then_the_result() -> None:
    with playing(script.says("Let me ").says("see.").returns({"score": 7})) as agent:
        stream = agent.think(Review).text("Go.").stream()
        assert "".join(texts(stream)) == "Let me see."
        assert stream.result() == stream.result() == Review(7)
        assert stream.view.text == "Let me see."
        assert stream.elapsed > 0
        assert stream.exception() is None
        assert stream.session_id
        assert "completed" in repr(stream)


def test_each_loop_sees_all_events_and_a_break_loses_none() -> None:
    with playing(script.says("a").thinks("b").says("c")) as agent:
        stream = agent.think().text("Go.").stream()
        for _ in stream:
            break
        first = list(stream)
        assert [event.type for event in first] == ["message", "thought", "message"]
        assert list(stream) == first
        assert list(stream.events(after=first[0].seq)) == first[1:]
        assert [event.type for event in stream.events(include={"thought"})] == ["thought"]
        unfinished = iter(stream)
        assert next(unfinished) == first[0]
    # What was there stays there, without a loop that runs.
    assert list(unfinished) == first[1:]
    assert list(stream) == first
    assert list(stream.events(include={"thought"})) == first[1:2]
    assert (stream.result(), stream.view.text, stream.done()) == ("c", "ac", True)
    stream.wait()


def test_an_iterator_of_no_such_kind() -> None:
    with playing(script.says("a")) as agent:
        stream = agent.think().text("Go.").stream()
        with pytest.raises(ValueError, match="nonsense"):
            stream.events(include={"nonsense"})  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        stream.wait()


def test_a_result_that_is_not_there_in_time() -> None:
    gate = Gate()
    with playing(script.calls("gate").says("Done.")) as agent:
        stream = agent.think().text("Go.").tool(gate.gate).stream()
        with pytest.raises(TimeoutError, match=r"run-\d+ has no result after 0.01 seconds; it continues"):
            stream.result(timeout=0.01)
        with pytest.raises(TimeoutError, match="is not over after 0 seconds"):
            stream.wait(timeout=0)
        assert gate.reached.wait(30)
        assert not stream.done()
        assert stream.exception() is None
        gate.open.set()
        assert stream.result(timeout=30) == "Done."


def test_a_run_that_is_limited_in_time_raises_what_it_does_in_the_other_api() -> None:
    with playing(script.hangs()) as agent, pytest.raises(ThoughtTimeout):
        agent.think().text("Go.").run(timeout=0.05)


def test_a_run_that_is_cancelled() -> None:
    with playing(script.says("a").hangs()) as agent:
        with agent.think().text("Go.").stream() as stream:
            assert isinstance(next(iter(stream)), Message)
        assert isinstance(stream.exception(), ThoughtCancelled)
        assert stream.view.phase == "cancelled"
        assert stream.late == ()


def test_cancelling_from_within_a_loop_over_the_events() -> None:
    with playing(script.says("a").hangs()) as agent:
        stream = agent.think().text("Go.").stream()
        assert len(agent.statistics().runs) == 1
        for _ in stream:
            stream.cancel()
        with pytest.raises(ThoughtCancelled):
            stream.result()


def test_what_a_run_is_told_is_queued_behind_it() -> None:
    gate = Gate()
    told = script.expects("A").calls("gate").says("one").stops() + script.expects("B").says("two")
    with playing(told) as agent:
        stream = agent.think().text("A").tool(gate.gate).stream()
        queued = stream.steer("B", otherwise="queue")
        gate.open.set()
        assert isinstance(queued, Queued)
        assert (stream.result(), queued.stream.result()) == ("one", "two")


def test_what_a_run_is_told_interrupts_it() -> None:
    told = script.says("Looking.").hangs().stops("cancelled") + script.expects("auth only").says("Fine.")
    with playing(told) as agent:
        stream = agent.think().text("Review").stream()
        next(iter(stream))
        assert stream.steer("auth only", otherwise="interrupt") == Injected(interrupted=True)
        assert stream.result() == "Fine."


def test_leaving_the_agent_cancels_its_runs() -> None:
    with playing(script.says("a").hangs()) as agent:
        stream = agent.think().text("Go.").stream()
        assert isinstance(next(iter(stream)), Message)
    with pytest.raises(AgentClosed):
        stream.result()
    with pytest.raises(AgentClosed):
        agent.think().text("Go.").stream()
    with pytest.raises(AgentClosed):
        agent.list_sessions()
    agent.close()


def test_an_agent_without_a_block() -> None:
    opener = playing(script.says("a"))
    agent = opener.start()
    again = opener.start()
    assert agent.think().text("Go.").run() == again.think().text("Go.").run() == "a"
    agent.close()
    agent.close()
    again.close()


def test_an_agent_that_is_never_closed() -> None:
    agent = playing(script.says("a")).start()
    stream = agent.think().text("Go.").stream()
    del agent  # the stream can still be used
    assert stream.result() == "a"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del stream
        gc.collect()
    assert [str(warning.message) for warning in caught] == ["<Agent thinkwell.testing> was never closed"]


def test_tools_of_both_colours_see_the_callers_context() -> None:
    who: ContextVar[str] = ContextVar("who", default="nobody")
    heard: list[str] = []

    def plain() -> None:
        """Say who is here, in a thread."""
        heard.append(who.get())

    async def asynchronous() -> None:
        """Say who is here, in the loop."""
        await anyio.lowlevel.checkpoint()
        heard.append(who.get())

    with playing(script.calls("plain").calls("asynchronous").says("Done.")) as agent:
        token = who.set("Ann")
        stream = agent.think().text("Go.").tool(plain).tool(asynchronous).stream()
        who.reset(token)
        assert stream.result() == "Done."
    assert heard == ["Ann", "Ann"]


def test_a_tool_may_use_the_api_as_long_as_it_is_not_async() -> None:
    heard: list[str] = []

    def nested() -> None:
        """Ask another agent."""
        with playing(script.says("inner")) as inner:
            heard.append(inner.think().text("Go.").run())

    async def wrong() -> str:
        """Block the loop."""
        return agent.think().text("Go.").run()

    async def open_wrong() -> str:
        """Block the loop, too."""
        return open_agent("builtin").start().name

    async def close_wrong() -> None:
        """Block the loop until it has ended."""
        agent.close()

    async def fine() -> None:
        """Look, which blocks nothing."""
        heard.append(stream.view.phase)

    told = (
        script.calls("nested")
        .calls("wrong", expect_error="own event loop")
        .calls("open_wrong", expect_error="own event loop")
        .calls("close_wrong", expect_error="own event loop")
        .calls("fine")
        .says("Done.")
    )
    with playing(told) as agent:
        stream = (
            agent.think()
            .text("Go.")
            .tool(nested)
            .tool(wrong)
            .tool(open_wrong)
            .tool(close_wrong)
            .tool(fine)
            .stream()
        )
        assert stream.result() == "Done."
    assert heard == ["inner", "prompted"]


def test_an_error_points_to_the_callers_line() -> None:
    with playing(script.says("no result")) as agent:
        stream = agent.think(Review).text("Go.").stream(reminders=0)
        lines: list[str | None] = []
        for _ in range(2):
            with pytest.raises(ResultMissing) as missing:
                stream.result()  # here
            frames = traceback.extract_tb(missing.value.__traceback__)
            assert [Path(frame.filename).parts[-2] for frame in frames] == ["sync", "sync"]
            lines.append(frames[0].line)
        assert lines == ["stream.result()  # here"] * 2
        assert isinstance(stream.exception(), ResultMissing)
    with playing(script.says("no result")) as agent:
        with pytest.raises(ResultMissing) as missing:
            agent.think(Review).text("Go.").run(reminders=0)
        assert traceback.extract_tb(missing.value.__traceback__)[0].filename == str(HERE)


def test_an_agent_that_cannot_be_opened() -> None:
    opener = open_agent("no-such-agent")
    with pytest.raises(AgentNotFound, match="no-such-agent") as not_found, opener:
        raise AssertionError  # pragma: no cover
    assert traceback.extract_tb(not_found.value.__traceback__)[0].filename == str(HERE)


def test_a_prompt_that_cannot_be_sent() -> None:
    with playing(script.says("a")) as agent:
        with pytest.raises(ValueError, match="the prompt is empty"):
            agent.think().stream()
        with pytest.raises(TypeError, match="you passed an instance of Review"):
            agent.think(Review(1))  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
        builder = agent.think(Review).text("Go.")
        assert repr(builder).startswith("<ThinkBuilder for Review")
        assert "return_result" in str(builder.explain())
        assert agent.think(JsonSchema({"type": "integer"})).line("Go.").explain().tools


def test_questions() -> None:
    told = script.asks("May I?", expect="allow_once").says("Done.")
    with playing(told, permissions="ask") as agent:
        stream = agent.think().text("Go.").stream(include="all")
        for event in stream.events(include={"question"}):
            if isinstance(event, events.QuestionAsked):
                (question,) = agent.questions
                assert question.title == "May I?"
                with pytest.raises(QuestionNotOpen):
                    stream.answer("nonsense", answer=True)
                stream.answer(event.id, answer=True)
        assert stream.result() == "Done."
        with pytest.raises(QuestionNotOpen):
            agent.answer("nonsense", answer=True)


def test_what_an_agent_tells() -> None:
    with playing(script.says("a")) as agent:
        assert agent.name in repr(agent)
        assert agent.info is not None
        assert agent.capabilities.mcp_capabilities is not None
        assert [phase.phase for phase in agent.launch_phases]
        assert agent.auth_methods == ()


def answered() -> str:
    with playing(script.says("a")) as agent:
        return agent.think().text("Go.").run()


async def test_a_running_event_loop_that_is_blocked_is_warned_of(anyio_backend_name: str) -> None:
    elsewhere = f"{anyio_backend_name}.to_thread"
    with pytest.warns(
        RuntimeWarning, match=f"the event loop of {anyio_backend_name} .*{elsewhere}"
    ) as warned:
        assert answered() == "a"
    assert {each.filename for each in warned} == {__file__}


async def test_a_blocked_event_loop_is_warned_of_at_each_place_that_blocks_it() -> None:
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("default")
        for _ in range(3):
            with playing(script.says("a")) as agent:
                agent.think().text("Go.").run()
    assert len({each.lineno for each in warned}) == 2


async def test_other_threads_of_an_event_loop_may_block() -> None:
    assert await anyio.to_thread.run_sync(answered) == "a"


async def test_a_cell_may_block_the_event_loop_of_its_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    shell: Any = SimpleNamespace(get_ipython=lambda: SimpleNamespace())
    monkeypatch.setitem(sys.modules, "IPython.core.getipython", shell)
    assert answered() == "a"


def test_a_recording(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    with playing(script.says("a").returns({"score": 7}), record=file) as agent:
        stream = agent.think(Review).text("Go.").stream()
        recorded = list(stream)
    again = replay(file, Review)
    with pytest.raises(TimeoutError):
        replay(file, Review, speed=0.0001).result(timeout=0.01)
    assert [event.type for event in again] == [event.type for event in recorded]
    assert again.result() == Review(7)
    del again
    gc.collect()
    with replay(file, speed=0.0001) as cancelled:
        pass
    assert isinstance(cancelled.exception(), ThoughtCancelled)
    with pytest.raises(RecordingError):
        replay(HERE)


def test_a_handler_of_the_users_that_raises_what_ends_programs() -> None:
    def give_up(_: object) -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit), playing(script.says("a"), on_phase=give_up):
        raise AssertionError  # pragma: no cover


def test_nothing_warns() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with playing(script.says("a").hangs()) as agent:
            for _ in agent.think().text("Go.").stream():
                break
        gc.collect()
    assert caught == []


def test_a_failed_run_without_a_reader_delays_nothing() -> None:
    with playing(script.crashes(3)) as agent:
        stream = agent.think().text("Go.").stream()
        stream.wait(30)
        assert stream.exception() is not None
        started = time.monotonic()
    assert time.monotonic() - started < 30


BLOCKS = pytest.mark.parametrize("of_the_stream", [False, True], ids=["agent", "stream"])


@BLOCKS
def test_a_block_that_is_left_right_after_the_result_waits_for_the_turn(of_the_stream: bool) -> None:
    with playing(script.returns(7).pauses(0.2).stops("max_tokens")) as agent:
        stream = agent.think(int).text("Go").stream()
        with stream if of_the_stream else nullcontext():
            assert stream.result() == 7
        if of_the_stream:
            assert stream.view.phase == "completed"
    assert (stream.view.phase, stream.view.cut, stream.view.stop_reason) == ("completed", None, "max_tokens")


@BLOCKS
def test_a_block_that_an_exception_leaves_does_not_wait(of_the_stream: bool) -> None:
    streams: list[ThoughtStream[int]] = []
    with suppress(LookupError), playing(script.returns(7).hangs()) as agent:
        streams.append(agent.think(int).text("Go").stream())
        with streams[0] if of_the_stream else nullcontext():
            assert streams[0].result() == 7
            raise LookupError
    (stream,) = streams
    cut = "ThoughtCancelled" if of_the_stream else "AgentClosed"
    assert (stream.view.phase, stream.view.cut) == ("completed", cut)
    assert stream.elapsed < 2


def test_a_task_is_tried_again_and_taken_over() -> None:
    told = script.fails(-32603, "busy") + script.fails(-32000, "log in")
    other = AgentProfile(name="other", program=Program(command=tuple(program(script.says("42")))))
    with playing(told, fallback=[other]) as agent:
        stream = (
            agent.think()
            .text("Go")
            .stream(include={"try_failed"}, retry=Retry(on=(AgentReported,), random=float))
        )
        assert stream.result() == "42"
        tries = [event for event in stream if isinstance(event, events.TryFailed)]
        assert [(each.error, each.next_agent) for each in tries] == [
            ("AgentReported", agent.name),
            ("LoginRequired", "other"),
        ]
        with pytest.raises(ValueError, match="handlers hear one agent"):
            agent.think().text("Go").fallback(other).listen(Handlers())
