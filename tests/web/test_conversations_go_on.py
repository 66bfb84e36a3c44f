"""Conversations that outlive their session, their agent and their server."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import pytest
from scripted import EVERY_SESSION_CALL, Played, Proceed, playing, scripted
from web_stage import ADA, Stage, end_of, hello, served, watched

from thinkwell import events as ev
from thinkwell import open_agent
from thinkwell.journal import JournalError, MemoryJournal, Retention
from thinkwell.web import RunServer, ServedAgent
from thinkwell_acp import ConnectionClosed, RpcError, memory_transport_pair
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from contextlib import AbstractAsyncContextManager

    from thinkwell import Agent
    from thinkwell_acp import Transport


FORGOTTEN = "The agent does not remember what was said before in this conversation"


def agents_of(handler: Played) -> dict[str, ServedAgent]:
    def opened(permissions: object) -> AbstractAsyncContextManager[Agent]:
        return scripted(agent=handler)

    return {"scripted": ServedAgent(open=opened)}


class SharedJournal(MemoryJournal):
    """A journal that two servers have, as if it were on another machine."""

    users = 0

    async def open(self) -> None:
        self.users += 1
        if self.users == 1:
            await super().open()

    async def close(self) -> None:
        self.users -= 1
        if not self.users:
            await super().close()


async def one_turn(stage: Stage) -> list[ev.Notice]:
    """Have a turn of the conversation, and return what the run was told of it."""
    run = await stage.start(thread="talk")
    log = await watched(stage.server, run.id)
    end = end_of(log)
    assert end.status == "completed"
    return [entry for entry in log if isinstance(entry, ev.Notice)]


async def test_it_goes_on_after_the_server_was_closed() -> None:
    journal = MemoryJournal()
    handler = Played([hello], capabilities=EVERY_SESSION_CALL)
    for _ in range(3):
        async with served(agents=agents_of(handler), journal=journal) as stage:
            assert await one_turn(stage) == []
    assert [(opened.method, opened.asked_id) for opened in handler.sent.sessions] == [
        ("session/new", None),
        *[("session/resume", "session-1")] * 2,
    ]


async def test_what_an_agent_repeats_on_loading_is_not_shown_again() -> None:
    journal = MemoryJournal()
    capabilities = s.AgentCapabilities(load_session=True, mcp_capabilities=s.McpCapabilities(acp=True))
    handler = Played([hello], capabilities=capabilities)
    handler.replay = [s.AgentMessageChunk(content=s.TextContent(text="Old."))]
    for _ in range(2):
        async with served(agents=agents_of(handler), journal=journal) as stage:
            run = await stage.start(thread="talk")
            end = end_of(await watched(stage.server, run.id))
            assert end.result == "Hello."
    assert [opened.method for opened in handler.sent.sessions] == ["session/new", "session/load"]


async def test_an_agent_that_cannot_go_on_begins_anew_and_says_so() -> None:
    journal = MemoryJournal()
    handler = Played([hello])
    async with served(agents=agents_of(handler), journal=journal) as stage:
        assert await one_turn(stage) == []
    async with served(agents=agents_of(handler), journal=journal) as stage:
        (notice,) = await one_turn(stage)
        assert (notice.severity, notice.title) == ("warning", FORGOTTEN)
        assert await one_turn(stage) == []


async def test_a_session_that_the_agent_does_not_know_any_more() -> None:
    journal = MemoryJournal()
    forgets = {"session/resume": RpcError(-32002, "There is no such session")}
    handler = Played([hello], capabilities=EVERY_SESSION_CALL, fails_at=forgets)
    async with served(agents=agents_of(handler), journal=journal) as stage:
        await one_turn(stage)
    async with served(agents=agents_of(handler), journal=journal) as stage:
        (notice,) = await one_turn(stage)
        assert notice.title == FORGOTTEN
    assert handler.asked.count("session/new") == 2


async def test_it_goes_on_after_a_turn_on_another_server() -> None:
    journal = SharedJournal()
    ours, theirs = (Played([hello], capabilities=EVERY_SESSION_CALL) for _ in range(2))
    async with (
        served(agents=agents_of(ours), journal=journal) as here,
        RunServer(agents_of(theirs), journal=journal) as other,
    ):
        there = Stage(other)
        for stage, opened in (
            (here, (0, 0)),
            (there, (0, 1)),
            (there, (0, 1)),
            (here, (1, 1)),
            (here, (1, 1)),
        ):
            assert await one_turn(stage) == []
            assert tuple(len(agent.sent.all("session/resume")) for agent in (ours, theirs)) == opened


async def test_conversations_of_two_callers_by_one_name_are_two() -> None:
    async with served(hello) as stage:
        for caller in (ADA, "bob"):
            run = await stage.start(thread="talk", caller=caller)
            await stage.ended(run.id, caller=caller)
        assert stage.handler is not None
        assert len(stage.handler.sent.sessions) == 2


async def test_an_agent_that_dies_while_it_is_to_go_on() -> None:
    journal = MemoryJournal()
    handler = Played([hello], capabilities=EVERY_SESSION_CALL)
    async with served(agents=agents_of(handler), journal=journal) as stage:
        await one_turn(stage)

    async def die(request: s.ResumeSessionRequest, proceed: Proceed) -> object:
        again.client.connection.end(ConnectionClosed())
        return await proceed(request)

    again = Played([hello], capabilities=EVERY_SESSION_CALL, answers={"session/resume": die})
    async with served(agents=agents_of(again), journal=journal) as stage:
        run = await stage.start(thread="talk")
        end = end_of(await stage.ended(run.id))
    assert end.error is not None
    assert end.error.name == "AgentExited"
    assert "session/new" not in again.asked, "nor does it begin anew"


@pytest.mark.virtual_time
class TestTime:
    """In virtual time."""

    async def test_a_conversation_without_runs_is_forgotten(self) -> None:
        journal = MemoryJournal()
        retention = Retention(max_age=0)
        async with served(hello, journal=journal, retention=retention, idle_after=10_000) as stage:
            await one_turn(stage)
            await anyio.sleep(9_000)
            assert await stage.server.runs(caller=ADA) == []
            assert len(await journal.pick_all("thread")) == 1  # its session is open
            await anyio.sleep(3_000)
            assert len(await journal.pick_all("thread")) == 1  # it may have begun just now
            await anyio.sleep(3_600)
            assert await journal.pick_all("thread") == []
            assert await one_turn(stage) == []

    async def test_one_that_has_a_run_is_kept(self) -> None:
        journal = MemoryJournal()
        async with served(hello, journal=journal, idle_after=1) as stage:
            await one_turn(stage)
            await anyio.sleep(20_000)
            assert len(await journal.pick_all("thread")) == 1
            (run,) = await stage.server.runs(caller=ADA)
            await stage.server.delete(run.id, caller=ADA)
            await anyio.sleep(7_300)
            assert await journal.pick_all("thread") == []

    async def test_what_another_version_has_kept_ends_nothing(self) -> None:
        journal = MemoryJournal()
        async with served(hello, journal=journal, idle_after=None) as stage:
            for key in ("no JSON", '{"place":"of another form"}'):
                await journal.put("thread", key, b"{}")
            await anyio.sleep(10_000)
            assert await one_turn(stage) == []
            assert len(await journal.pick_all("thread")) == 3

    async def test_a_journal_that_fails_ends_nothing(self) -> None:
        class Broken(MemoryJournal):
            async def pick_all(self, kind: str) -> list[tuple[str, bytes]]:
                raise JournalError("the journal", "there is no connection")

        async with served(hello, journal=Broken(), idle_after=None) as stage:
            await one_turn(stage)
            await anyio.sleep(10_000)
            assert await one_turn(stage) == []

    async def test_a_run_whose_agent_is_opened_again_is_cancelled(self) -> None:
        """The agent has died between two turns, which the second one is the first to notice."""
        opened: list[Transport] = []

        @asynccontextmanager
        async def open_slowly(permissions: object) -> AsyncGenerator[Agent]:
            if opened:
                await anyio.sleep(60)
            ours, theirs = memory_transport_pair()
            opened.append(theirs)
            async with AsyncExitStack() as stack:
                await stack.enter_async_context(playing(theirs, Played([hello, hello])))
                yield await stack.enter_async_context(open_agent("scripted", transport=ours))

        async with RunServer({"scripted": ServedAgent(open=open_slowly)}) as server:
            stage = Stage(server)
            first = await stage.start(thread="talk")
            await watched(server, first.id)
            await opened[0].aclose()
            await anyio.sleep(1)
            run = await stage.start(thread="talk")
            await anyio.sleep(10)
            assert len(opened) == 1
            await server.cancel(run.id, caller=ADA)
            end = end_of(await stage.ended(run.id))
            assert end.status == "cancelled"
            assert len(opened) == 1
