"""Parts of the core, each made and used without what is above it."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import anyio
import pytest
from scripted import EVERY_SESSION_CALL, Played, playing
from scripted import Turn as ScriptedTurn

# Private: what one part promises to the next, no run can be made to show.
from thinkwell import events as ev
from thinkwell._core.agent.launch import StderrLines
from thinkwell._core.agent.login import SharedLogin
from thinkwell._core.log.observers import Observers
from thinkwell._core.log.owner import Owner
from thinkwell._core.log.run_log import RunLog
from thinkwell._core.protocol.dialect import Dialect
from thinkwell._core.protocol.tool_calls import ToolCalls
from thinkwell._core.protocol.updates import Mapper
from thinkwell._core.session.host import SessionHost
from thinkwell._core.session.routes import SessionRoutes
from thinkwell._core.session.session import WireSession
from thinkwell._core.session.session_life import SessionLife
from thinkwell._core.session.tool_hosts import ToolHosts
from thinkwell._core.turn.turn import HURRIED, LAST, PATIENT, Patience, Turn, TurnLife
from thinkwell.testing import ScriptedAgent, script
from thinkwell_acp import Client, ClientHandler, ConnectionClosed, connect, memory_transport_pair
from thinkwell_acp import schema as s
from thinkwell_acp._tasks import background_tasks
from thinkwell_acp.mcp import ToolOutput, ToolServer

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from thinkwell_acp.client import PromptOutcome


class Updates(ClientHandler):
    """Hands updates on."""

    def __init__(self, take: Callable[[Sequence[s.SessionNotification]], None]) -> None:
        self._take = take

    def session_updates(self, batch: Sequence[s.SessionNotification], /) -> None:
        self._take(batch)


def _ignore(_batch: object) -> None:
    pass


def _claimed(_session_id: str, _cwd: str) -> None:
    pass


@asynccontextmanager
async def client_of(
    agent: ScriptedAgent, take: Callable[[Sequence[s.SessionNotification]], None] = _ignore
) -> AsyncGenerator[Client]:
    """Connect to an agent in memory, with nothing of the product's between."""
    ours, theirs = memory_transport_pair()
    async with playing(theirs, agent), connect(ours, Updates(take)) as client:
        await client.initialize(
            s.InitializeRequest(protocol_version=1, client_capabilities=s.ClientCapabilities())
        )
        yield client


async def says_hello(turn: ScriptedTurn) -> None:
    turn.say("Hello")


async def test_a_turn_needs_no_agent_and_no_session() -> None:
    log, noted = RunLog(ev.ALL_TYPES, clock=lambda: 0.0), list[object]()
    mapper = Mapper(log, ToolCalls(), noted.append, noted.append, report=Dialect().report)
    outcomes: list[PromptOutcome] = []
    async with client_of(Played([says_hello]), mapper.extend) as client:
        opened = await client.new_session(s.NewSessionRequest(cwd="/", mcp_servers=()))
        request = s.PromptRequest(session_id=opened.session_id, prompt=(s.TextContent(text="Hi"),))
        turn = Turn(client, request, outcomes.append)
        assert turn.life is TurnLife.SENT
        await turn.wait()
    assert (turn.life, turn.over, turn.stuck) == (TurnLife.ENDED, True, False)
    assert [event.text for event in log.events if isinstance(event, ev.Message)] == ["Hello"]
    (outcome,) = outcomes
    assert isinstance(outcome, s.PromptResponse)
    assert outcome.stop_reason == "end_turn"


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("patience", "seconds", "to_kill"), [(PATIENT, 10 + 5, True), (HURRIED, 2 + 5, True), (LAST, 2, False)]
)
async def test_a_turn_that_does_not_end_is_lost_when_patience_is_over(
    patience: Patience, seconds: float, to_kill: bool
) -> None:
    stuck: list[str] = []
    begun = anyio.Event()
    deaf = ScriptedAgent(script.says("Wait").hangs(deaf=True), complete=False)

    def hear(_batch: object) -> None:
        begun.set()

    async with client_of(deaf, hear) as client:
        opened = await client.new_session(s.NewSessionRequest(cwd="/", mcp_servers=()))
        request = s.PromptRequest(session_id=opened.session_id, prompt=(s.TextContent(text="Hi"),))
        turn = Turn(client, request, _ignore)
        await begun.wait()
        turn.cancel(patience)
        began = anyio.current_time()
        assert await turn.wind_down(partial(stuck.append, "stuck")) is to_kill
        assert anyio.current_time() - began == pytest.approx(seconds, abs=0.01)
    assert turn.life is TurnLife.LOST  # an answer that comes after all, as here by the end, changes nothing
    assert stuck == (["stuck"] if to_kill else [])


async def test_a_session_needs_no_agent() -> None:
    routes: SessionRoutes[WireSession] = SessionRoutes("played", _claimed)
    withdrawn: list[str] = []
    async with (
        background_tasks() as tasks,
        client_of(Played([says_hello], capabilities=EVERY_SESSION_CALL), routes.updates) as client,
    ):
        host = SessionHost(
            name="played",
            client=client,
            owner=Owner("played"),
            dialect=Dialect(),
            routes=routes,
            tool_hosts=ToolHosts(client, tasks, None),
            workspace=None,
            observers=Observers(),
            whole_fields=False,
            keeps_system=False,
            withdraw=withdrawn.append,
        )
        session = WireSession(host, "/")
        await session.open(())
        assert routes.get(session.id) is session
        request = s.PromptRequest(session_id=str(session.id), prompt=(s.TextContent(text="Hi"),))
        await Turn(client, request, _ignore).wait()
        said = [event for event in session.outside.log.events if isinstance(event, ev.Message)]
        assert [event.text for event in said] == ["Hello"]
        await session.close()
        assert session.life is SessionLife.CLOSED
    assert withdrawn == [session.id]


# Tasks that never begin


async def test_who_waits_for_a_task_that_never_begins_can_be_told() -> None:
    told: list[int] = []
    begun = anyio.Event()

    async def task() -> None:
        begun.set()

    async with background_tasks() as tasks:
        tasks.start_soon(task, never=lambda: told.append(1))
        await begun.wait()
        assert not told
        tasks.start_soon(task, never=lambda: told.append(2))
    assert told == [2]
    tasks.start_soon(task, never=lambda: told.append(3))
    assert told == [2, 3]


async def test_a_way_that_cannot_be_opened_any_more_fails_as_the_connection_did() -> None:
    async def call(*_: object) -> ToolOutput:
        raise AssertionError("nobody calls")

    server = ToolServer("late", call, version="1")
    ours, _ = memory_transport_pair()
    with anyio.fail_after(10):
        async with connect(ours) as client, background_tasks() as tasks:
            hosts = ToolHosts(client, tasks, "stdio")
            tasks.cancel()
            with pytest.raises(ConnectionClosed):
                await hosts.add(server, hosts.way)


@pytest.mark.parametrize("when", ["just before", "before"])
async def test_a_login_that_cannot_begin_any_more_fails_as_the_connection_did(when: str) -> None:
    async def authenticate(_: str) -> None:
        raise AssertionError("nobody calls")

    with anyio.fail_after(10):
        async with anyio.create_task_group() as callers:
            async with background_tasks() as tasks:
                login = SharedLogin("late", "browser", tasks, authenticate)

                async def ask() -> None:
                    with pytest.raises(ConnectionClosed):
                        await login.log_in()
                    assert not login.running

                if when == "just before":
                    callers.start_soon(ask)
                    tasks.cancel()
            if when == "before":
                await ask()


def test_a_line_of_standard_error_without_end_is_told_in_pieces() -> None:
    told: list[str] = []
    lines = StderrLines(told.append)
    for data in (b"." * 150_000, b"!\nshort\n", b"cut", b""):
        lines.feed(data)
    assert list(map(len, told)) == [64 * 1024, 64 * 1024, 150_001 - 128 * 1024, 5, 3]
