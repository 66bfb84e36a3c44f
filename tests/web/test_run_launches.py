"""What a run waits for is in its log at once: an agent that is launched, a session, another run."""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
from msgspec.structs import replace
from scripted import Played, Proceed, scripted
from web_stage import ADA, PATIENCE, end_of, entries_of, hello, served, started, watched

from thinkwell import events as ev
from thinkwell.web import RunServer, ServedAgent, served_agent
from thinkwell_acp import RpcError
from thinkwell_acp import schema as s
from thinkwell_acp.errors import AUTH_REQUIRED

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    import pytest
    from scripted import Turn
    from web_stage import LogEntry

    from thinkwell import Agent, PermissionMode, PermissionPolicy
    from thinkwell.web import Watcher


class SlowAgent(Played):
    """An agent that takes its time to start, and to open a session."""

    def __init__(self) -> None:
        super().__init__([hello])
        self.may_start, self.may_open = anyio.Event(), anyio.Event()

    async def initialize(self, request: Any, proceed: Proceed) -> Any:
        await self.may_start.wait()
        return await super().initialize(request, proceed)

    async def open_session(self, request: Any, proceed: Proceed) -> Any:
        await self.may_open.wait()
        return await super().open_session(request, proceed)


def slow_agent() -> tuple[ServedAgent, SlowAgent]:
    handler = SlowAgent()
    return ServedAgent(open=lambda policy: scripted(agent=handler, permissions=policy)), handler


def phases(log: Sequence[LogEntry]) -> list[str]:
    return [entry.phase for entry in log if isinstance(entry, ev.PhaseChanged)]


WORK = ["connecting_tools", "tools_ready", "prompted", "responding", "completed"]
"""What comes when an agent has its session."""


async def next_phase(watcher: Watcher) -> str:
    """Wait for the next entry, which is a phase."""
    with anyio.fail_after(PATIENCE):
        batch = await watcher.next()
    assert batch is not None
    (entry,) = entries_of(batch)
    assert isinstance(entry, ev.PhaseChanged)
    return entry.phase


async def test_a_run_tells_at_once_that_its_agent_is_launched() -> None:
    agent, handler = slow_agent()
    async with RunServer({"slow": agent}) as server:
        run = await started(server)
        async with server.watch(run.id, caller=ADA) as watcher:
            assert await next_phase(watcher) == "initializing"
            state = await server.state(run.id, caller=ADA)
            assert (state.seq, state.view.phase) == (1, "initializing")
            handler.may_start.set()
            assert await next_phase(watcher) == "starting"
            handler.may_open.set()
        log = await watched(server, run.id)

    assert [entry.seq for entry in log] == list(range(1, len(log) + 1))
    assert phases(log) == ["initializing", "starting", *WORK]
    times = [entry.at for entry in log]
    assert times[0] >= 0
    assert times == sorted(times)


async def test_who_comes_in_the_middle_of_a_launch_is_told_how_far_it_is() -> None:
    agent, handler = slow_agent()
    handler.may_open.set()
    async with RunServer({"slow": agent}) as server:
        first = await started(server)
        async with server.watch(first.id, caller=ADA) as watcher:
            await next_phase(watcher)
        second = await started(server)
        async with server.watch(second.id, caller=ADA) as watcher:
            assert await next_phase(watcher) == "initializing"
        handler.may_start.set()
        for run in (first, second):
            log = await watched(server, run.id)
            assert phases(log) == ["initializing", "starting", *WORK]
        third = await started(server)
        assert phases(await watched(server, third.id)) == ["starting", *WORK]


async def test_a_run_that_waits_for_its_turn_says_so() -> None:
    go = anyio.Event()

    async def wait(turn: Turn) -> None:
        await go.wait()

    async with served(wait, hello) as stage:
        first = await stage.start(thread="talk")
        async with stage.server.watch(first.id, caller=ADA) as watcher:
            await watcher.next()
        second = await stage.start(thread="talk")
        async with stage.server.watch(second.id, caller=ADA) as watcher:
            assert await next_phase(watcher) == "starting"
        go.set()
        log = await stage.ended(second.id)
    waiting, starting, *_ = [entry for entry in log if isinstance(entry, ev.PhaseChanged)]
    assert (waiting.phase, waiting.detail) == ("starting", "another run of the conversation goes first")
    assert (starting.phase, starting.detail) == ("starting", "")
    assert phases(log)[1:] == ["starting", *WORK]
    assert [entry.seq for entry in log] == list(range(1, len(log) + 1))


async def test_an_agent_that_cannot_be_launched_leaves_a_log_that_says_how_far_it_came() -> None:
    async with RunServer({"none": served_agent(command=["there-is-no-such-program"])}) as server:
        run = await started(server)
        log = await watched(server, run.id)
        state = await server.state(run.id, caller=ADA)
    assert phases(log) == ["launching", "failed"]
    end = end_of(log)
    assert (end.seq, end.status) == (3, "failed")
    assert state.view.phase == "failed"


async def test_a_run_that_is_cancelled_while_its_agent_is_launched() -> None:
    agent, _ = slow_agent()
    async with RunServer({"slow": agent}) as server:
        run = await started(server)
        async with server.watch(run.id, caller=ADA) as watcher:
            await next_phase(watcher)
            await server.cancel(run.id, caller=ADA)
        log = await watched(server, run.id)
    assert phases(log) == ["initializing", "cancelled"]


class LoginAgent(Played):
    """An agent that opens no session before somebody has logged in."""

    def __init__(self) -> None:
        super().__init__([hello], answers={"authenticate": self.authenticate})
        self.may_log_in = anyio.Event()
        self.is_logged_in = False

    async def initialize(self, request: Any, proceed: Proceed) -> Any:
        browser = s.AuthMethodAgent(id="browser", name="In the browser")
        return replace(await super().initialize(request, proceed), auth_methods=(browser,))

    async def authenticate(self, _request: object, _proceed: Proceed) -> s.AuthenticateResponse:
        await self.may_log_in.wait()
        self.is_logged_in = True
        return s.AuthenticateResponse()

    async def open_session(self, request: Any, proceed: Proceed) -> Any:
        if not self.is_logged_in:
            raise RpcError(AUTH_REQUIRED, "Authentication required")
        return await super().open_session(request, proceed)


async def test_a_run_whose_agent_wants_a_login_says_so() -> None:
    handler = LoginAgent()
    agent = ServedAgent(open=lambda policy: scripted(agent=handler, permissions=policy, login="browser"))
    async with RunServer({"login": agent}) as server:
        run = await started(server)
        async with server.watch(run.id, caller=ADA) as watcher:
            assert [await next_phase(watcher) for _ in range(3)] == [
                "initializing",
                "starting",
                "authenticating",
            ]
        handler.may_log_in.set()
        log = await watched(server, run.id)
    assert phases(log)[3:5] == ["starting", "connecting_tools"]


async def test_a_later_login_of_others_is_none_of_a_run_s() -> None:
    handler, closing = LoginAgent(), list[str]()
    handler.may_log_in.set()

    @asynccontextmanager
    async def opened(policy: PermissionMode | PermissionPolicy) -> AsyncGenerator[Agent]:
        async with scripted(agent=handler, permissions=policy, login="browser") as agent:
            yield agent
            handler.is_logged_in = False
            async with agent.session() as session:
                closing.append(session.id)

    async with RunServer({"login": ServedAgent(open=opened)}) as server:
        run = await started(server)
        log = await watched(server, run.id)
    assert phases(log)[1:5] == ["starting", "authenticating", "starting", "connecting_tools"]
    assert len(closing) == 1


async def test_the_log_of_the_program_has_one_name_for_a_run(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "thinkwell"):
        async with served(hello) as stage:
            run = await stage.start()
            await stage.ended(run.id)
    names = {message.split()[1] for message in caplog.messages if message.startswith("Run ")}
    assert names == {run.id}
