"""Journals that fail, wherever they are asked, and what agents say that no journal can keep."""

from __future__ import annotations

import logging
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from web_stage import ADA, Stage, end_of, hello, served, watched

from thinkwell.journal import Entry, JournalConflict, JournalError, MemoryJournal, Retention, RunRecord
from thinkwell.web import RunEnded, RunNotFound, ServerUnavailable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from scripted import Turn

    from thinkwell.journal import RunEnd
    from thinkwell.web import RunServer

pytestmark = pytest.mark.virtual_time


async def talk(turn: Turn) -> None:
    for word in ("One. ", "Two. ", "Three."):
        turn.say(word)
        await anyio.sleep(1)


# What agents say


@pytest.mark.parametrize(
    ("text", "result"),
    [(r'["\ud800 fine"]', ["\ufffd fine"]), (r'[{"\udc00": [1, null]}]', [{"\ufffd": [1, None]}])],
)
async def test_half_a_character_in_a_result_ends_nothing(text: str, result: object) -> None:
    async def half(turn: Turn) -> None:
        await turn.returns(result=text)

    async with served(half, hello) as stage:
        run = await stage.start(output={"type": "array"})
        end = end_of(await stage.ended(run.id))
        assert (end.status, end.result) == ("completed", result)
        other = await stage.start()
        assert isinstance((await stage.ended(other.id))[-1], RunEnded)


# Runs of servers that have died


async def test_a_run_of_a_dead_server_is_ended_though_the_journal_fails_first(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Failing(MemoryJournal):
        failures = 2

        async def finish(self, run_id: str, end: Entry, status: RunEnd, at: float) -> None:
            if self.failures:
                self.failures -= 1
                raise JournalError("the journal", "it is away")
            await super().finish(run_id, end, status, at)

    journal = Failing()
    async with journal:
        for run_id in ("run-1", "run-2", "run-3"):
            await journal.create(RunRecord(id=run_id, agent="scripted", created=0.0, caller=ADA))
    async with served(hello, journal=journal) as stage:
        await anyio.sleep(30)
        for run_id in ("run-1", "run-2", "run-3"):
            assert (await stage.server.get(run_id, caller=ADA)).status == "interrupted"
    assert "cannot be ended yet: the journal: it is away" in caplog.text


async def test_a_run_of_a_dead_server_of_another_version_is_ended() -> None:
    journal = MemoryJournal()
    async with journal:
        await journal.create(RunRecord(id="run-1", agent="scripted", created=0.0, caller=ADA))
        await journal.append("run-1", [Entry(1, b'{"type":"telepathy","seq":1,"at":2.5}')])
    async with served(hello, journal=journal) as stage:
        assert (await stage.server.get("run-1", caller=ADA)).status == "interrupted"
        assert [entry.seq for entry in await journal.read("run-1")] == [1, 2]


async def test_a_mistake_in_a_run_ends_no_other(caplog: pytest.LogCaptureFixture) -> None:
    class Mistaken(MemoryJournal):
        mistaken = True

        async def finish(self, run_id: str, end: Entry, status: RunEnd, at: float) -> None:
            if self.mistaken:
                raise ZeroDivisionError
            await super().finish(run_id, end, status, at)

    journal = Mistaken()
    async with served(hello, hello, journal=journal) as stage:
        run = await stage.start()
        seen = await watched(stage.server, run.id)
        assert not isinstance(seen[-1], RunEnded)
        journal.mistaken = False
        other = await stage.start()
        assert isinstance((await stage.ended(other.id))[-1], RunEnded)
        await anyio.sleep(60)
        assert (await stage.server.get(run.id, caller=ADA)).status == "interrupted"
    assert any(record.levelno == logging.ERROR and record.exc_info for record in caplog.records)


# A journal that fails once


METHODS = (
    "create",
    "append",
    "finish",
    "get",
    "runs",
    "read",
    "wait",
    "delete",
    "oldest",
    "size",
    "orphans",
    "call",
    "put",
    "pick",
)


class FailsOnce(MemoryJournal):
    """Fails at one of the calls of one method, before it does anything or behind that."""

    def __init__(self, method: str, call: int, *, behind: bool) -> None:
        super().__init__()
        self._calls = 0
        self.failed = False
        done: Callable[..., Awaitable[Any]] = getattr(self, method)

        async def failing(*args: Any, **options: Any) -> Any:
            self._calls += 1
            fails = self._calls == call
            result = None if fails and not behind else await done(*args, **options)
            if fails:
                self.failed = True
                raise JournalError("the journal", "it has failed")
            return result

        setattr(self, method, failing)


async def tried(action: Callable[[], Awaitable[Any]]) -> Any:
    """Do something, and once more where the journal has failed."""
    try:
        return await action()
    except JournalError:
        with suppress(RunNotFound):  # it was deleted before the journal failed
            return await action()


async def first_of(server: RunServer, run_id: str) -> None:
    async with server.watch(run_id, caller=ADA) as watcher:
        await watcher.next()


async def live(stage: Stage) -> None:
    """Have runs, of which one is cancelled, and forget what was."""
    server = stage.server
    runs = [await tried(lambda: stage.start(thread="talk")) for _ in range(2)]
    await tried(partial(first_of, server, runs[0].id))
    await tried(lambda: server.state(runs[0].id, caller=ADA))
    await tried(lambda: server.cancel(runs[1].id, caller=ADA))
    await tried(lambda: server.runs(caller=ADA))
    await tried(lambda: watched(server, runs[0].id))
    await anyio.sleep(30)
    await tried(lambda: server.delete(runs[1].id, caller=ADA))


@pytest.mark.parametrize(
    "behind", [False, pytest.param(True, marks=pytest.mark.long)], ids=["before", "behind"]
)
@pytest.mark.parametrize("method", METHODS)
async def test_a_journal_that_fails_at_one_call(method: str, *, behind: bool) -> None:
    call = 0
    while call < 40:
        call += 1
        journal = FailsOnce(method, call, behind=behind)
        async with served(talk, talk, talk, journal=journal, retention=Retention(max_bytes=10**9)) as stage:
            await live(stage)
            await anyio.sleep(90)
            assert "0 runs" in repr(stage.server)
            assert await tried(partial(journal.runs, status="running")) == []
        if not journal.failed:
            return


async def test_a_journal_that_keeps_a_run_when_its_server_has_left() -> None:
    class Slow(MemoryJournal):
        async def create(self, record: RunRecord) -> RunRecord:
            await anyio.sleep(10)
            return await super().create(record)

        async def close(self) -> None:
            await anyio.sleep(60)
            await super().close()

    async def late(stage: Stage) -> None:
        with pytest.raises(ServerUnavailable, match="closing"):
            await stage.start()
        refused.set()

    journal, refused = Slow(), anyio.Event()
    async with anyio.create_task_group() as tasks:
        async with served(hello, journal=journal) as stage:
            tasks.start_soon(late, stage)
            await anyio.sleep(1)
        await refused.wait()
    async with served(hello, journal=journal) as stage:
        assert [run.status for run in await stage.server.runs(caller=ADA)] == ["interrupted"]


async def test_a_run_that_cannot_be_kept_is_not_started() -> None:
    class Unwritable(MemoryJournal):
        async def create(self, record: RunRecord) -> RunRecord:
            raise JournalError("the journal", "nobody may write to it")

    async with served(hello, journal=Unwritable()) as stage:
        with pytest.raises(JournalError, match="nobody may write"):
            await stage.start()
        assert "0 runs" in repr(stage.server)
        assert stage.handler is not None
        assert not stage.handler.sent.prompts


async def test_a_run_that_has_been_ended_elsewhere_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    class Taken(MemoryJournal):
        async def orphans(self) -> list[RunRecord]:
            return [RunRecord(id="run-1", agent="a", created=0.0)]

        async def finish(self, run_id: str, end: Entry, status: RunEnd, at: float) -> None:
            raise JournalConflict("the journal", f"run {run_id} has ended")

    async with served(hello, journal=Taken()):
        pass
    assert "Run run-1 could not be ended" in caplog.text


async def test_a_run_that_two_delete_at_once() -> None:
    class Gone(MemoryJournal):
        async def delete(self, run_id: str) -> bool:
            await super().delete(run_id)
            return await super().delete(run_id)

    async with served(hello, journal=Gone()) as stage:
        run = await stage.start()
        await stage.ended(run.id)
        with pytest.raises(RunNotFound):
            await stage.server.delete(run.id, caller=ADA)
