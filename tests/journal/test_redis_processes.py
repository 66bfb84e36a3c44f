"""Several servers with one Redis: what each sees of the others, and who gets the runs of one that dies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest
from journals import entries, redis_journal, run_record, seqs
from redis_peers import redis_peer

from thinkwell.journal import Entry, JournalConflict

if TYPE_CHECKING:
    from collections.abc import Callable

    from redis_servers import RedisServer

    from thinkwell.journal import RunRecord
    from thinkwell.journal.redis import RedisJournal

PATIENCE = 10.0
"""Less than the time after which a journal looks for itself: whoever is told of nothing, fails."""

SHORT = 0.6
"""Seconds of a lease that is to end in the test."""


@pytest.fixture
def new(redis_server: RedisServer, prefix: str) -> Callable[..., RedisJournal]:
    """Makes journals of one place."""

    def make(*, lease: float = 15.0) -> RedisJournal:
        return redis_journal(redis_server.url, prefix=prefix, lease=lease)

    return make


async def orphans_of(journal: RedisJournal, count: int = 1) -> list[RunRecord]:
    """Wait for runs whose process has died."""
    found: list[RunRecord] = []
    with anyio.fail_after(30):
        while len(found) < count:
            found += await journal.orphans()
    return found


async def test_what_one_stores_the_others_see(new: Callable[..., RedisJournal]) -> None:
    async with new() as one, new() as other:
        record = await one.create(run_record("run-1", key="k"))
        assert await other.create(run_record("run-2", key="k")) == record
        await one.append("run-1", entries(1, 3))
        assert seqs(await other.read("run-1")) == [1, 2, 3]
        assert [run.last_seq for run in await other.runs(status="running")] == [3]
        await one.finish("run-1", Entry(4, b"{}"), "completed", 5.0)
        assert [(run.id, run.status) for run in await other.oldest()] == [("run-1", "completed")]
        assert await other.delete("run-1")
        assert await one.get("run-1") is None


async def test_who_waits_is_told_at_once_by_another_process(new: Callable[..., RedisJournal]) -> None:
    async with new() as one, new() as other, anyio.create_task_group() as tasks:
        await one.create(run_record("run-1"))
        turns = anyio.Event()

        async def watch() -> None:
            seen = 0
            while seen < 21:
                await other.wait("run-1", seen)
                for entry in await other.read("run-1", seen):
                    assert entry.seq == seen + 1
                    seen = entry.seq
                turns.set()

        tasks.start_soon(watch)
        with anyio.fail_after(PATIENCE):
            for seq in range(1, 21):
                turns = anyio.Event()
                await one.append("run-1", entries(seq, seq))
                await turns.wait()
            await one.finish("run-1", Entry(21, b"{}"), "completed", 5.0)


async def test_who_waits_is_told_that_a_run_is_gone(new: Callable[..., RedisJournal]) -> None:
    async with new() as one, new() as other:
        await one.create(run_record("run-1"))
        await one.finish("run-1", Entry(1, b"{}"), "completed", 5.0)
        with anyio.fail_after(PATIENCE):
            await other.wait("run-1", 0)
            await other.wait("run-1", 1)
            await one.delete("run-1")
            await other.wait("run-1", 1)


async def test_many_wait_for_one_run(new: Callable[..., RedisJournal]) -> None:
    async with new() as one, new() as other:
        await one.create(run_record("run-1"))
        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as tasks:
                for _ in range(50):
                    tasks.start_soon(other.wait, "run-1", 0)
                    tasks.start_soon(one.wait, "run-1", 0)
                await anyio.wait_all_tasks_blocked()
                await one.append("run-1", entries(1, 1))


async def test_who_gives_up_waiting_leaves_the_others_waiting(new: Callable[..., RedisJournal]) -> None:
    async with new() as one, new() as other:
        await one.create(run_record("run-1"))
        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(other.wait, "run-1", 0)
                async with anyio.create_task_group() as impatient:
                    impatient.start_soon(other.wait, "run-1", 0)
                    impatient.cancel_scope.cancel()
                await one.append("run-1", entries(1, 1))


# Calls


async def test_a_call_goes_to_the_process_that_has_the_run(
    anyio_backend: str, redis_server: RedisServer, prefix: str, new: Callable[..., RedisJournal]
) -> None:
    async with redis_peer(anyio_backend, redis_server.url, prefix) as peer, new() as journal:
        assert await peer.ask("create run-1") == "created"
        body = bytes(range(256)) * 1000
        answered = await journal.call("run-1", body)
        assert answered == b"run-1 is here: " + body
        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(journal.call, "run-1", str(number).encode())


async def test_a_call_without_an_answer_in_time(new: Callable[..., RedisJournal]) -> None:
    async with new() as one, new() as other:
        await one.create(run_record("run-1"))
        asked = 0

        async def answer(run_id: str, body: bytes) -> bytes:
            nonlocal asked
            asked += 1
            await anyio.sleep_forever()
            return body

        one.serve(answer)
        for journal in (one, other):
            with pytest.raises(JournalConflict, match=r"run run-1 has not answered within 1\.2 s; try again"):
                await journal.call("run-1", b"?", timeout=1.2)  # it is asked again after one
        assert asked == 2


async def test_a_call_to_a_process_that_answers_nothing(
    new: Callable[..., RedisJournal], caplog: pytest.LogCaptureFixture
) -> None:
    async with new() as one, new() as other:
        await one.create(run_record("run-1"))
        with pytest.raises(JournalConflict, match="the process that had run run-1 has ended"):
            await other.call("run-1", b"?")

        async def fail(run_id: str, body: bytes) -> bytes:
            raise RuntimeError("no answer")

        one.serve(fail)
        with pytest.raises(JournalConflict, match="the process that had run run-1 has ended"):
            await other.call("run-1", b"?")
        assert [record.getMessage() for record in caplog.records] == [
            "What was asked of run run-1 could not be answered"
        ]


# Processes that die


async def test_the_runs_of_a_process_that_was_killed_go_to_another(
    anyio_backend: str, redis_server: RedisServer, prefix: str, new: Callable[..., RedisJournal]
) -> None:
    async with (
        new() as journal,
        redis_peer(anyio_backend, redis_server.url, prefix, lease=SHORT) as peer,
        redis_peer(anyio_backend, redis_server.url, prefix) as bystander,
    ):
        assert await bystander.ask("create run-2") == "created"
        assert await peer.ask("create run-1") == "created"
        await peer.tell("flood run-1")
        with anyio.fail_after(30):
            while await peer.hear() != "50":
                pass
        said = await peer.kill()
        acknowledged = int(said[-1]) if said else 50

        found = await orphans_of(journal)

        assert [record.id for record in found] == ["run-1"]
        last = found[0].last_seq
        assert last in (acknowledged, acknowledged + 1)
        await journal.finish("run-1", Entry(last + 1, b'{"end": true}'), "interrupted", 9.0)
        stored: list[Entry] = []
        while page := await journal.read("run-1", len(stored)):
            stored += page
        assert seqs(stored) == list(range(1, last + 2))
        assert [entry.data for entry in stored[:-1]] == [
            b'{"number": %d}' % number for number in range(1, last + 1)
        ]
        assert await bystander.ask("orphans") == "orphans"
        assert await bystander.ask("append run-2 1 5") == "appended"


async def test_a_process_that_stood_still_for_too_long_adds_nothing(
    anyio_backend: str, redis_server: RedisServer, prefix: str, new: Callable[..., RedisJournal]
) -> None:
    async with (
        new() as journal,
        redis_peer(anyio_backend, redis_server.url, prefix, lease=SHORT) as peer,
    ):
        assert await peer.ask("create run-1") == "created"
        assert await peer.ask("append run-1 1 3") == "appended"
        peer.stop()
        with pytest.raises(JournalConflict, match="has not answered within"):
            await journal.call("run-1", b"?", timeout=0.1)
        found = await orphans_of(journal)
        assert [(record.id, record.last_seq) for record in found] == [("run-1", 3)]
        peer.resume()
        said = await peer.ask("append run-1 4 4")
        assert said.startswith("JournalConflict ")
        assert "run run-1 belongs to another server" in said
        await journal.finish("run-1", Entry(4, b"{}"), "interrupted", 9.0)
        said = await peer.ask("append run-1 5 5")
        assert "run run-1 has ended or was deleted" in said
        assert await peer.ask("create run-2") == "created"
        assert await peer.ask("append run-2 1 1") == "appended"


async def test_the_dead_cannot_be_asked(
    anyio_backend: str, redis_server: RedisServer, prefix: str, new: Callable[..., RedisJournal]
) -> None:
    async with new() as journal:
        async with redis_peer(anyio_backend, redis_server.url, prefix, lease=SHORT) as peer:
            await peer.ask("create run-1")
        said = "has not answered within"
        with anyio.fail_after(30):
            while "has not answered within" in said:
                with pytest.raises(JournalConflict) as caught:
                    await journal.call("run-1", b"?", timeout=0.05)
                said = str(caught.value)
        assert "the process that had run run-1 has ended; try again later" in said


async def test_each_orphan_goes_to_one_process_only(new: Callable[..., RedisJournal]) -> None:
    ids = {f"run-{number}" for number in range(50)}
    async with new() as one:
        for id_ in ids:
            await one.create(run_record(id_))
    found: list[str] = []

    async def claim(journal: RedisJournal) -> None:
        found.extend(record.id for record in await journal.orphans())

    async with new() as first, new() as second, new() as third, anyio.create_task_group() as tasks:
        for journal in (first, second, third, first, second, third):
            tasks.start_soon(claim, journal)
    assert len(found) == 50
    assert set(found) == ids


async def test_the_runs_of_a_journal_that_was_closed_are_free_at_once(
    new: Callable[..., RedisJournal],
) -> None:
    journal = new()
    async with new() as other:
        async with journal:
            await journal.create(run_record("run-1"))
            assert await other.orphans() == []
        async with journal:  # it is another one by now
            with pytest.raises(JournalConflict, match="belongs to another server"):
                await journal.append("run-1", entries(1, 1))
            assert [record.id for record in await other.orphans()] == ["run-1"]
            assert await journal.orphans() == []
            await other.append("run-1", entries(1, 1))
