"""Those who watch a run of another process: it is told of them, which delays nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest
from journals import run_record
from web_stage import ADA, scripted_agent, written

from thinkwell import events as ev
from thinkwell.journal import Entry, JournalConflict, JournalError, MemoryJournal
from thinkwell.web import RunEnded, RunServer

if TYPE_CHECKING:
    from scripted import Turn


pytestmark = pytest.mark.virtual_time


class Elsewhere(MemoryJournal):
    """A journal in which another process, which is slow, has all runs."""

    def __init__(self, takes: float, error: Exception | None = None) -> None:
        super().__init__()
        self.called: list[float] = []
        """When that was called."""
        self._takes = takes
        self._error = error

    async def call(self, run_id: str, body: bytes, *, timeout: float = 10.0) -> bytes:  # noqa: ASYNC109
        self.called.append(anyio.current_time())
        await anyio.sleep(min(self._takes, timeout))
        if self._error is not None:
            raise self._error
        if self._takes > timeout:
            raise JournalConflict("the journal", "its process does not answer")
        return b"{}"


END = b'{"type":"end","seq":1,"at":0,"status":"completed"}'


async def nothing(turn: Turn) -> None:
    pass


@pytest.mark.parametrize("takes", [0.0, 8.0, 1000.0])
@pytest.mark.parametrize("error", [None, JournalError("the journal", "there is no connection")])
async def test_a_run_elsewhere_is_told_of_watchers_in_time_and_delays_none(
    takes: float, error: Exception | None
) -> None:
    journal = Elsewhere(takes, error)
    agent, _ = scripted_agent(nothing)
    async with RunServer({"a": agent}, journal=journal, abandoned_after=30) as server:
        record = await journal.create(run_record("run-1", caller=ADA))
        began = anyio.current_time()
        async with server.watch(record.id, caller=ADA) as watcher:
            for seq in range(1, 61):
                await anyio.sleep(1)
                now = anyio.current_time()
                entry = written(ev.Message(text=f"{seq}", seq=seq, at=now - began))
                await journal.append(record.id, [entry])
                batch = await watcher.next()
                assert batch is not None
                assert batch.entries == (entry,)
                assert anyio.current_time() == now
            end = written(RunEnded(seq=61, at=60.0, status="completed"))
            await journal.finish(record.id, end, "completed", 60.0)
            assert await watcher.next() is not None
            assert watcher.ended
    assert [round(when - began) for when in journal.called] == [0, 10, 20, 30, 40, 50, 60][
        : len(journal.called)
    ]
    assert len(journal.called) >= 6


async def test_only_watchers_that_are_there_are_reported_elsewhere() -> None:
    journal = Elsewhere(0.0)
    agent, _ = scripted_agent(nothing)
    async with RunServer({"a": agent}, journal=journal, abandoned_after=30) as server:
        record = await journal.create(run_record("run-1", caller=ADA))
        async with server.watch(record.id, caller=ADA):
            async with server.watch(record.id, caller=ADA):
                await anyio.sleep(15)
            await anyio.sleep(20)
            told = len(journal.called)
            assert told >= 3
        await anyio.sleep(100)
        assert len(journal.called) <= told + 1


async def test_a_run_that_can_be_followed_no_further(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(MemoryJournal):
        async def wait(self, run_id: str, after: int) -> None:
            raise JournalError("the journal", "there is no connection")

    agent, _ = scripted_agent(nothing)
    async with RunServer({"a": agent}, journal=Broken()) as server:
        record = await server.journal.create(run_record("run-1", caller=ADA))
        async with server.watch(record.id, caller=ADA) as watcher:
            assert await watcher.next() is None
            assert not watcher.ended
    assert "Run run-1 can be followed no further: the journal: there is no connection" in caplog.messages


async def test_a_run_that_is_gone_is_followed_no_further() -> None:
    class Forgets(MemoryJournal):
        async def wait(self, run_id: str, after: int) -> None:
            await super().finish(run_id, Entry(1, END), "completed", 1)
            await super().delete(run_id)

    agent, _ = scripted_agent(nothing)
    async with RunServer({"a": agent}, journal=Forgets()) as server:
        record = await server.journal.create(run_record("run-1", caller=ADA))
        async with server.watch(record.id, caller=ADA) as watcher:
            assert await watcher.next() is None
            assert not watcher.ended


async def test_a_run_elsewhere_that_ends_while_it_is_to_be_cancelled() -> None:
    class Ends(MemoryJournal):
        async def call(self, run_id: str, body: bytes, *, timeout: float = 10.0) -> bytes:  # noqa: ASYNC109
            await super().finish(run_id, Entry(1, END), "completed", 1)
            raise JournalConflict("the journal", "its process does not answer")

    agent, _ = scripted_agent(nothing)
    async with RunServer({"a": agent}, journal=Ends()) as server:
        record = await server.journal.create(run_record("run-1", caller=ADA))
        await server.cancel(record.id, caller=ADA)
        assert (await server.get(record.id, caller=ADA)).status == "completed"


async def test_a_watcher_that_is_woken_for_nothing_waits_on() -> None:
    class Restless(MemoryJournal):
        async def wait(self, run_id: str, after: int) -> None:
            with anyio.move_on_after(1):
                await super().wait(run_id, after)

    agent, _ = scripted_agent(nothing)
    async with RunServer({"a": agent}, journal=Restless()) as server:
        record = await server.journal.create(run_record("run-1", caller=ADA))
        async with server.watch(record.id, caller=ADA) as watcher, anyio.create_task_group() as tasks:

            async def end() -> None:
                await anyio.sleep(10.5)
                await server.journal.finish(record.id, Entry(1, END), "completed", 1)

            tasks.start_soon(end)
            assert await watcher.next() is not None
            assert watcher.ended
