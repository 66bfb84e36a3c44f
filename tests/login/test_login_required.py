"""Whatever an agent refuses for want of a login says so; with a way chosen beforehand, it is gone once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

import anyio
import pytest
import trio.testing
from anyio.lowlevel import checkpoint
from login.login_agent import LoginAgent, opened
from scripted import Proceed, Turn, playing, scripted

from thinkwell import (
    Agent,
    AgentClosed,
    AgentExited,
    CapabilityMissing,
    LoginRequired,
    Refused,
    ThoughtCancelled,
    open_agent,
)
from thinkwell import events as ev
from thinkwell.errors import AuthMethod, LoginFailed
from thinkwell.questions import FormQuestion
from thinkwell_acp import RpcError, memory_transport_pair
from thinkwell_acp import schema as s

Call: TypeAlias = Callable[[Agent], Awaitable[object]]

METHODS = (
    AuthMethod(id="browser", name="Browser", description="opens one"),
    AuthMethod(id="console", name="Console", type="terminal", env={"KIND": "by hand"}),
)


def opens(**how: str) -> Call:
    async def call(agent: Agent) -> None:
        async with agent.session(**how):  # type: ignore[arg-type]
            pass

    return call


async def runs(agent: Agent) -> None:
    assert await agent.think().text("Go").run() == "done"


async def runs_in_a_session(agent: Agent) -> None:
    async with agent.session() as session:
        assert await session.think().text("Go").run() == "done"


async def sets_the_mode(agent: Agent) -> None:
    async with agent.session() as session:
        await session.set_mode("code")
        assert session.mode == "code"


async def sets_an_option(agent: Agent) -> None:
    async with agent.session() as session:
        await session.set_option("fast", True)


async def lists_sessions(agent: Agent) -> None:
    await agent.list_sessions()


async def deletes_a_session(agent: Agent) -> None:
    await agent.delete_session("old")


WHAT_IS_CALLED: tuple[tuple[str, Call], ...] = (
    ("session/new", opens()),
    ("session/new", runs),
    ("session/load", opens(load="old")),
    ("session/resume", opens(resume="old")),
    ("session/fork", opens(fork="old")),
    ("session/list", lists_sessions),
    ("session/delete", deletes_a_session),
    ("session/set_mode", sets_the_mode),
    ("session/set_config_option", sets_an_option),
    ("session/prompt", runs),
    ("session/prompt", runs_in_a_session),
)
CALLS = pytest.mark.parametrize(("method", "call"), WHAT_IS_CALLED)


def agent_that_refuses(method: str) -> LoginAgent:
    handler = LoginAgent(method)
    if method == "session/set_config_option":
        handler.options = [s.SessionConfigBoolean(id="fast", name="Fast", current_value=False)]
    return handler


@CALLS
async def test_any_call_says_that_a_login_is_required(method: str, call: Call) -> None:
    handler = agent_that_refuses(method)
    async with opened(handler) as agent:
        with pytest.raises(LoginRequired) as caught:
            await call(agent)
    assert caught.value.methods == METHODS
    assert caught.value.reason == "it wants a login first (Authentication required)"
    assert handler.calls.count(method) == 1
    assert "browser" not in handler.calls


@CALLS
async def test_with_a_login_chosen_any_call_is_made_again_after_it(method: str, call: Call) -> None:
    handler = agent_that_refuses(method)
    async with opened(handler, login="browser") as agent:
        await call(agent)
        assert handler.calls.count("browser") == 1
        at = handler.calls.index("browser")
        assert [handler.calls[at - 1], handler.calls[at + 1]] == [method, method]
        await call(agent)
    assert handler.calls.count("browser") == 1


@CALLS
async def test_a_second_refusal_is_the_last(method: str, call: Call) -> None:
    handler = agent_that_refuses(method)
    handler.useless = True
    async with opened(handler, login="browser") as agent:
        with pytest.raises(LoginRequired):
            await call(agent)
    assert handler.calls.count(method) == 2
    assert handler.calls.count("browser") == 1


async def test_a_session_that_worked_may_want_a_login_again() -> None:
    handler = LoginAgent("session/prompt")
    handler.logged_in = True
    async with opened(handler, login="browser") as agent, agent.session() as session:
        await session.think().text("Go").run()
        handler.logged_in = False
        await session.think().text("Go").run()
        handler.logged_in = False
        await session.think().text("Go").run()
    assert handler.calls.count("browser") == 2


async def test_a_run_that_waits_for_a_login_cannot_be_steered() -> None:
    handler = LoginAgent("session/prompt")
    handler.meta = {"steering": {"supported": True}}
    handler.may_answer = anyio.Event()
    async with opened(handler, login="browser") as agent:
        stream = agent.think().text("Go").stream()
        await handler.login_began.wait()
        assert await stream.steer("Quickly") == Refused("the agent has no turn")
        handler.may_answer.set()
        assert await stream.result == "done"


async def test_a_prompt_that_is_sent_again_is_one_turn() -> None:
    handler = LoginAgent("session/prompt")
    async with opened(handler, login="browser") as agent:
        stream = agent.think().text("Go").stream(include="all")
        assert await stream.result == "done"
        events = [event async for event in stream if isinstance(event, ev.TurnStarted | ev.TurnEnded)]
    assert [(event.type, event.number) for event in events] == [("turn_start", 1), ("turn_end", 1)]


async def test_a_turn_that_has_begun_is_not_begun_again() -> None:
    async def expires(turn: Turn) -> None:
        turn.say("I have deleted")
        raise RpcError(-32000, "The token has expired")

    handler = LoginAgent(script=expires)
    async with opened(handler, login="browser") as agent:
        with pytest.raises(LoginRequired, match="The token has expired"):
            await agent.think().text("Go").run()
    assert handler.calls == ["session/new", "session/prompt", "session/close"]


async def test_closing_a_session_is_worth_no_login() -> None:
    handler = LoginAgent("session/close")
    async with opened(handler, login="browser") as agent:
        await opens()(agent)
    assert handler.calls == ["session/new", "session/close"]


# One login for all


async def test_runs_that_want_a_login_together_share_it() -> None:
    handler = LoginAgent("session/new")
    handler.may_answer = anyio.Event()
    async with opened(handler, login="browser") as agent:
        streams = [agent.think().text("Go").stream() for _ in range(5)]
        await handler.wait_refused(5)
        handler.may_answer.set()
        assert [await stream.result for stream in streams] == ["done"] * 5
    assert handler.calls.count("browser") == 1


async def test_a_call_that_was_refused_before_a_login_needs_no_other() -> None:
    class Slow(LoginAgent):
        async def list_sessions(self, request: object, proceed: Proceed) -> s.ListSessionsResponse:
            if self.logged_in:
                return s.ListSessionsResponse(sessions=())
            self.login_began.set()
            self.calls.append("slow")
            while not self.logged_in:
                await self.wait_refused(1)
                await anyio.wait_all_tasks_blocked()
            raise RpcError(-32000, "You were not logged in")

    handler = Slow("session/new")
    async with opened(handler, login="browser") as agent, anyio.create_task_group() as tasks:
        tasks.start_soon(agent.list_sessions)
        await handler.login_began.wait()
        await runs(agent)
    assert handler.calls.count("browser") == 1


async def test_who_gives_up_waiting_does_not_end_the_login_of_others() -> None:
    handler = LoginAgent("session/new")
    handler.may_answer = anyio.Event()
    async with opened(handler, login="browser") as agent:
        first, second = (agent.think().text("Go").stream() for _ in range(2))
        await handler.wait_refused(2)
        await handler.login_began.wait()
        first.cancel()
        with pytest.raises(ThoughtCancelled):
            await first.result
        await first.wait()
        handler.may_answer.set()
        assert await second.result == "done"
    assert handler.calls.count("browser") == 1
    assert not handler.abandoned.is_set()


async def test_a_login_without_a_waiting_run_is_given_up() -> None:
    handler = LoginAgent("session/new")
    handler.may_answer = anyio.Event()
    async with opened(handler, login="browser") as agent:
        async with agent.think().text("Go").stream() as stream:
            await handler.login_began.wait()
            stream.cancel()
            await handler.abandoned.wait()
        handler.may_answer.set()
        await runs(agent)
    assert handler.calls.count("browser") == 2


async def test_a_failed_login_fails_for_all_that_wait() -> None:
    handler = LoginAgent("session/new")
    handler.may_answer = anyio.Event()
    handler.error = RpcError(-32603, "The window was closed")
    async with opened(handler, login="browser") as agent:
        streams = [agent.think().text("Go").stream() for _ in range(3)]
        await handler.wait_refused(3)
        handler.may_answer.set()
        for stream in streams:
            with pytest.raises(LoginFailed, match="The window was closed") as caught:
                await stream.result
            assert (caught.value.method, caught.value.exit_code) == ("browser", None)
        assert handler.calls.count("browser") == 1
        handler.error = None
        await runs(agent)


async def test_an_agent_that_goes_in_the_course_of_a_login() -> None:
    handler = LoginAgent("session/new", "session/list")
    handler.may_answer = anyio.Event()
    ours, theirs = memory_transport_pair()

    async def fails(call: Call) -> None:
        with pytest.raises(AgentExited):
            await call(agent)

    with anyio.fail_after(10):
        async with (
            playing(theirs, handler),
            open_agent(transport=ours, login="browser") as agent,
            anyio.create_task_group() as tasks,
        ):
            for call in (runs, lists_sessions, lists_sessions):
                tasks.start_soon(fails, call)
            await handler.wait_refused(3)
            await handler.login_began.wait()
            await theirs.aclose()


@pytest.mark.virtual_time
async def test_whenever_the_agent_is_left_a_login_that_begins_ends_with_it() -> None:
    for moments in range(40):
        handler = LoginAgent("session/list")
        handler.may_answer = anyio.Event()

        async def ask(agent: Agent) -> None:
            with pytest.raises(AgentClosed):
                await agent.list_sessions()

        async with anyio.create_task_group() as tasks, opened(handler, login="browser") as agent:
            tasks.start_soon(ask, agent)
            for _ in range(moments):
                await checkpoint()


async def test_leaving_the_agent_ends_a_login() -> None:
    handler = LoginAgent("session/new")
    handler.may_answer = anyio.Event()
    async with opened(handler, login="browser") as agent:
        stream = agent.think().text("Go").stream()
        await handler.login_began.wait()
    with pytest.raises(ThoughtCancelled):
        await stream.result


@pytest.mark.parametrize("anyio_backend", [("trio", {"clock": trio.testing.MockClock(autojump_threshold=0)})])
async def test_a_login_is_no_silence() -> None:
    handler = LoginAgent("session/prompt")
    handler.may_answer = anyio.Event()
    async with scripted(agent=handler, login="browser") as agent:
        stream = agent.think().text("Go").stream(idle_timeout=10)
        await handler.login_began.wait()
        await anyio.sleep(100)
        handler.may_answer.set()
        assert await stream.result == "done"


@pytest.mark.parametrize(("method", "before"), [("session/new", "starting"), ("session/prompt", "prompted")])
async def test_a_run_shows_that_a_login_is_gone_through(method: str, before: str) -> None:
    handler = LoginAgent(method)
    handler.may_answer = anyio.Event()
    with anyio.fail_after(5):
        async with opened(handler, login="browser") as agent:
            stream = agent.think().text("Go").stream(include={"phase"})
            await handler.login_began.wait()
            assert stream.view.phase == "authenticating"
            handler.may_answer.set()
            assert await stream.result == "done"
            phases = [event.phase async for event in stream if isinstance(event, ev.PhaseChanged)]
            at = phases.index("authenticating")
            assert phases[at - 1 : at + 2] == [before, "authenticating", before]
            shown = {view.phase: view.seconds for view in stream.view.phases}
            assert shown["authenticating"] is not None


async def test_a_run_that_waits_for_no_login_shows_none() -> None:
    async with opened(LoginAgent("session/list"), login="browser") as agent:
        stream = agent.think().text("Go").stream(include={"phase"})
        await agent.list_sessions()
        await stream.wait()
        assert "authenticating" not in [view.phase for view in stream.view.phases]


# Which login


@pytest.mark.parametrize(
    ("wanted", "why"),
    [("nope", "is not among those that it offers"), ("console", "is for a person in a terminal")],
)
async def test_a_login_that_the_agent_does_not_offer_is_refused_at_once(wanted: str, why: str) -> None:
    with pytest.raises(LoginRequired, match=why) as caught:
        async with opened(LoginAgent(), login=wanted):
            pass
    assert caught.value.methods == METHODS


async def test_a_login_by_hand() -> None:
    handler = LoginAgent("session/new")
    async with opened(handler) as agent:
        assert agent.auth_methods == METHODS
        handler.error = RpcError(-32000, "The window was closed")
        with pytest.raises(LoginFailed, match="'browser' of agent 'scripted' failed: The window was closed"):
            await agent.authenticate("browser")
        handler.error = None
        for unknown in ("nope", "console"):
            with pytest.raises(CapabilityMissing):
                await agent.authenticate(unknown)
        await agent.authenticate("browser")
        await runs(agent)


async def test_a_login_may_ask() -> None:
    class Asks(LoginAgent):
        async def authenticate(
            self, request: s.AuthenticateRequest, proceed: Proceed
        ) -> s.AuthenticateResponse:
            form = s.ElicitationSchema(properties={"key": s.StringPropertySchema()})
            question = s.ElicitationFormMode(message="Your key?", request_id=1, requested_schema=form)
            answer = await self.client.create_elicitation(question)
            assert answer.content == {"key": "secret"}
            return await super().authenticate(request, proceed)

    def fills_in(question: object) -> dict[str, str]:
        assert isinstance(question, FormQuestion)
        assert question.session_id is None
        return {"key": "secret"}

    async with opened(Asks("session/new"), login="browser", permissions="ask", on_question=fills_in) as agent:
        await runs(agent)


async def test_terminal_logins_are_for_agents_that_we_start() -> None:
    handler = LoginAgent("session/new")
    async with opened(handler) as agent:
        assert not handler.requests("initialize")[0].client_capabilities.auth.terminal
        with pytest.raises(LoginRequired) as caught:
            await runs(agent)
    assert str(caught.value) == (
        "Agent 'scripted': it wants a login first (Authentication required). It offers:\n"
        '- browser: Browser (opens one): `await agent.authenticate("browser")`, or '
        'open_agent(login="browser")\n'
        "- console: Console: with the agent's own program, in a terminal"
    )
