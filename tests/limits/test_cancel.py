"""Cancelling, by when it comes and how: one table. What is awkward about single cells is in tests/stream."""

from __future__ import annotations

import math
import threading
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from limits.tap import Tap, told
from limits.virtual import Stopwatch
from pydantic import BaseModel
from scripted import Played, Proceed, Turn, never, playing
from stream.wire_agent import end_turn, permission, wire_agent

from thinkwell import (
    Agent,
    AgentClosed,
    AgentExited,
    QuestionNotOpen,
    QuestionsStopped,
    Session,
    SessionClosed,
    SessionUnusable,
    StopRun,
    ThoughtCancelled,
    ThoughtStream,
    ThoughtTimeout,
    open_agent,
)
from thinkwell import events as ev
from thinkwell_acp import memory_transport_pair
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

pytestmark = pytest.mark.virtual_time

TIMEOUT = 3.0

CANCEL_TIMEOUT = 10.0
"""Seconds that a cancelled turn gets to end by itself."""

LEAVE_TIMEOUT = 2.0
"""Seconds that it gets where the agent's block is left."""


class Answer(BaseModel):
    answer: int


class Scene(Played):
    """An agent that comes to a state and stays there, until it is cancelled."""

    def __init__(self, state: str) -> None:
        lists = state != "connecting"
        super().__init__(
            [self.play], lists_tools=lists, relists=lists, answers={"session/new": self.new_session}
        )
        self.state = state
        self.reached = anyio.Event()
        self.let_go = threading.Event()

    async def new_session(self, request: s.NewSessionRequest, proceed: Proceed) -> s.NewSessionResponse:
        if self.state == "opening":
            self.reached.set()
            await anyio.sleep_forever()
        opened: s.NewSessionResponse = await proceed(request)
        return opened

    async def play(self, turn: Turn) -> None:
        if turn.text.startswith("again"):
            turn.say("again")
            return
        if self.state == "reminder" and len(self.sent.prompts) == 1:
            turn.say("no result")
            return
        acts: dict[str, Callable[[], Awaitable[object]]] = {
            "text": lambda: self._say(turn),
            "agent_tool": lambda: self._show(turn),
            "tool": lambda: turn.call("slow", {}),
            "sync_tool": lambda: turn.call("blocking", {}),
            "question": lambda: self._ask(turn),
            "form": lambda: self._ask_form(turn),
            "result": lambda: self._return(turn),
        }
        await acts.get(self.state, self._stay)()

    async def _stay(self) -> None:
        self.reached.set()
        await anyio.sleep_forever()

    async def _say(self, turn: Turn) -> None:
        turn.say("Hello")
        await self._stay()

    async def _show(self, turn: Turn) -> None:
        turn.update(s.ToolCallStart(tool_call_id="t", title="Run", status="in_progress"))
        await self._stay()

    async def _return(self, turn: Turn) -> None:
        await turn.returns(result={"answer": 1})
        await self._stay()

    async def _ask(self, turn: Turn) -> None:
        options = (s.PermissionOption(option_id="y", name="Yes", kind="allow_once"),)
        call = s.ToolCallUpdate(tool_call_id="t", title="rm")
        request = s.RequestPermissionRequest(session_id=turn.session_id, tool_call=call, options=options)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(turn.client.request_permission, request)
            await self._stay()

    async def _ask_form(self, turn: Turn) -> None:
        form = s.ElicitationFormMode(
            session_id=turn.session_id,
            message="Which?",
            requested_schema=s.ElicitationSchema(),
        )
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(turn.client.create_elicitation, form)
            await self._stay()

    async def slow(self) -> str:
        """Take for ever."""
        self.reached.set()
        await anyio.sleep_forever()
        return ""

    def blocking(self) -> str:
        """Take for ever, in a thread."""
        anyio.from_thread.run_sync(self.reached.set)
        self.let_go.wait(10)
        return ""


class Stage:
    """A run that has come to its state, and everything around it."""

    def __init__(self, scene: Scene, tap: Tap, agent: Agent, session: Session | None) -> None:
        self.scene = scene
        self.tap = tap
        self.agent = agent
        self.session = session

    def start(self, **options: Any) -> ThoughtStream[Answer]:
        where = self.agent if self.session is None else self.session
        task = where.think(Answer).text("Go").tool(self.scene.slow).tool(self.scene.blocking)
        return task.stream(include="all", **options)

    async def come(self, stream: ThoughtStream[Answer]) -> None:
        """Wait until the run has come to its state."""
        if self.scene.state == "queued":
            return
        if self.scene.state == "connecting":
            async for event in stream:
                if isinstance(event, ev.PhaseChanged):
                    return
        await self.scene.reached.wait()
        if self.scene.state in ("question", "form"):
            async for event in stream:
                if isinstance(event, ev.QuestionAsked):
                    return
        if self.scene.state == "result":
            await stream.result


@asynccontextmanager
async def serving(handler: Played, within: float = 10_000) -> AsyncGenerator[tuple[Agent, Tap]]:
    """Open an agent and look at the wire."""
    ours, theirs = memory_transport_pair()
    tap = Tap(theirs)
    with anyio.fail_after(within):
        async with playing(tap, handler), open_agent("staged", transport=ours, permissions="ask") as agent:
            yield agent, tap


async def settled() -> None:
    """Let what was sent arrive."""
    await anyio.wait_all_tasks_blocked()


@asynccontextmanager
async def staged(state: str, *, of_session: bool = True) -> AsyncGenerator[Stage]:
    """Open an agent that brings a run to a state; and a session, unless that is what never opens."""
    scene = Scene(state)
    try:
        # While a thread works, any amount of this time passes.
        within = math.inf if state == "sync_tool" else 10_000
        async with serving(scene, within) as (agent, tap), AsyncExitStack() as stack:
            if not of_session or state == "opening":
                yield Stage(scene, tap, agent, None)
                return
            session = await stack.enter_async_context(agent.session())
            if state == "queued":
                session.think().text("Hold the session").stream()
                await scene.reached.wait()
            yield Stage(scene, tap, agent, session)
    finally:
        scene.let_go.set()


STATES = (
    "queued",
    "opening",
    "connecting",
    "prompted",
    "text",
    "agent_tool",
    "tool",
    "sync_tool",
    "question",
    "form",
    "result",
    "reminder",
)
BEFORE_THE_PROMPT = ("queued", "opening", "connecting")


async def cancel(stage: Stage) -> ThoughtStream[Answer]:
    stream = stage.start()
    await stage.come(stream)
    stream.cancel()
    stream.cancel()
    return stream


async def leave(stage: Stage) -> ThoughtStream[Answer]:
    async with stage.start() as stream:
        await stage.come(stream)
    return stream


async def time_out(stage: Stage) -> ThoughtStream[Answer]:
    return stage.start(timeout=TIMEOUT)


WAYS: dict[Callable[[Stage], Awaitable[ThoughtStream[Answer]]], type[Exception]] = {
    cancel: ThoughtCancelled,
    leave: ThoughtCancelled,
    time_out: ThoughtTimeout,
}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_a_run_is_cancelled(
    state: str, way: Callable[[Stage], Awaitable[ThoughtStream[Answer]]]
) -> None:
    async with staged(state) as stage:
        stream = await way(stage)
        await stream.wait()
        await settled()
        await check(stage, stream, WAYS[way])
        if stage.session is None or state == "queued":
            return  # there is no session, or it is another run's
        assert await stage.session.think().text("again").run() == "again", "the session can be used"
        assert stage.tap.count("session/cancel") == (state not in BEFORE_THE_PROMPT)


async def check(stage: Stage, stream: ThoughtStream[Answer], error: type[Exception]) -> None:
    """Check what is true of every cancelled run, however it came about."""
    state, tap = stage.scene.state, stage.tap
    if state == "result":
        assert await stream.result == Answer(answer=1)
        assert (stream.view.phase, stream.view.cut, stream.view.error) == ("completed", error.__name__, None)
    else:
        assert type(stream.result.exception()) is error
        assert type(stream.view.error) is error
        phase = "cancelled" if issubclass(error, ThoughtCancelled) else "failed"
        assert (stream.view.phase, stream.view.cut) == (phase, None)
    assert tap.count("session/cancel") == (state not in BEFORE_THE_PROMPT)
    assert tap.count("$/cancel_request") == (state == "opening")
    assert stream.view.questions == ()
    assert {tool.status for tool in stream.view.tools.values()} <= {"cancelled"}
    asks = state in ("question", "form")
    assert [told(message) for given in tap.answers.values() for message in given] == ["cancelled"] * asks
    events = [event async for event in stream]
    answered = [event for event in events if isinstance(event, ev.QuestionAnswered)]
    assert [(event.choice, event.by) for event in answered] == [(None, "cancel")] * asks
    assert isinstance(events[-1], ev.PhaseChanged)


@pytest.mark.parametrize("state", [state for state in STATES if state not in ("queued", "result")])
async def test_the_caller_of_run_is_cancelled(state: str) -> None:
    async with staged(state) as stage:
        where = stage.agent if stage.session is None else stage.session
        task = where.think(Answer).text("Go").tool(stage.scene.slow).tool(stage.scene.blocking)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(task.run)
            if state == "connecting":
                await anyio.sleep(1)
            else:
                await stage.scene.reached.wait()
                await settled()
            tasks.cancel_scope.cancel()
        await settled()
        assert stage.tap.count("session/cancel") == (state not in BEFORE_THE_PROMPT)
        if stage.session is not None:
            assert await stage.session.think().text("again").run() == "again"
        assert set(stage.tap.how_often) <= {1}


@pytest.mark.parametrize("state", [state for state in STATES if state != "opening"])
async def test_the_block_of_the_session_is_left(state: str) -> None:
    async with staged(state) as stage:
        stream = stage.start()
        await stage.come(stream)
    if state == "queued":
        assert type(stream.result.exception()) is SessionClosed
        assert stage.tap.count("session/cancel") == 1
    else:
        await check(stage, stream, SessionClosed)


@pytest.mark.parametrize("state", [state for state in STATES if state != "queued"])
@pytest.mark.parametrize("raises", [False, True])
async def test_the_block_of_the_agent_is_left(state: str, raises: bool) -> None:
    caught: list[BaseException] = []
    stage: Stage | None = None
    stream: ThoughtStream[Answer] | None = None
    try:
        async with staged(state, of_session=False) as stage:
            stream = stage.start()
            await stage.come(stream)
            if raises:
                raise LookupError("the user's")
    except LookupError as exc:
        caught.append(exc)
    assert len(caught) == raises
    assert stage is not None
    assert stream is not None
    await check(stage, stream, AgentClosed)


# An agent that does not care


async def deaf(turn: Turn) -> None:
    if turn.text == "again":
        turn.say("again")
        return
    with anyio.CancelScope(shield=True):
        await anyio.sleep(1000)


@pytest.mark.parametrize("seconds", [0, 1, 9])
async def test_an_agent_that_ends_the_turn_late__its_session_is_usable(seconds: float) -> None:
    async def slow(turn: Turn) -> None:
        if turn.text == "again":
            turn.say("again")
            return
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(seconds)
                turn.say("what I wanted to say")

    async with serving(Played([slow])) as (agent, tap), agent.session() as session:
        stream = session.think().text("Go").stream()
        await settled()
        stream.cancel()
        assert await session.think().text("again").run() == "again"
        assert isinstance(stream.result.exception(), ThoughtCancelled)
        assert stream.view.text == "what I wanted to say"
        assert tap.count("session/cancel") == 1


async def test_an_agent_that_never_ends_the_turn__its_session_says_that_it_is_not_usable() -> None:
    async with serving(Played([deaf])) as (agent, tap), agent.session() as session:
        other = agent.think().text("Go").stream()  # without it, the agent would be ended
        await settled()
        watch = Stopwatch()
        stream = session.think().text("Go").stream()
        await settled()
        stream.cancel()
        with pytest.raises(SessionUnusable):
            await session.think().text("again").run()
        assert watch.seconds == pytest.approx(CANCEL_TIMEOUT, abs=0.5)
        assert tap.count("session/cancel") == 1
        other.cancel()


async def test_agents_whose_runs_are_all_stuck_are_ended(caplog: pytest.LogCaptureFixture) -> None:
    async with serving(Played([deaf])) as (agent, _):
        streams = [agent.think().text("Go").stream() for _ in range(3)]
        await settled()
        for stream in streams:
            stream.cancel()
        for stream in streams:
            await stream.wait()
        await settled()
        ended = r"was ended by thinkwell, because it did not end the turn of run-\d+, which was cancelled;"
        with pytest.raises(AgentExited, match=ended):
            await agent.think().text("again").run()
    assert caplog.text.count("so its process is ended") == 1


@pytest.mark.parametrize("after", [0, 1, 9, 12])
async def test_leaving_the_agent_hurries_a_run_that_is_being_cancelled(after: float) -> None:
    capabilities = s.AgentCapabilities(
        session_capabilities=s.SessionCapabilities(close=s.SessionCloseCapabilities())
    )
    handler = Played([deaf], capabilities=capabilities, answers={"session/close": never})
    async with handler.connect() as transport:
        async with open_agent("staged", transport=transport) as agent:
            stream = agent.think().text("Go").stream()
            await settled()
            stream.cancel()
            await anyio.sleep(after)
            watch = Stopwatch()
        assert watch.seconds <= LEAVE_TIMEOUT + 2.5  # closing the session has two seconds more
    assert isinstance(stream.result.exception(), ThoughtCancelled)


# Moments between two turns


@pytest.mark.parametrize("_attempt", range(10))
async def test_a_run_that_is_stopped_as_a_turn_ends_leaves_no_reminder_running(
    _attempt: int,
) -> None:
    async def forgets_and_hangs(turn: Turn) -> None:
        if len(turn.agent.sent.prompts) > 1:
            await anyio.sleep_forever()

    async with serving(Played([forgets_and_hangs])) as (agent, tap):
        stream = agent.think(Answer).text("Go").stream(include="all")
        watch = Stopwatch()
        async for event in stream:  # it is read and reminded in the same moment, in either order
            if isinstance(event, ev.TurnEnded):
                stream.cancel()
        await stream.wait()
        assert watch.seconds < 1
        assert tap.count("session/cancel") == tap.count("session/prompt") - 1


# Questions and the ends of turns


async def test_a_question_that_was_read_together_with_the_end_of_its_cancelled_turn() -> None:
    asked: list[object] = []

    async def nosy(question: object) -> str:
        asked.append(question)
        return "allow"

    async with wire_agent(permissions="ask", on_question=nosy) as (agent, wire):
        stream = agent.think().text("Go").stream(include="all")
        prompt = await wire.begin()
        stream.cancel()
        await wire.expect("session/cancel")
        await wire.write(permission(1), end_turn(prompt, "cancelled"))
        assert (await wire.expect(None))["result"] == {"outcome": {"outcome": "cancelled"}}
        await stream.wait()
        assert asked == []


async def test_a_question_that_is_open_when_its_turn_ends_is_cancelled() -> None:
    async with wire_agent(permissions="ask") as (agent, wire):
        stream = agent.think().text("Go").stream(include="all")
        prompt = await wire.begin()
        await wire.write(permission(1))
        async for event in stream:
            if isinstance(event, ev.QuestionAsked):
                break
        await wire.write(end_turn(prompt))
        assert (await wire.expect(None))["result"] == {"outcome": {"outcome": "cancelled"}}
        await stream.wait()
        events = [event async for event in stream]
        assert [event.by for event in events if isinstance(event, ev.QuestionAnswered)] == ["cancel"]
        with pytest.raises(QuestionNotOpen):
            stream.answer("q1", "allow")


async def test_a_question_that_outlives_the_run_of_a_session_of_its_own_is_cancelled() -> None:
    async with wire_agent(permissions="ask") as (agent, wire):
        stream = agent.think().text("Go").stream(include="all")
        prompt = await wire.begin()
        await wire.write(permission(1), end_turn(prompt))  # it is served when the turn is over
        assert told(await wire.expect(None)) in ("cancelled", "no")
        await stream.wait()
        # Nobody is asked about a session that was left.
        await wire.write(permission(2))
        assert told(await wire.expect(None)) == "no"
        form = {"sessionId": "s", "mode": "form", "message": "Which?", "requestedSchema": {"type": "object"}}
        await wire.write({"jsonrpc": "2.0", "id": 3, "method": "elicitation/create", "params": form})
        assert told(await wire.expect(None)) == "decline"


async def test_an_answer_comes_too_late_when_its_question_was_cancelled_in_the_same_moment() -> None:
    async with wire_agent(permissions="ask") as (agent, wire):
        stream = agent.think().text("Go").stream(include="all")
        prompt = await wire.begin()
        await wire.write(permission(1))
        async for event in stream:
            if isinstance(event, ev.QuestionAsked):
                break
        stream.answer("q1", "allow")  # it is not sent yet
        stream.cancel()
        with pytest.raises(QuestionNotOpen):
            stream.answer("q1", "allow")
        await wire.expect("session/cancel")
        assert told(await wire.expect(None)) == "cancelled"
        await wire.write(end_turn(prompt, "cancelled"))
        await stream.wait()
        answered = [event async for event in stream if isinstance(event, ev.QuestionAnswered)]
        assert [(event.choice, event.by) for event in answered] == [(None, "cancel")]


async def test_an_answer_that_stops_the_run_is_told_to_the_agent_as_cancelled__and_to_the_log() -> None:
    async with wire_agent(permissions="ask") as (agent, wire):
        stream = agent.think().text("Go").stream(include="all")
        prompt = await wire.begin()
        await wire.write(permission(1))
        async for event in stream:
            if isinstance(event, ev.QuestionAsked):
                break
        stream.answer("q1", StopRun("enough"))
        await wire.expect("session/cancel")
        assert told(await wire.expect(None)) == "cancelled"
        await wire.write(end_turn(prompt, "cancelled"))
        await stream.wait()
        assert isinstance(stream.result.exception(), QuestionsStopped)
        answered = [event async for event in stream if isinstance(event, ev.QuestionAnswered)]
        assert [(event.choice, event.by, event.why) for event in answered] == [(None, "human", "enough")]
