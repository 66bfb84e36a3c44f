"""A server of runs that is about to close."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest
from web_stage import ADA, hello, read_entry, scripted_agent, served, started, watched

from thinkwell.events import Message, PhaseChanged
from thinkwell.journal import JournalError, MemoryJournal, RunRecord
from thinkwell.web import RunEnded, RunServer, ServerUnavailable

if TYPE_CHECKING:
    from scripted import Turn

LIMIT = 10


async def wait(turn: Turn) -> None:
    turn.say("Hello")
    await anyio.sleep_forever()


async def test_it_starts_no_more_runs_and_lets_watchers_go() -> None:
    async with served(wait) as stage:
        run = await stage.start()
        with anyio.fail_after(LIMIT):
            async with stage.server.watch(run.id, caller=ADA) as watcher:
                assert await watcher.next() is not None
                stage.server.begin_leaving()
                while await watcher.next() is not None:
                    pass
            assert await watched(stage.server, run.id) == [], "nor those who come later"
            with pytest.raises(ServerUnavailable, match="the server is closing"):
                await started(stage.server)
            assert (await stage.server.get(run.id, caller=ADA)).status == "running", "until it is left"


async def test_it_can_be_opened_again() -> None:
    async with served(hello) as stage:
        stage.server.begin_leaving()
    async with stage.server as server:
        assert isinstance((await watched(server, (await started(server)).id))[-1], RunEnded)


async def test_the_task_of_the_server_is_cancelled() -> None:
    journal = MemoryJournal()
    runs: list[RunRecord] = []
    with anyio.CancelScope() as scope:
        async with served(wait, journal=journal) as stage:
            runs += [await stage.start(thread="t"), await stage.start(thread="t")]
            async with stage.server.watch(runs[0].id, caller=ADA) as watcher:
                while (batch := await watcher.next()) is not None and b"Hello" not in batch.entries[-1].data:
                    pass
            scope.cancel()
            await anyio.sleep_forever()
    kept = [await journal.get(run.id) for run in runs]
    assert [run and run.status for run in kept] == ["interrupted"] * 2
    log = map(read_entry, await journal.read(runs[0].id))
    assert [entry.text for entry in log if isinstance(entry, Message)] == ["Hello"]


def test_the_event_loop_ends_before_the_server_is_left(anyio_backend_name: str) -> None:
    journal = MemoryJournal()
    agent, _ = scripted_agent(wait)

    async def forgotten() -> str:
        server = await RunServer({"scripted": agent}, journal=journal).__aenter__()
        run = await started(server)
        async with server.watch(run.id, caller=ADA) as watcher:
            while (batch := await watcher.next()) is not None and b"Hello" not in batch.entries[-1].data:
                pass
        return run.id

    run_id = anyio.run(forgotten, backend=anyio_backend_name)
    kept = anyio.run(journal.get, run_id)
    assert kept is not None
    assert kept.status == "interrupted"
    last = read_entry(anyio.run(journal.read, run_id)[-2])
    assert isinstance(last, PhaseChanged)
    assert last.phase == "cancelled"


class Slow(MemoryJournal):
    """A journal that answers one call only when its server has left."""

    def __init__(self, method: str) -> None:
        super().__init__()
        self.method = method
        self.called, self.go = anyio.Event(), anyio.Event()

    async def _slowly(self, method: str) -> None:
        if method == self.method:
            self.called.set()
            await self.go.wait()

    async def create(self, record: RunRecord) -> RunRecord:
        await self._slowly("create")
        raise JournalError("the journal", "it is closed")

    async def pick(self, kind: str, name: str) -> bytes | None:
        await self._slowly("pick")
        return None


@pytest.mark.parametrize(("method", "error"), [("create", JournalError), ("pick", ServerUnavailable)])
async def test_a_run_that_is_asked_for_while_it_leaves(method: str, error: type[Exception]) -> None:
    journal = Slow(method)
    agent, _ = scripted_agent(wait)
    raised: list[Exception] = []

    async with anyio.create_task_group() as tasks:

        async def start() -> None:
            try:
                await started(server, thread="talk")
            except (JournalError, ServerUnavailable) as exc:
                raised.append(exc)

        async with RunServer({"a": agent}, journal=journal) as server:
            tasks.start_soon(start)
            with anyio.fail_after(LIMIT):
                await journal.called.wait()
        journal.go.set()
    assert [type(exc) for exc in raised] == [error]
