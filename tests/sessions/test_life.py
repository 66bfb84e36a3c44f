"""Sessions that are opened anew for their tools, and what happens when that is cancelled, fails or hangs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest
from limits.virtual import Stopwatch
from scripted import EVERY_SESSION_CALL, Played, Proceed, Script, Turn, scripted

from thinkwell import AgentClosed, AgentExited, AgentReported, Session, SessionUnusable, ThoughtCancelled
from thinkwell.errors import SessionInUse
from thinkwell_acp import RpcError
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

pytestmark = pytest.mark.virtual_time


def half(x: int) -> int:
    """Halve a number."""
    return x // 2


async def hello(turn: Turn) -> None:
    turn.say("Hello")


SPEED = s.SessionConfigSelect(
    id="speed",
    name="Speed",
    category="model",
    current_value="slow",
    options=tuple(s.SessionConfigSelectOption(value=value, name=value) for value in ("slow", "fast")),
)


class Falters(Played):
    """Hangs once in one of its calls, or refuses it, from the second one of its kind on."""

    def __init__(
        self, where: str, scripts: Sequence[Script] = (hello,), *, refuses: bool = False, **options: Any
    ) -> None:
        answers: dict[str, Any] = dict.fromkeys(
            ("session/new", "session/close", "session/resume", "session/set_mode"), self._falter
        )
        answers.update(options.pop("answers", {}))
        super().__init__(scripts, capabilities=EVERY_SESSION_CALL, answers=answers, **options)
        self.where = where
        self.refuses = refuses
        self.hangs = anyio.Event()
        self._faltered: int | None = None
        self.modes = s.SessionModeState(
            current_mode_id="full",
            available_modes=tuple(s.SessionMode(id=id_, name=id_) for id_ in ("full", "plan", "ask")),
        )
        self.options = [SPEED]

    async def _falter(self, request: object, proceed: Proceed) -> object:
        match request:
            case s.NewSessionRequest():
                method, later = "session/new", len(self.sent.all("session/new")) > 1
                self.options = [SPEED]
            case s.CloseSessionRequest():
                method, later = "session/close", True
            case s.ResumeSessionRequest():
                method, later = "session/resume", True
            case _:
                method, later = "session/set_mode", self.sent.methods.count("session/new") > 1
        if later and self.where == method and not self.hangs.is_set():
            self._faltered = len(self.asked) - 1
            self.hangs.set()
            if self.refuses:
                raise RpcError(-32603, "not now")
            await anyio.sleep_forever()
        return await proceed(request)

    @property
    def heeded(self) -> list[str]:
        """What was asked, but for the call in which it falters."""
        return [call for number, call in enumerate(self.asked) if number != self._faltered]


async def break_off(session: Session, handler: Falters) -> None:
    """Start a turn with another tool; it fails, or is cancelled when the agent hangs."""
    stream = session.think().text("Go").tool(half).stream()
    await handler.hangs.wait()
    if not handler.refuses:
        stream.cancel()
    await stream.wait()
    assert isinstance(stream.result.exception(), AgentReported if handler.refuses else ThoughtCancelled)


@pytest.mark.parametrize("where", ["session/new", "session/close", "session/resume"])
async def test_a_block_is_left_while_its_session_is_opened_anew(where: str) -> None:
    handler = Falters(where)
    async with scripted(agent=handler) as agent:
        async with agent.session() as session:
            if where == "session/resume":
                await session.think().text("0").run()
            streams = [session.think().text("Go").tool(half).stream() for _ in range(2)]
            await handler.hangs.wait()
            assert (session.id, repr(session)) == ("session-1", "<Session session-1 of scripted>")
            watch = Stopwatch()
        assert watch.seconds <= 5
        for stream in streams:
            await stream.wait()
            assert isinstance(stream.result.exception(), AgentClosed)
        assert await agent.think().text("1").run() == "Hello"
    assert len(handler.sent.prompts) == (2 if where == "session/resume" else 1)


@pytest.mark.parametrize(
    ("where", "refuses"),
    [
        ("session/new", False),
        ("session/new", True),
        ("session/close", False),
        ("session/set_mode", False),
        ("session/set_mode", True),
    ],
)
@pytest.mark.parametrize("tools", [(), (half,)])
async def test_a_session_that_is_replaced_keeps_its_mode_and_options(
    where: str, refuses: bool, tools: Sequence[Callable[[int], int]]
) -> None:
    handler = Falters(where, refuses=refuses)
    async with scripted(agent=handler) as agent, agent.session() as session:
        await session.set_mode("plan")
        await session.set_option("speed", "fast")
        await break_off(session, handler)
        think = session.think().text("Go on")
        for tool in tools:
            think = think.tool(tool)
        assert await think.run() == "Hello"
        assert (session.id, session.mode, session.options[0].value) == ("session-2", "plan", "fast")
    assert [prompt.session_id for prompt in handler.sent.prompts] == ["session-2"]
    heeded = handler.heeded
    assert heeded[len(heeded) - heeded[::-1].index("session/new") :] == [
        "session/set_config_option speed=fast",
        "session/set_mode plan",
        "session/close",
    ]
    assert handler.sent.closed.count("session-2") == 1


@pytest.mark.parametrize("by_option", [True, False])
async def test_what_is_set_while_there_is_no_session_is_told_when_there_is_one(by_option: bool) -> None:
    handler = Falters("session/new")
    async with scripted(agent=handler) as agent, agent.session() as session:
        await break_off(session, handler)
        before = list(handler.asked)
        await session.set_mode("ask")
        await (session.set_option("speed", "fast") if by_option else session.set_model("fast"))
        with pytest.raises(ValueError, match="modes of this session"):
            await session.set_mode("other")
        assert (session.id, session.mode, session.options[0].value) == ("session-1", "ask", "fast")
        assert handler.asked == before
        assert await session.think().text("Go on").run() == "Hello"
        assert (session.id, session.mode, session.options[0].value) == ("session-2", "ask", "fast")
    assert handler.asked[len(before) :] == [
        "session/new",
        "session/set_config_option speed=fast",
        "session/set_mode ask",
        "session/close",
    ]


async def test_what_the_user_sets_meanwhile_counts_more_than_what_was() -> None:
    handler = Falters("session/set_mode")
    async with scripted(agent=handler) as agent, agent.session() as session:
        await session.set_mode("plan")
        await break_off(session, handler)
        assert (session.id, session.mode) == ("session-2", "full")
        await session.set_mode("ask")
        await session.set_option("speed", "fast")
        assert await session.think().text("Go on").run() == "Hello"
        assert (session.mode, session.options[0].value) == ("ask", "fast")
    assert handler.heeded.count("session/set_mode plan") == 1


async def test_a_mode_that_is_set_meanwhile_is_that_of_the_new_session() -> None:
    """Its answer comes before the session is replaced, or it is asked of the other one."""
    asked, go = anyio.Event(), anyio.Event()

    async def wait(request: object, proceed: Proceed) -> object:
        asked.set()
        await go.wait()
        return await proceed(request)

    handler = Falters("", answers={"session/set_mode": wait})
    async with scripted(agent=handler) as agent, agent.session() as session:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.set_mode, "plan")
            await asked.wait()
            stream = session.think().text("Go").tool(half).stream()
            await anyio.sleep(10)
            go.set()
            assert await stream.result == "Hello"
        assert (session.id, session.mode) == ("session-2", "plan")
    assert handler.asked.count("session/set_mode plan") == 2


@pytest.mark.parametrize("refuses", [False, True])
@pytest.mark.parametrize("tools", [(), (half,)])
async def test_a_session_that_was_closed_is_resumed_before_its_next_prompt(
    refuses: bool, tools: Sequence[Callable[[int], int]]
) -> None:
    handler = Falters("session/resume", refuses=refuses)
    async with scripted(agent=handler) as agent, agent.session() as session:
        await session.think().text("1").run()
        await session.set_mode("plan")
        await break_off(session, handler)
        think = session.think().text("2")
        for tool in tools:
            think = think.tool(tool)
        assert await think.run() == "Hello"
        assert session.mode == "plan"
    assert handler.heeded == [
        "session/new",
        "session/set_mode plan",
        "session/close",
        "session/resume",
        "session/set_mode plan",
        "session/close",
    ]


async def test_every_run_that_waits_is_told_why_the_session_is_not_opened_again() -> None:
    handler = Falters("", fails_at={"session/resume": RpcError(-32002, "no such session")})
    async with scripted(agent=handler) as agent, agent.session() as session:
        await session.think().text("1").run()
        streams = [session.think().text("2").tool(half).stream() for _ in range(3)]
        for stream in streams:
            with pytest.raises(AgentReported, match="no such session"):
                await stream.result
    assert len(handler.sent.prompts) == 1


async def test_a_session_that_is_left_while_it_is_closed_is_closed_again_where_it_may_be_open() -> None:
    handler = Falters("session/resume")
    async with scripted(agent=handler) as agent, agent.session() as session:
        await session.think().text("1").run()
        await break_off(session, handler)
    assert handler.sent.closed == ("session-1", "session-1")


async def test_runs_that_wait_for_a_stuck_session_do_not_keep_the_agent() -> None:
    async def deaf(_turn: Turn) -> None:
        with anyio.CancelScope(shield=True):
            await anyio.sleep(1000)

    async with scripted(deaf) as agent, agent.session() as session:
        stream = session.think().text("1").stream()
        await anyio.sleep(1)
        queued = session.think().text("2").stream()
        watch = Stopwatch()
        stream.cancel()
        await stream.wait()
        await queued.wait()
        assert watch.seconds == pytest.approx(10, abs=0.5)
        unusable = queued.result.exception()
        assert isinstance(unusable, SessionUnusable)
        assert unusable.session_id == session.id
        with pytest.raises(AgentExited):
            await agent.think().text("3").run()


async def test_a_session_that_is_being_closed_asks_no_questions() -> None:
    outcomes: list[object] = []

    async def ask(request: s.CloseSessionRequest, proceed: Proceed) -> object:
        options = (s.PermissionOption(option_id="no", name="No", kind="reject_once"),)
        call = s.ToolCallUpdate(tool_call_id="c", title="rm", kind="execute")
        with anyio.move_on_after(1):
            response = await handler.client.request_permission(
                s.RequestPermissionRequest(session_id=request.session_id, tool_call=call, options=options)
            )
            outcomes.append(response.outcome)
        return await proceed(request)

    handler = Played([hello], capabilities=EVERY_SESSION_CALL, answers={"session/close": ask})
    async with scripted(agent=handler, permissions="ask") as agent:
        async with agent.session() as session:
            await session.think().text("1").run()
        assert agent.questions == ()
    assert outcomes == [s.SelectedPermissionOutcome(option_id="no")]


async def test_an_id_is_in_use_until_its_session_is_closed() -> None:
    """While it is being closed, it cannot be resumed: the close might hit the session that is resumed."""
    handler = Falters("session/close")
    async with scripted(agent=handler) as agent, anyio.create_task_group() as tasks:

        async def stay() -> None:
            async with agent.session():
                pass

        tasks.start_soon(stay)
        await handler.hangs.wait()
        with pytest.raises(SessionInUse):
            async with agent.session(resume="session-1"):
                pass


async def test_a_session_that_outlives_its_agent_starts_nothing() -> None:
    async with scripted(hello) as agent:
        block = agent.session()
        session = await block.__aenter__()
    with pytest.raises(AgentClosed):
        session.think().text("1").stream()
    with pytest.raises(AgentClosed):
        await session.set_mode("plan")
    with anyio.fail_after(5):
        await block.__aexit__(None, None, None)
