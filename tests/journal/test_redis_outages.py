"""Redis that is away, comes back, answers late or not at all: nothing is lost, and nothing is done twice."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import pytest
from anyio.lowlevel import cancel_shielded_checkpoint, checkpoint
from journals import entries, redis_journal, run_record, seqs
from redis_lines import RedisLine, redis_line
from redis_servers import RedisServer, running_redis

from thinkwell.journal import Entry, JournalConflict, JournalError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from thinkwell.journal.redis import RedisJournal

PATIENCE = 10.0
"""Less than the time after which a journal looks for itself: whoever is told of nothing, fails."""

SHORT = 0.6
"""Seconds of a lease that is to end in the test."""


@pytest.fixture
def line(redis_server: RedisServer) -> Generator[RedisLine]:
    with redis_line(redis_server) as line:
        yield line


@pytest.fixture
def durable() -> Generator[RedisServer]:
    """A server that can be killed. With less than ``always`` it may lose what it has acknowledged."""
    with running_redis("appendonly yes", "appendfsync always") as server:
        yield server


@pytest.fixture
def behind(line: RedisLine, prefix: str) -> Callable[..., RedisJournal]:
    """Makes journals behind the line."""

    def make(**options: Any) -> RedisJournal:
        return redis_journal(line.url, prefix=prefix, **options)

    return make


@pytest.fixture
def direct(redis_server: RedisServer, prefix: str) -> RedisJournal:
    """A journal of the same place, past the line."""
    return redis_journal(redis_server.url, prefix=prefix)


async def all_of(journal: RedisJournal, run_id: str) -> list[Entry]:
    stored: list[Entry] = []
    while page := await journal.read(run_id, len(stored)):
        stored += page
    return stored


# Redis dies


@pytest.mark.long
async def test_redis_is_killed_and_started_again_while_much_is_written(durable: RedisServer) -> None:
    runs, turns = [f"run-{number}" for number in range(6)], 80
    acknowledged = anyio.Event()
    async with redis_journal(durable.url) as journal, redis_journal(durable.url) as other:
        await other.create(run_record("run-other"))
        seen: dict[str, list[int]] = {run_id: [] for run_id in runs}

        async def write(run_id: str) -> None:
            await journal.create(run_record(run_id))
            for turn in range(turns):
                first = turn * 3 + 1
                await journal.append(run_id, [Entry(first + n, b'{"n": %d}' % (first + n)) for n in range(3)])
                if turn == 20:
                    acknowledged.set()
            await journal.finish(run_id, Entry(turns * 3 + 1, b"{}"), "completed", 9.0)

        async def watch(run_id: str) -> None:
            while not seen[run_id] or seen[run_id][-1] < turns * 3 + 1:
                await other.wait(run_id, len(seen[run_id]))
                seen[run_id] += seqs(await other.read(run_id, len(seen[run_id])))

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                for run_id in runs:
                    tasks.start_soon(write, run_id)
                await acknowledged.wait()
                for run_id in runs:
                    tasks.start_soon(watch, run_id)
                for _ in range(2):
                    durable.kill()
                    await anyio.to_thread.run_sync(durable.start)
        for run_id in runs:
            stored = await all_of(journal, run_id)
            assert seqs(stored) == seen[run_id] == list(range(1, turns * 3 + 2))
            assert [entry.data for entry in stored[:-1]] == [
                b'{"n": %d}' % number for number in range(1, turns * 3 + 1)
            ]
        assert await journal.orphans() == []
        await other.append("run-other", entries(1, 1))


async def test_redis_does_not_come_back(durable: RedisServer, caplog: pytest.LogCaptureFixture) -> None:
    async with redis_journal(durable.url, patience=0.5) as journal:
        await journal.create(run_record("run-1"))
        durable.kill()
        for _ in range(2):
            with pytest.raises(JournalError, match=r"it cannot be reached.*\(tried for 0\.5 s\)") as caught:
                await journal.append("run-1", entries(1, 1))
            assert not isinstance(caught.value, JournalConflict)
            assert type(caught.value) is JournalError
        with pytest.raises(JournalError, match="cannot be reached"):
            await journal.read("run-1")
        with pytest.raises(JournalError, match="cannot be reached"):
            await journal.wait("run-1", 0)
    warnings = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(warnings) == 1  # however often it was tried
    assert "it cannot be reached" in warnings[0].getMessage()


async def test_a_change_that_is_tried_again_ends_with_the_journal(durable: RedisServer) -> None:
    journal = redis_journal(durable.url, patience=3600)
    failures: list[JournalError] = []

    async def append() -> None:
        with pytest.raises(JournalError, match="cannot be reached") as caught:
            await journal.append("run-1", entries(1, 1))
        failures.append(caught.value)

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks, journal:
            await journal.create(run_record("run-1"))
            durable.kill()
            tasks.start_soon(append)
            await anyio.wait_all_tasks_blocked()
    assert len(failures) == 1


async def test_a_journal_ends_behind_what_was_begun_to_be_stored(
    line: RedisLine, behind: Callable[..., RedisJournal]
) -> None:
    ended: list[str] = []
    journal = behind(timeout=0.5)

    async def append() -> None:
        with pytest.raises(JournalError, match="cannot be reached"):  # no answer, and it is not tried again
            await journal.append("run-1", [Entry(1, b"chunk 1")])
        ended.append("append")

    async with anyio.create_task_group() as tasks:
        async with journal:
            await journal.create(run_record("run-1"))
            line.delay(b"chunk 1")
            tasks.start_soon(append)
            while not line.delaying.is_set():
                await checkpoint()
        ended.append("close")
    assert ended == ["append", "close"]


async def test_who_is_cancelled_while_a_change_is_tried_again_gets_to_know_what_came_of_it(
    durable: RedisServer,
) -> None:
    async with redis_journal(durable.url) as journal:
        await journal.create(run_record("run-1"))
        durable.kill()
        returned = False

        async def append() -> None:
            nonlocal returned
            await journal.append("run-1", entries(1, 1))
            returned = True

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(append)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
            await cancel_shielded_checkpoint()
            durable.start()
        assert returned
        assert seqs(await journal.read("run-1")) == [1]


async def test_a_cancelled_reader_does_not_wait_for_redis(durable: RedisServer) -> None:
    async with redis_journal(durable.url, patience=3600) as journal:
        durable.kill()
        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(journal.get, "run-1")
                tasks.start_soon(journal.wait, "run-1", 0)
                await anyio.wait_all_tasks_blocked()
                tasks.cancel_scope.cancel()


async def test_there_is_no_redis() -> None:
    journal = redis_journal("redis://127.0.0.1:1", patience=0.2)
    with pytest.raises(
        JournalError, match=r"^Redis at 127\.0\.0\.1:1/0: it cannot be reached; is it running"
    ):
        await journal.open()
    await journal.close()


async def test_a_journal_that_could_not_be_opened_can_be_opened_later(line: RedisLine, prefix: str) -> None:
    journal = redis_journal(line.url, prefix=prefix, patience=0.1)
    line.refuse()
    with pytest.raises(JournalError, match="cannot be reached"):
        await journal.open()
    line.refuse(refusing=False)
    async with journal:
        await journal.create(run_record("run-1"))


@pytest.mark.long
async def test_after_an_outage_no_process_takes_the_runs_of_another(
    redis_server: RedisServer, prefix: str
) -> None:
    """All leases have ended by then; who comes back first may not think that the others are dead."""
    with (
        redis_line(redis_server) as early_line,
        redis_line(redis_server) as late_line,
    ):
        early = redis_journal(early_line.url, prefix=prefix, lease=2 * SHORT)
        late = redis_journal(late_line.url, prefix=prefix, lease=2 * SHORT)
        async with early, late:
            await late.create(run_record("run-1"))
            early_line.refuse()
            late_line.refuse()
            with anyio.fail_after(PATIENCE):
                while any_lease(redis_server, prefix):
                    await checkpoint()
            early_line.refuse(refusing=False)
            assert await early.orphans() == []
            late_line.refuse(refusing=False)
            await late.append("run-1", entries(1, 1))
            with anyio.fail_after(PATIENCE):
                while redis_server.ask("EXISTS", f"{prefix}:grace"):
                    await checkpoint()
            assert await early.orphans() == []
            await late.append("run-1", entries(2, 2))


def any_lease(server: RedisServer, prefix: str) -> bool:
    """Whether the lease of anybody has not ended."""
    seconds, microseconds = server.ask("TIME")
    last = server.ask("ZREVRANGE", f"{prefix}:owners", 0, 0, "WITHSCORES")
    return float(last[0][1]) > float(seconds) * 1000 + float(microseconds) / 1000


# Answers that are lost


async def test_answers_that_are_lost(line: RedisLine, behind: Callable[..., RedisJournal]) -> None:
    """Each change is done once, and who asked for it is told so."""
    async with behind() as journal:
        record = run_record("run-1", key="k", title="the first")
        line.lose(b"the first", times=2)
        assert await journal.create(record) == record
        line.lose(b"chunk 2", times=2)
        await journal.append("run-1", [Entry(1, b"chunk 1"), Entry(2, b"chunk 2")])
        await journal.append("run-1", [Entry(3, b"chunk 3")])
        with pytest.raises(JournalConflict, match="the next entry of run run-1 has to be number 4"):
            await journal.append("run-1", [Entry(3, b"chunk 3")])
        line.lose(b"the end")
        await journal.finish("run-1", Entry(4, b"the end"), "completed", 9.0)
        assert [entry.data for entry in await journal.read("run-1")] == [
            b"chunk 1",
            b"chunk 2",
            b"chunk 3",
            b"the end",
        ]
        line.lose(b"piece")
        await journal.put("kind", "name", b"piece")
        assert await journal.pick("kind", "name") == b"piece"
        assert line.lost == 6
        assert await journal.orphans() == []
        assert await journal.size() == 28
        line.lose(b"run-1")
        assert await journal.delete("run-1")
        assert line.lost == 7
        assert not await journal.delete("run-1")
        line.lose(b"nowhere")
        assert not await journal.delete("nowhere")
        assert line.lost == 8
        assert await journal.size() == 0


async def test_an_answer_that_was_lost_to_what_was_refused(
    line: RedisLine, behind: Callable[..., RedisJournal], direct: RedisJournal
) -> None:
    async with behind() as journal, direct:
        await direct.create(run_record("run-1"))
        await journal.create(run_record("run-2"))
        await journal.append("run-2", [Entry(1, b"chunk 1")])
        line.lose(b"another title")
        with pytest.raises(JournalConflict, match="there is a run run-1 already"):
            await journal.create(run_record("run-1", title="another title"))
        line.lose(b"chunk 2")
        with pytest.raises(JournalConflict, match="the next entry of run run-2 has to be number 2"):
            await journal.append("run-2", [Entry(1, b"chunk 2")])
        line.lose(b"chunk 3")
        with pytest.raises(JournalConflict, match="belongs to another server"):
            await journal.append("run-1", [Entry(1, b"chunk 3")])
        assert line.lost == 3
        assert seqs(await journal.read("run-2")) == [1]


async def test_a_request_that_comes_after_it_was_tried_again(
    line: RedisLine, behind: Callable[..., RedisJournal]
) -> None:
    async with behind(timeout=0.3) as journal:
        await journal.create(run_record("run-1"))
        line.delay(b"chunk 1")
        await journal.append("run-1", [Entry(1, b"chunk 1")])
        assert line.deliver()[0].startswith(b"*2\r\n$4\r\nnext")
        await journal.append("run-1", [Entry(2, b"chunk 2")])
        line.delay(b"the end")
        await journal.finish("run-1", Entry(3, b"the end"), "completed", 9.0)
        assert line.deliver()[0].startswith(b"*2\r\n$5\r\nended")
        assert [entry.data for entry in await journal.read("run-1")] == [b"chunk 1", b"chunk 2", b"the end"]


async def test_a_run_without_a_known_beginning_is_an_orphan(
    line: RedisLine, behind: Callable[..., RedisJournal]
) -> None:
    async with behind(patience=1.0) as journal:
        line.lose(b"unlucky", times=100)
        with pytest.raises(JournalError, match="cannot be reached"):
            await journal.create(run_record("run-1", title="unlucky"))
        line.lose(b"unlucky", times=0)
        found = await journal.orphans()
        assert [record.id for record in found] == ["run-1"]
        assert await journal.orphans() == []
        await journal.finish("run-1", Entry(1, b"{}"), "interrupted", 9.0)


async def test_orphans_whose_list_was_lost(
    line: RedisLine, behind: Callable[..., RedisJournal], direct: RedisJournal
) -> None:
    async with direct:
        await direct.create(run_record("run-1"))
    async with behind(patience=1.0, lease=17.0) as journal:
        line.lose(b"17000", times=100)
        with pytest.raises(JournalError, match="cannot be reached"):
            await journal.orphans()
        line.lose(b"17000", times=0)
        assert [record.id for record in await journal.orphans()] == ["run-1"]
        assert await journal.orphans() == []


async def test_orphans_of_which_nothing_was_known_yet(
    line: RedisLine, behind: Callable[..., RedisJournal], direct: RedisJournal
) -> None:
    async with direct:
        await direct.create(run_record("run-1"))
    async with behind(patience=1.0) as journal:
        line.lose(b"run-1", times=100)
        with pytest.raises(JournalError, match="cannot be reached"):
            await journal.orphans()
        line.lose(b"run-1", times=0)
        assert [record.id for record in await journal.orphans()] == ["run-1"]


async def test_a_run_of_this_process_does_not_become_an_orphan_by_its_name(
    line: RedisLine, behind: Callable[..., RedisJournal]
) -> None:
    """Another run is to be created with its id, which fails in one way or the other."""
    async with behind(patience=1.0) as journal:
        await journal.create(run_record("run-1", key="k"))
        with pytest.raises(JournalConflict, match="there is a run run-1 already"):
            await journal.create(run_record("run-1"))
        line.lose(b"run-1", times=100)
        with pytest.raises(JournalError, match="cannot be reached"):
            await journal.create(run_record("run-1"))
        line.lose(b"run-1", times=0)
        assert await journal.orphans() == []


# Bad lines


async def test_a_slow_line(line: RedisLine, behind: Callable[..., RedisJournal]) -> None:
    line.be_slow()
    async with behind() as one, behind() as other:
        await one.create(run_record("run-1"))
        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(other.wait, "run-1", 0)
                await one.append("run-1", entries(1, 20))
        assert seqs(await other.read("run-1")) == list(range(1, 21))


async def test_a_waiting_reader_sees_what_came_while_its_connection_was_cut(
    line: RedisLine,
    behind: Callable[..., RedisJournal],
    direct: RedisJournal,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    async with direct, behind() as other:
        await direct.create(run_record("run-1"))
        await direct.create(run_record("run-2"))
        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(other.wait, "run-1", 0)
                tasks.start_soon(other.wait, "run-2", 0)
                await anyio.wait_all_tasks_blocked()
                line.refuse()
                await direct.append("run-1", entries(1, 1))
                while not caplog.records:  # it was found out
                    await checkpoint()
                line.refuse(refusing=False)
                await direct.append("run-2", entries(1, 1))
            while len(caplog.records) < 2:
                await checkpoint()
    assert [(record.levelname, record.getMessage().partition(": ")[2][:22]) for record in caplog.records] == [
        ("WARNING", "it cannot be reached; "),
        ("INFO", "it is back"),
    ]


async def test_a_waiting_reader_looks_itself_when_a_shared_look_has_failed(
    line: RedisLine, behind: Callable[..., RedisJournal], direct: RedisJournal
) -> None:
    outcomes: list[str] = []
    async with direct, behind(timeout=2.0, patience=1.6) as other:

        async def wait() -> None:
            try:
                await other.wait("run-1", 1)
            except JournalError:
                outcomes.append("failed")
            else:
                outcomes.append("told")

        await direct.create(run_record("run-1"))
        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(other.wait, "run-1", 0)
                await anyio.wait_all_tasks_blocked()
                await direct.append("run-1", entries(1, 1))
            async with anyio.create_task_group() as tasks:
                for _ in range(2):
                    tasks.start_soon(wait)
                await anyio.wait_all_tasks_blocked()
                line.refuse()
                await direct.append("run-1", entries(2, 2))
                line.delay(b"$5\r\nrun-1")
                line.refuse(refusing=False)
    assert sorted(outcomes) == ["failed", "told"]


async def test_a_waiting_reader_notices_a_dead_connection(
    line: RedisLine, behind: Callable[..., RedisJournal], direct: RedisJournal
) -> None:
    """Nothing comes any more, and nobody says so."""
    async with direct, behind(timeout=0.3, patience=60) as other:
        await direct.create(run_record("run-1"))
        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(other.wait, "run-1", 0)
                await anyio.wait_all_tasks_blocked()
                line.deaden()
                await direct.append("run-1", entries(1, 1))


async def test_who_watches_a_run_that_goes_to_another_process_sees_its_end(
    line: RedisLine, behind: Callable[..., RedisJournal], direct: RedisJournal
) -> None:
    """He waits where the run was: there nobody told him of what others do with it."""
    async with direct, behind(lease=SHORT) as one:
        await one.create(run_record("run-1"))
        await direct.create(run_record("run-2"))
        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(one.wait, "run-1", 0)
                tasks.start_soon(one.wait, "run-2", 0)
                await anyio.wait_all_tasks_blocked()
                line.hold()
                while not await direct.orphans():
                    pass
                line.hold(holding=False)
                await direct.append("run-1", entries(1, 1))
                await direct.append("run-2", entries(1, 1))
