"""Two servers with one Redis: whatever is asked of one is true for both."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import anyio
import pytest
from asking import permission
from web_stage import ADA, Stage, end_of, entries_of, scripted_agent, watched

from thinkwell import events as ev
from thinkwell.journal import JournalConflict
from thinkwell.journal.redis import RedisJournal
from thinkwell.testing import ScriptedAgent, script
from thinkwell.web import (
    AnswerRefused,
    Batch,
    MessageNotTaken,
    QuestionClosed,
    RunEnded,
    RunServer,
    ServedAgent,
    ServerUnavailable,
)
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from anyio.abc import TaskStatus
    from redis_servers import RedisServer
    from scripted import Turn
    from web_stage import LogEntry


@dataclass
class Pair:
    """Two servers. The first has the runs that a test starts."""

    first: Stage
    second: Stage
    go: anyio.Event
    """Lets agents go on."""


@asynccontextmanager
async def pair(
    redis_server: RedisServer, name: str, *, abandoned_after: float | None = None
) -> AsyncGenerator[Pair]:
    go = anyio.Event()

    async def ask(turn: Turn) -> None:
        turn.say("I begin.")
        if "wait" in turn.text:
            await go.wait()
        else:
            response = await turn.client.request_permission(permission(turn.session_id))
            outcome = response.outcome
            turn.say(outcome.option_id if isinstance(outcome, s.SelectedPermissionOutcome) else "cancelled")

    servers = [
        RunServer(
            {"scripted": scripted_agent(ask)[0]},
            journal=RedisJournal(redis_server.url, prefix=name),
            abandoned_after=abandoned_after,
        )
        for _ in range(2)
    ]
    async with servers[0], servers[1]:
        yield Pair(Stage(servers[0]), Stage(servers[1]), go)


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """What the keys of a test begin with."""
    return cast("pytest.Item", request.node).name


async def test_a_run_of_one_is_watched_and_answered_at_the_other(
    redis_server: RedisServer, name: str
) -> None:
    async with pair(redis_server, name) as both:
        run = await both.first.start()
        there = both.second.server
        log: list[LogEntry] = []
        with anyio.fail_after(30):
            async with there.watch(run.id, caller=ADA) as watcher:
                while (batch := await watcher.next()) is not None:
                    log += entries_of(batch)
                    for entry in entries_of(batch):
                        if isinstance(entry, ev.QuestionAsked):
                            with pytest.raises(AnswerRefused):
                                await there.answer(run.id, entry.id, {"no": "form"}, caller=ADA)
                            with pytest.raises(QuestionClosed):
                                await there.answer(run.id, "other", "allow", caller=ADA)
                            state = await there.state(run.id, caller=ADA)
                            assert [each.id for each in state.view.questions] == [entry.id]
                            assert await there.waiting([state.record]) == {run.id}
                            await there.answer(run.id, entry.id, "allow", caller=ADA, by="Ada")
        end = end_of(log)
        assert end.result == "y"
        assert log == await both.first.ended(run.id)
        assert await there.waiting([run]) == set()  # as it was when it was started
        assert [each.id for each in await there.runs(caller=ADA)] == [run.id]
        with pytest.raises(QuestionClosed, match="the run has ended"):
            await there.answer(run.id, "q", "allow", caller=ADA)


async def test_many_watch_there_and_some_leave(redis_server: RedisServer, name: str) -> None:
    async with pair(redis_server, name) as both, anyio.create_task_group() as tasks:
        run = await both.first.start("wait")
        logs: list[list[LogEntry]] = []

        async def watch(after: int) -> None:
            logs.append(await watched(both.second.server, run.id, after=after))

        for after in range(8):
            tasks.start_soon(watch, after)
        async with both.second.server.watch(run.id, caller=ADA) as watcher:
            await watcher.next()
        async with both.first.server.watch(run.id, caller=ADA) as watcher:
            await watcher.next()
        both.go.set()
        whole = await both.first.ended(run.id)
        with anyio.fail_after(30):
            while len(logs) < 8:
                await anyio.wait_all_tasks_blocked()
        for log in logs:
            assert log == whole[-len(log) :]


async def test_a_run_of_one_is_cancelled_at_the_other(redis_server: RedisServer, name: str) -> None:
    async with pair(redis_server, name) as both:
        run = await both.first.start("wait")
        await both.second.server.cancel(run.id, caller=ADA)
        end = end_of(await both.second.ended(run.id))
        assert end.status == "cancelled"


async def test_a_run_of_one_is_steered_at_the_other(redis_server: RedisServer, name: str) -> None:
    told = script.says("I read it.").hears("login").says("It is fine.")
    agent = ServedAgent(open=lambda _: ScriptedAgent(told, steering=True).open())
    servers = [
        RunServer({"scripted": agent}, journal=RedisJournal(redis_server.url, prefix=name)) for _ in range(2)
    ]
    async with servers[0], servers[1]:
        here, there = map(Stage, servers)
        run = await here.start()
        async with there.server.watch(run.id, caller=ADA) as watcher:
            while b'"message"' not in b"".join(
                entry.data for entry in (await watcher.next() or Batch(())).entries
            ):
                pass
        await there.server.steer(run.id, "Also the login", caller=ADA)
        log = await there.ended(run.id)
        assert [e.text for e in log if isinstance(e, ev.Steered)] == ["Also the login"]
        with pytest.raises(MessageNotTaken, match="the run has ended"):
            await there.server.steer(run.id, "And the tests", caller=ADA)


async def test_who_watches_at_the_other_keeps_a_run_going(redis_server: RedisServer, name: str) -> None:
    async with pair(redis_server, name, abandoned_after=2) as both:
        run = await both.first.start("wait")
        async with both.second.server.watch(run.id, caller=ADA) as watcher:
            with anyio.move_on_after(4.5):  # real time: Redis lives in no other
                while await watcher.next() is not None:
                    pass
            assert (await both.first.server.get(run.id, caller=ADA)).status == "running"
        journal = both.first.server.journal
        with anyio.fail_after(30):
            while (record := await both.first.server.get(run.id, caller=ADA)).status == "running":
                await journal.wait(run.id, record.last_seq)  # which is not to watch
        assert record.status == "cancelled"


async def test_a_server_that_does_not_answer(redis_server: RedisServer, name: str) -> None:
    async with pair(redis_server, name) as both:
        run = await both.first.start("wait")
        both.first.server.journal.serve(None)
        with pytest.raises(ServerUnavailable, match="does not answer"):
            await both.second.server.cancel(run.id, caller=ADA)
        with pytest.raises(ServerUnavailable, match="whether the agent has taken it"):
            await both.second.server.steer(run.id, "More", caller=ADA)
        with pytest.raises(JournalConflict):
            await both.second.server.journal.call(run.id, b"{}")
        both.go.set()


async def test_those_who_watch_at_the_other_are_let_go(redis_server: RedisServer, name: str) -> None:
    async with pair(redis_server, name) as both, anyio.create_task_group() as tasks:
        run = await both.first.start("wait")
        ended: list[bool] = []

        async def watch(*, task_status: TaskStatus[None]) -> None:
            async with both.second.server.watch(run.id, caller=ADA) as watcher:
                task_status.started()
                while await watcher.next() is not None:
                    pass
                ended.append(watcher.ended)

        await tasks.start(watch)
        async with both.second.server.watch(run.id, caller=ADA) as watcher:
            await watcher.next()
        both.second.server.close_watchers()
        with anyio.fail_after(30):
            while not ended:
                await anyio.wait_all_tasks_blocked()
        assert ended == [False]
        both.go.set()


async def test_a_run_whose_entries_redis_has_forgotten_ends(redis_server: RedisServer, name: str) -> None:
    async with pair(redis_server, name) as both:
        run = await both.first.start("wait")
        with anyio.fail_after(30):
            for stage in (both.first, both.second):
                async with stage.server.watch(run.id, caller=ADA) as watcher:
                    await watcher.next()
            redis_server.ask("DEL", f"{name}:log:{run.id}")
            both.go.set()
            journal = both.second.server.journal
            while (record := await both.second.server.get(run.id, caller=ADA)).status == "running":
                await journal.wait(run.id, record.last_seq)
        assert record.status == "interrupted"
        (end,) = await both.second.ended(run.id)
        assert isinstance(end, RunEnded)
        assert end.status == "interrupted"


async def test_a_run_that_is_deleted_at_one_ends_for_those_at_the_other(
    redis_server: RedisServer, name: str
) -> None:
    async with pair(redis_server, name) as both:
        run = await both.first.start("wait")
        both.go.set()
        await both.first.ended(run.id)
        await both.second.server.delete(run.id, caller=ADA)
        assert await both.first.server.runs(caller=ADA) == []
