"""What waits together is written together, nobody else waits for it, and lists need no search."""

from __future__ import annotations

import asyncio
import sqlite3
import struct
from contextlib import closing, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.lowlevel
import pytest
from journals import entries, run_record, seqs

from thinkwell.journal import Entry, JournalConflict, JournalError, SqliteJournal

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from thinkwell.journal import RunRecord, RunStatus

HEAD: Final = 32
"""Bytes before the first frame of a write-ahead log; see "WAL-mode File Format" of SQLite."""

FRAME_HEAD: Final = 24
"""Bytes before the page of each frame; the second number is not 0 where a transaction ends."""


STATUSES: Final[tuple[RunStatus | None, ...]] = (None, "running", "completed")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.sqlite"


@pytest.fixture
async def file(path: Path) -> AsyncGenerator[SqliteJournal]:
    """An open journal."""
    async with SqliteJournal(path) as opened:
        yield opened


class Blockade:
    """Another program that writes to a journal's file, so that the journal has to wait."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("BEGIN IMMEDIATE")

    def __enter__(self) -> Blockade:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Stop writing."""
        self._connection.close()


def impatient(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Let SQLite wait for other programs for less than the half minute that a journal wants."""

    class Impatient(sqlite3.Connection):
        def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
            if sql == "PRAGMA busy_timeout = 30000":
                sql = f"PRAGMA busy_timeout = {round(seconds * 1000)}"
            return super().execute(sql, *parameters)

    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Impatient))


def transactions(path: Path) -> int:
    """Return how many transactions are in the write-ahead log of a file."""
    log = path.with_name(f"{path.name}-wal").read_bytes()
    page, salts = struct.unpack(">I", log[8:12])[0], log[16:24]
    count = 0
    for start in range(HEAD, len(log), FRAME_HEAD + page):
        frame = log[start : start + FRAME_HEAD]
        count += frame[8:16] == salts and frame[4:8] != b"\0\0\0\0"
    return count


async def test_what_waits_together_is_one_transaction(file: SqliteJournal) -> None:
    for number in range(30):
        await file.create(run_record(f"run-{number}"))
    before = transactions(file.path)
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            with Blockade(file.path):
                for number in range(30):
                    tasks.start_soon(file.append, f"run-{number}", entries(1, number + 1))
                await anyio.wait_all_tasks_blocked()
    assert transactions(file.path) - before <= 2  # the first may have gone alone
    for number in range(30):
        assert seqs(await file.read(f"run-{number}")) == list(range(1, number + 2))


async def test_a_failed_write_fails_no_other(file: SqliteJournal) -> None:
    """Where a transaction fails, each of its parts is tried by itself."""
    await file.create(run_record("run-1"))
    failed: list[Exception] = []

    async def put_nonsense() -> None:
        try:
            await file.put("kind", "\ud800", b"data")
        except ValueError as exc:
            failed.append(exc)

    async def repeat() -> None:
        try:
            await file.append("run-1", entries(1, 1))
        except JournalConflict as exc:
            failed.append(exc)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            with Blockade(file.path):
                tasks.start_soon(file.put, "kind", "first", b"1")
                await anyio.wait_all_tasks_blocked()
                tasks.start_soon(file.append, "run-1", entries(1, 3))
                tasks.start_soon(put_nonsense)
                await anyio.wait_all_tasks_blocked()
                tasks.start_soon(repeat)
                tasks.start_soon(file.put, "kind", "last", b"2")
                await anyio.wait_all_tasks_blocked()
    assert sorted(type(exc).__name__ for exc in failed) == ["JournalConflict", "UnicodeEncodeError"]
    assert seqs(await file.read("run-1")) == [1, 2, 3]
    assert await file.pick_all("kind") == [("first", b"1"), ("last", b"2")]


async def test_a_whole_life_in_one_transaction(file: SqliteJournal) -> None:
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            with Blockade(file.path):
                tasks.start_soon(file.put, "kind", "first", b"1")
                await anyio.wait_all_tasks_blocked()
                for number in range(3):
                    tasks.start_soon(file.create, run_record(f"run-{number}", key=f"key-{number}"))
                    await anyio.wait_all_tasks_blocked()
                    tasks.start_soon(file.append, f"run-{number}", entries(1, 300))
                    await anyio.wait_all_tasks_blocked()
                tasks.start_soon(file.finish, "run-0", Entry(301, b"end"), "completed", 1.0)
                await anyio.wait_all_tasks_blocked()
                tasks.start_soon(file.create, run_record("run-9", key="key-0"))
                tasks.start_soon(file.finish, "run-1", Entry(301, b"end"), "completed", 1.0)
                await anyio.wait_all_tasks_blocked()
                tasks.start_soon(file.delete, "run-1")
                await anyio.wait_all_tasks_blocked()
    assert [(record.id, record.status, record.last_seq) for record in await file.runs()] == [
        ("run-2", "running", 300),
        ("run-0", "completed", 301),
    ]
    assert await file.size() == 600 * len(entries(1, 1)[0].data) + 3


async def test_a_key_that_comes_with_more_entries_of_its_run(file: SqliteJournal) -> None:
    await file.create(run_record("run-1", key="k"))
    found: list[RunRecord] = []

    async def again() -> None:
        found.append(await file.create(run_record("run-2", key="k")))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            with Blockade(file.path):
                tasks.start_soon(file.put, "kind", "first", b"1")
                await anyio.wait_all_tasks_blocked()
                tasks.start_soon(file.append, "run-1", entries(1, 3))
                await anyio.wait_all_tasks_blocked()
                tasks.start_soon(again)
                await anyio.wait_all_tasks_blocked()
    assert [(record.id, record.last_seq) for record in found] == [("run-1", 3)]


@pytest.mark.long
async def test_much_that_waits_together_is_more_than_one_transaction(file: SqliteJournal) -> None:
    large = b"x" * 9_000_000
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            with Blockade(file.path):
                tasks.start_soon(file.put, "kind", "first", b"")
                await anyio.wait_all_tasks_blocked()
                for number in range(4):
                    tasks.start_soon(file.put, "kind", f"name-{number}", large)
                await anyio.wait_all_tasks_blocked()
    log = file.path.with_name("runs.sqlite-wal")
    assert 18_000_000 < log.stat().st_size < 30_000_000  # begun anew for each two of them
    assert [len(data) for _, data in await file.pick_all("kind")] == [0, *[9_000_000] * 4]


async def test_reads_go_on_while_a_write_waits(file: SqliteJournal) -> None:
    await file.create(run_record("run-1"))
    await file.append("run-1", entries(1, 3))
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            with Blockade(file.path):
                tasks.start_soon(file.append, "run-1", entries(4, 4))
                await anyio.wait_all_tasks_blocked()
                for _ in range(5):
                    assert len(await file.read("run-1")) == 3
                    assert len(await file.runs()) == 1
    assert len(await file.read("run-1")) == 4


async def test_a_program_that_writes_to_the_file_for_too_long(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    impatient(monkeypatch, 0.05)
    async with SqliteJournal(path) as journal:
        await journal.create(run_record("run-1"))
        told = pytest.raises(JournalError, match="another program is writing to it; end that program")
        with Blockade(path), anyio.fail_after(30), told:
            await journal.append("run-1", entries(1, 1))
        await journal.append("run-1", entries(1, 1))
        assert seqs(await journal.read("run-1")) == [1]


async def test_all_writes_that_wait_for_such_a_program_wait_together(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    impatient(monkeypatch, 0.3)
    told: list[str] = []

    async def append(journal: SqliteJournal, run_id: str) -> None:
        with pytest.raises(JournalError) as caught:
            await journal.append(run_id, entries(1, 1))
        told.append(caught.value.reason)

    async with SqliteJournal(path) as journal:
        for number in range(30):
            await journal.create(run_record(f"run-{number}"))
        with Blockade(path), anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                for number in range(30):
                    tasks.start_soon(append, journal, f"run-{number}")
        for number in range(30):
            await journal.append(f"run-{number}", entries(1, 1))
    assert len(told) == 30
    assert all("another program is writing to it" in reason for reason in told)


async def test_a_record_that_could_not_be_read_again_is_not_stored(file: SqliteJournal) -> None:
    for bad in (run_record("run-1", created=float("nan")), run_record("run-1", title="\ud800")):
        with pytest.raises(Exception, match=r"Expected `float`|surrogates"):
            await file.create(bad)
    assert await file.runs() == []


async def test_what_waits_to_be_stored_is_stored_before_the_file_is_closed(path: Path) -> None:
    journal = SqliteJournal(path)
    await journal.open()
    await journal.create(run_record("run-1"))
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            with Blockade(path):
                for seq in range(1, 6):
                    tasks.start_soon(journal.append, "run-1", entries(seq, seq))
                    await anyio.wait_all_tasks_blocked()
                tasks.start_soon(journal.close)
                await anyio.wait_all_tasks_blocked()
    async with journal:
        assert seqs(await journal.read("run-1")) == [1, 2, 3, 4, 5]


async def test_who_reads_when_the_file_is_closed_gets_an_answer(path: Path) -> None:
    journal = SqliteJournal(path)
    await journal.open()
    await journal.create(run_record("run-1"))
    await journal.append("run-1", entries(1, 3))
    answers: list[object] = []

    async def read() -> None:
        try:
            answers.append(seqs(await journal.read("run-1")))
        except JournalError as exc:
            answers.append(exc.reason)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for _ in range(200):
                tasks.start_soon(read)
            await anyio.lowlevel.checkpoint()
            await journal.close()
    assert len(answers) == 200
    refusals = ("it was closed meanwhile", "it is not open; use it in the block of `async with journal:`")
    assert all(answer in ([1, 2, 3], *refusals) for answer in answers)


# asyncio's own way to cancel, which no scope holds up


def test_tasks_that_are_torn_away_leave_nothing_half_done(path: Path) -> None:
    async def tear() -> None:
        async with SqliteJournal(path) as file:
            await file.create(run_record("run-1"))
            with anyio.fail_after(30):
                with Blockade(file.path):
                    tasks = [
                        asyncio.create_task(file.append("run-1", entries(1, 2))),
                        asyncio.create_task(file.create(run_record("run-2"))),
                    ]
                    await anyio.wait_all_tasks_blocked()
                    for task in tasks:
                        task.cancel()
                        with suppress(asyncio.CancelledError):
                            await task
                await file.append("run-1", entries(3, 3))
                await file.append("run-2", entries(1, 1))
                reads = [asyncio.create_task(file.read("run-1")) for _ in range(10)]
                await anyio.lowlevel.checkpoint()
                for read in reads:
                    read.cancel()
                await asyncio.wait(reads)
                assert seqs(await file.read("run-1")) == [1, 2, 3]

    asyncio.run(tear())


def test_an_event_loop_that_ends_before_the_file_is_closed(path: Path) -> None:
    journal = SqliteJournal(path)

    async def begin() -> None:
        await journal.open()
        await journal.create(run_record("run-1"))

    async def end() -> None:
        await journal.close()
        async with SqliteJournal(path) as again:
            assert seqs(await again.read("run-1")) == [1, 2]

    with closing(asyncio.new_event_loop()) as loop:
        loop.run_until_complete(begin())
        with Blockade(path):
            task = loop.create_task(journal.append("run-1", entries(1, 2)))
            loop.run_until_complete(asyncio.sleep(0))
            task.cancel()
            with suppress(asyncio.CancelledError):
                loop.run_until_complete(task)
    asyncio.run(end())


# Lists


async def test_lists_are_found_without_a_search(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each query comes to its rows by an index; a caller's runs come in their order."""
    asked: list[str] = []

    class Traced(sqlite3.Connection):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self.set_trace_callback(asked.append)

    with monkeypatch.context() as patched:
        patched.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Traced))
        async with SqliteJournal(path) as file:
            await file.create(run_record("run-1", key="k"))
            assert (await file.create(run_record("run-2", key="k"))).id == "run-1"
            await file.append("run-1", entries(1, 9))
            for thread in (None, "t"):
                for status in STATUSES:
                    for before in (None, "run-1"):
                        await file.runs(caller="ada", thread=thread, status=status, before=before)
            await file.runs(thread="t")
            await file.get("run-1")
            await file.oldest(limit=100)
            assert await file.read("run-1", 5, most=1000)
            assert await file.read("run-1", 5, most=0)
            await file.pick("kind", "name")
            await file.pick_all("kind")
    with closing(sqlite3.connect(path)) as connection:
        plans = {
            query: [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {query}")]
            for query in asked
            if query.split()[0] == "SELECT" and "FROM doomed" not in query
        }
    assert len(plans) > 20
    for query, plan in plans.items():
        steps = [step for step in plan if "subquery" not in step.lower()]  # what they have found themselves
        assert not [step for step in steps if "SCAN" in step], query
        if "thread = " in query:
            assert any("runs_by_thread" in step for step in steps), query
        if "caller = " in query:
            assert "USE TEMP B-TREE FOR ORDER BY" not in steps, query
