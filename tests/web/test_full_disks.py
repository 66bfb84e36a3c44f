"""Servers whose disk is full: what they refuse, what they tell of the runs under way, and what they keep."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager, suppress
from shutil import disk_usage
from typing import TYPE_CHECKING

import anyio
import pytest
from anyio.lowlevel import checkpoint
from asking import permission
from journals import redis_journal, run_record
from letta_stage import letta_served
from redis_servers import running_redis
from serve_access.guarded import ADA as TOKEN
from serve_access.guarded import Guarded, access
from web_stage import ADA, Client, Stage, end_of, hello, served, watched

from thinkwell import events as ev
from thinkwell.journal import Entry, JournalUnwritable, MemoryJournal, SqliteJournal
from thinkwell.web import RunEnded, web_app

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from pathlib import Path

    from scripted import Turn

    from thinkwell.journal import RunEnd, RunRecord

pytestmark = pytest.mark.anyio

REASON = "the server can store nothing more: the disk is full; its operator has to make room, then try again"
"""What is said to a caller who wants more."""

SIZE = 4 * 1024 * 1024
"""Bytes of the disk."""


@contextmanager
def full(disk: Path) -> Generator[None]:
    """Fill a disk for the time of a block."""
    rest = disk / "rest"
    with rest.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))
    assert not disk_usage(disk).free
    yield
    rest.unlink()


@pytest.fixture
def disk(tmp_path: Path) -> Generator[Path]:
    """A small disk of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)]
    if sys.platform != "linux" or subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


class Talks:
    """A script that says one thing, and then more than there is room for."""

    def __init__(self) -> None:
        self.go_on = anyio.Event()

    async def __call__(self, turn: Turn) -> None:
        turn.say("One.")
        await self.go_on.wait()
        while True:
            turn.say("x" * 10_000)
            await checkpoint()


async def first_entry(stage: Stage, run_id: str) -> None:
    """Wait until something that a run has said is stored."""
    async with stage.server.watch(run_id, caller=ADA) as watcher:
        while (batch := await watcher.next()) is not None:
            if any(b"One." in entry.data for entry in batch.entries):
                return


async def test_a_server_on_a_full_disk(disk: Path) -> None:
    talks, journal = Talks(), SqliteJournal(disk / "runs.sqlite")
    with anyio.fail_after(60):
        async with served(talks, hello, journal=journal) as stage:
            app = web_app(stage.server, access=access())
            client = Client(app, headers={"authorization": f"Bearer {TOKEN}"})
            under_way = (await stage.start("Talk.")).id
            await first_entry(stage, under_way)
            with full(disk):
                # No run begins, in whatever way it is asked for.
                refused = await client.post("/api/runs", {"prompt": "Go."})
                assert refused.status == 507
                error = (await refused.json())["error"]
                assert error == {"code": "storage_full", "message": REASON}
                # The one under way ends, for those who watch it and for those who ask.
                talks.go_on.set()
                log = await watched(stage.server, under_way)
                end = end_of(log)
                assert end.status == "failed"
                assert end.error is not None
                assert end.error.name == "JournalUnwritable"
                assert "the disk is full" in end.error.message
                shown = await (await client.get(f"/api/runs/{under_way}")).json()
                assert (shown["run"]["status"], shown["seq"]) == ("failed", end.seq)
                assert "the disk is full" in shown["view"]["error"]["message"]
                assert [run.id for run in await stage.server.runs(caller=ADA, status="failed")] == [under_way]
                assert await stage.server.runs(caller=ADA, status="running") == []
                assert await watched(stage.server, under_way) == log, "also for those who come late"
                assert (await client.post("/api/runs", {"prompt": "Go."})).status == 507
            begun = await client.post("/api/runs", {"prompt": "Go."})
            assert begun.status == 201, "there is room again"
            assert (
                end_of(await stage.ended(begun.headers["location"].rpartition("/")[2])).status == "completed"
            )
        assert stage.handler is not None
        assert len(stage.handler.sent.prompts) == 2
        async with served(journal=SqliteJournal(disk / "runs.sqlite")) as stage:
            assert await watched(stage.server, under_way) == log, "nothing that was told is lost"


# In memory: what no disk can be brought to at will


NO_ROOM = JournalUnwritable("the journal", "the disk is full; make room, then try again", "the disk is full")


class Full(MemoryJournal):
    """A journal that has no room for some time."""

    full = False
    result_fits = True
    questions_fit = True

    def look(self) -> None:
        if self.full:
            raise NO_ROOM

    async def create(self, record: RunRecord) -> RunRecord:
        self.look()
        return await super().create(record)

    async def append(self, run_id: str, entries: Sequence[Entry]) -> None:
        self.look()
        await super().append(run_id, entries)

    async def finish(self, run_id: str, end: Entry, status: RunEnd, at: float) -> None:
        if status == "completed" and not self.result_fits:
            raise NO_ROOM
        self.look()
        await super().finish(run_id, end, status, at)

    async def put(self, kind: str, name: str, data: bytes | None) -> None:
        if data is not None and not self.questions_fit:
            raise NO_ROOM
        self.look()
        await super().put(kind, name, data)


async def fills(turn: Turn) -> None:
    """Say something before the disk is full, and something after that."""
    turn.say("One.")
    await anyio.sleep(10)
    turn.say("Two.")
    await anyio.sleep_forever()


@pytest.mark.virtual_time
class TestNoRoom:
    """With a clock that jumps."""

    async def test_an_end_is_stored_when_there_is_room_again(self) -> None:
        journal = Full()
        async with served(hello, fills, hello, journal=journal) as stage:
            server, before = stage.server, await stage.start()
            await stage.ended(before.id)
            run = await stage.start()
            await first_entry(stage, run.id)
            journal.full = True
            log = await stage.ended(run.id)
            assert [entry.text for entry in log if isinstance(entry, ev.Message)] == ["One."]
            assert end_of(log).status == "failed"
            with pytest.raises(JournalUnwritable, match="the disk is full"):
                await stage.start()
            state = await server.state(run.id, caller=ADA)
            assert (state.record.status, state.seq, state.end) == ("failed", len(log), log[-1])
            await server.cancel(run.id, caller=ADA)
            listed = [
                await server.runs(caller=ADA, status=s, limit=1) for s in ("failed", "completed", "running")
            ]
            assert [[one.id for one in page] for page in listed] == [[run.id], [before.id], []]
            assert [one.status for one in await server.runs(caller=ADA)] == ["failed", "completed"]
            assert await watched(server, run.id, after=len(log) - 1) == log[-1:]
            journal.full = False
            await anyio.sleep(10)
            stored = await journal.get(run.id)
            assert stored == await server.get(run.id, caller=ADA)
            assert await watched(server, run.id) == log
            assert (await stage.start()).status == "running"

    async def test_a_result_that_has_no_room(self) -> None:
        journal = Full()
        journal.result_fits = False
        async with served(hello, journal=journal) as stage:
            run = await stage.start()
            end = end_of(await stage.ended(run.id))
            assert (end.status, end.result) == ("failed", None)
            assert (await stage.server.get(run.id, caller=ADA)).status == "failed"
            assert await journal.orphans() == []

    async def test_a_question_that_has_no_room(self) -> None:
        async def asks(turn: Turn) -> None:
            await turn.client.request_permission(permission(turn.session_id))

        journal = Full()
        async with served(asks, journal=journal) as stage:
            run = await stage.start()
            journal.questions_fit = False
            *log, end = await stage.ended(run.id)
            assert isinstance(log[-1], ev.QuestionAsked)
            assert isinstance(end, RunEnded)
            assert (end.status, end.seq) == ("failed", len(log) + 1)
            assert len(await journal.read(run.id)) == end.seq

    async def test_a_run_of_a_dead_server_has_ended_though_there_is_no_room(self) -> None:
        journal = Full()
        async with journal:
            await journal.create(run_record("run-1"))
        journal.full = True
        async with served(journal=journal) as stage:
            assert (await stage.server.get("run-1", caller=ADA)).status == "interrupted"
            assert await stage.ended("run-1") == [RunEnded(seq=1, at=0.0, status="interrupted")]
            journal.full = False
            await anyio.sleep(10)
            stored = await journal.get("run-1")
            assert stored is not None
            assert stored.status == "interrupted"

    async def test_a_run_that_another_server_has_ended_meanwhile(self) -> None:
        journal = Full()
        async with served(fills, hello, journal=journal) as stage:
            run = await stage.start()
            await first_entry(stage, run.id)
            journal.full = True
            end = end_of(await stage.ended(run.id))
            journal.full = False
            await journal.finish(run.id, Entry(end.seq, b"{}"), "interrupted", 1.0)
            await stage.ended((await stage.start()).id)
            assert (await stage.server.get(run.id, caller=ADA)).status == "interrupted"

    async def test_what_else_has_no_room(self) -> None:
        journal = Full()
        journal.full = True
        reply = await Guarded(journal=journal).log_in()
        assert (reply.status, reply.code) == (507, "storage_full")
        async with letta_served(hello, journal=journal) as stage:
            assert await stage.post("/v1/agents/", {}, 507) == {"detail": REASON}


# In Redis


async def test_redis_has_no_memory_left() -> None:
    with running_redis() as redis, anyio.fail_after(60):
        talks, journal = Talks(), redis_journal(redis.url)
        async with served(talks, hello, journal=journal) as stage:
            run = await stage.start()
            await first_entry(stage, run.id)
            redis.ask("CONFIG", "SET", "maxmemory", "1")
            with pytest.raises(JournalUnwritable, match="its memory is full"):
                await stage.start()
            talks.go_on.set()
            end = end_of(await stage.ended(run.id))
            assert end.error is not None
            assert "the memory of Redis is full" in end.error.message
            redis.ask("CONFIG", "SET", "maxmemory", "0")
            await stage.ended((await stage.start()).id)
            assert (await journal.get(run.id)) == await stage.server.get(run.id, caller=ADA)
