"""Every journal keeps the log of a run: numbered, whole, and readable by anybody at his own pace."""

from __future__ import annotations

import random
from functools import partial
from typing import TYPE_CHECKING

import anyio
import pytest
from anyio.lowlevel import checkpoint
from journals import entries, run_record, seqs

from thinkwell.journal import MAX_PAGE, Entry, JournalConflict

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from thinkwell.journal import Journal

EVERY_BYTE = bytes(range(256))


async def everything(journal: Journal, run_id: str, *, most: int = MAX_PAGE) -> list[Entry]:
    """Read a log page by page."""
    found: list[Entry] = []
    while page := await journal.read(run_id, len(found), most=most):
        found += page
    return found


# Adding


async def test_what_was_added_is_read_byte_by_byte(journal: Journal) -> None:
    datas = [
        b'{"a":1}',
        EVERY_BYTE,
        b"",
        b" ",
        b"\0",
        b"a b,c",
        "äöü 漢字 🦊".encode(),
        b"\r\n",
        b"x" * 70_000,
    ]
    added = [Entry(seq, data) for seq, data in enumerate(datas, 1)]
    await journal.create(run_record("run-1"))
    await journal.append("run-1", added[:4])
    await journal.append("run-1", added[4:])
    assert await journal.read("run-1") == added
    for entry in added:
        assert (await journal.read("run-1", entry.seq - 1, most=0)) == [entry]


async def test_the_record_tells_how_far_the_log_is(journal: Journal) -> None:
    await journal.create(run_record("run-1"))
    await journal.append("run-1", entries(1, 3, b"abc"))
    await journal.append("run-1", entries(4, 4, b"d"))
    found = await journal.get("run-1")
    assert found is not None
    assert (found.status, found.ended, found.last_seq, found.size) == ("running", None, 4, 10)
    assert await journal.runs() == [found]


@pytest.mark.parametrize(
    "numbers",
    [(1,), (3,), (5,), (0,), (-1,), (4, 6), (4, 4), (5, 4), (4, 3)],
    ids=lambda numbers: str(numbers),
)
async def test_numbers_have_no_gap_and_come_once(journal: Journal, numbers: tuple[int, ...]) -> None:
    await journal.create(run_record("run-1"))
    await journal.append("run-1", entries(1, 3))
    with pytest.raises(JournalConflict, match="has to be number 4"):
        await journal.append("run-1", [Entry(number, b"wrong") for number in numbers])
    with pytest.raises(JournalConflict, match="has to be number 4"):
        await journal.finish("run-1", Entry(5, b"wrong"), "completed", 1.0)
    found = await journal.get("run-1")
    assert found is not None
    assert (found.last_seq, found.status, found.ended) == (3, "running", None)
    assert await journal.read("run-1") == entries(1, 3)
    await journal.append("run-1", entries(4, 4))
    assert seqs(await journal.read("run-1")) == [1, 2, 3, 4]


async def test_the_first_number_is_one(journal: Journal) -> None:
    await journal.create(run_record("run-1"))
    for wrong in (0, 2):
        with pytest.raises(JournalConflict):
            await journal.append("run-1", [Entry(wrong, b"wrong")])
    await journal.finish("run-1", Entry(1, b"end"), "completed", 1.0)
    assert await journal.read("run-1") == [Entry(1, b"end")]


async def test_nothing_is_added_to_a_run_that_has_ended_or_is_nowhere(journal: Journal) -> None:
    await journal.create(run_record("run-1"))
    await journal.finish("run-1", Entry(1, b"end"), "cancelled", 1.0)
    for run_id in ("run-1", "run-2", "\ud800"):
        for added in ([Entry(2, b"late")], [Entry(1, b"late")], []):
            with pytest.raises(JournalConflict, match="has ended or was deleted"):
                await journal.append(run_id, added)
        with pytest.raises(JournalConflict, match="has ended or was deleted"):
            await journal.finish(run_id, Entry(2, b"late"), "failed", 2.0)
    found = await journal.get("run-1")
    assert found is not None
    assert (found.status, found.ended, found.last_seq) == ("cancelled", 1.0, 1)
    assert await journal.get("run-2") is None


async def test_adding_nothing_changes_nothing(journal: Journal) -> None:
    record = await journal.create(run_record("run-1"))
    await journal.append("run-1", [])
    assert await journal.get("run-1") == record


async def test_of_two_who_add_the_same_number_one_may(journal: Journal) -> None:
    await journal.create(run_record("run-1"))
    refused: list[str] = []

    async def add(name: str) -> None:
        try:
            await journal.append("run-1", entries(1, 3, name.encode()))
        except JournalConflict:
            refused.append(name)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for name in "abc":
                tasks.start_soon(add, name)
    page = await journal.read("run-1")
    (winner,) = set("abc") - set(refused)
    assert page == entries(1, 3, winner.encode())


async def test_runs_that_grow_at_the_same_time_do_not_mix(journal: Journal) -> None:
    async def grow(run_id: str) -> None:
        dice = random.Random(run_id)
        await journal.create(run_record(run_id))
        last = 0
        for _ in range(20):
            first, last = last + 1, last + dice.randint(1, 20)
            await journal.append(
                run_id, [Entry(seq, f"{run_id} {seq}".encode()) for seq in range(first, last + 1)]
            )
        await journal.finish(run_id, Entry(last + 1, b"end"), "completed", 1.0)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(grow, f"run-{number}")
    for number in range(20):
        found = await everything(journal, f"run-{number}", most=1000)
        assert seqs(found) == list(range(1, len(found) + 1))
        assert found[-1].data == b"end"
        assert [entry.data for entry in found[:-1]] == [
            f"run-{number} {entry.seq}".encode() for entry in found[:-1]
        ]
        record = await journal.get(f"run-{number}")
        assert record is not None
        assert (record.last_seq, record.status) == (len(found), "completed")
        assert record.size == sum(len(entry.data) for entry in found)


async def test_a_run_that_has_ended_has_its_last_entry(journal: Journal) -> None:
    await journal.create(run_record("run-1"))

    async def look() -> None:
        while True:
            record = await journal.get("run-1")
            page = await journal.read("run-1")
            assert record is not None
            assert seqs(page)[: record.last_seq] == list(range(1, record.last_seq + 1))
            if record.ended is not None:
                assert page[-1] == Entry(11, b"end")
                return

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(look)
            for seq in range(1, 11):
                await journal.append("run-1", entries(seq, seq))
            await journal.finish("run-1", Entry(11, b"end"), "completed", 1.0)


# Pages


async def test_reading_begins_behind_a_number(journal: Journal) -> None:
    await journal.create(run_record("run-1"))
    await journal.append("run-1", entries(1, 9))
    for after, expected in ((0, 9), (1, 8), (8, 1), (9, 0), (10, 0), (-1, 9), (-(10**30), 9), (10**30, 0)):
        assert seqs(await journal.read("run-1", after)) == list(range(10 - expected, 10))


async def test_a_page_has_so_many_bytes_at_most(journal: Journal) -> None:
    sizes = [30, 30, 30, 100, 5, 5, 1, 0, 0, 60]
    await journal.create(run_record("run-1"))
    await journal.append("run-1", [Entry(seq, b"x" * size) for seq, size in enumerate(sizes, 1)])
    for most, pages in (
        (60, [[1, 2], [3], [4], [5, 6, 7, 8, 9], [10]]),
        (90, [[1, 2, 3], [4], [5, 6, 7, 8, 9, 10]]),
        (0, [[1], [2], [3], [4], [5], [6], [7, 8, 9], [10]]),
        (10**30, [[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]]),
    ):
        found: list[int] = []
        while page := await journal.read("run-1", len(found), most=most):
            assert len(page) == 1 or sum(len(entry.data) for entry in page) <= most
            found += seqs(page)
            if most:
                assert seqs(page) in pages
        assert found == list(range(1, 11))


async def test_pages_are_of_a_moderate_size_by_themselves(journal: Journal) -> None:
    await journal.create(run_record("run-1"))
    added = [Entry(seq, b"%06d" % seq * 500) for seq in range(1, 301)]
    await journal.append("run-1", added)
    first = await journal.read("run-1")
    assert MAX_PAGE / 2 < sum(len(entry.data) for entry in first) <= MAX_PAGE
    assert await everything(journal, "run-1") == added


async def test_a_run_of_very_many_small_entries(journal: Journal) -> None:
    await journal.create(run_record("run-1"))
    await journal.append("run-1", entries(1, 12_000, b"{}"))
    found = await everything(journal, "run-1")
    assert seqs(found) == list(range(1, 12_001))


async def test_entries_may_be_large(journal: Journal) -> None:
    large = EVERY_BYTE * 32 * 1024
    await journal.create(run_record("run-1"))
    added = [Entry(1, b"{}"), Entry(2, large), Entry(3, b"{}"), Entry(4, large)]
    with anyio.fail_after(30):
        await journal.append("run-1", added)
        assert await journal.read("run-1") == added[:1]
        assert await journal.read("run-1", 1) == added[1:2]
        assert await journal.read("run-1", 2) == added[2:3]
        assert await everything(journal, "run-1", most=len(large) + 2) == added


async def test_reading_on_while_it_grows_misses_nothing(journal: Journal) -> None:
    await journal.create(run_record("run-1"))
    seen: dict[int, list[int]] = {}

    async def follow(name: int) -> None:
        found = seen.setdefault(name, [])
        while not found or found[-1] < 201:
            page = await journal.read("run-1", len(found), most=100 * (name + 1))
            if not page:
                await journal.wait("run-1", len(found))
            found += seqs(page)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for name in range(8):
                tasks.start_soon(follow, name)
            for first in range(1, 200, 2):
                await journal.append("run-1", entries(first, first + 1))
            await journal.finish("run-1", Entry(201, b"end"), "completed", 1.0)
    assert all(found == list(range(1, 202)) for found in seen.values())


# Waiting


async def until(journal: Journal, run_id: str, after: int, done: Callable[[], Awaitable[bool]]) -> None:
    """Wait, as often as it takes."""
    while not await done():
        await journal.wait(run_id, after)


async def test_a_reader_does_not_wait_for_what_is_there(journal: Journal) -> None:
    await journal.create(run_record("run-1"))
    await journal.append("run-1", entries(1, 3))
    with anyio.fail_after(30):
        await journal.wait("run-1", 0)
        await journal.wait("run-1", 2)
        await journal.wait("run-1", -1)


async def test_a_reader_does_not_wait_for_a_run_that_has_ended_or_is_unknown(journal: Journal) -> None:
    await journal.create(run_record("run-1"))
    await journal.finish("run-1", Entry(1, b"end"), "completed", 1.0)
    with anyio.fail_after(30):
        await journal.wait("run-1", 1)
        await journal.wait("run-1", 100)
        await journal.delete("run-1")
        await journal.wait("run-1", 1)
        await journal.wait("nowhere", 0)


async def test_who_waits_is_woken_when_there_is_an_entry_to_read(journal: Journal) -> None:
    await journal.create(run_record("run-1"))
    await journal.create(run_record("run-2"))
    woken: list[int] = []

    async def wait(after: int) -> None:
        async def there() -> bool:
            return bool(await journal.read("run-1", after))

        await until(journal, "run-1", after, there)
        woken.append(after)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(wait, 0)
            tasks.start_soon(wait, 2)
            await anyio.wait_all_tasks_blocked()
            await journal.append("run-2", entries(1, 5))
            await anyio.wait_all_tasks_blocked()
            assert woken == []
            await journal.append("run-1", entries(1, 2))
            while len(woken) < 3:
                await checkpoint()
            assert woken == [0, 0, 0]
            await journal.append("run-1", entries(3, 3))
    assert woken == [0, 0, 0, 2]


async def test_who_waits_is_woken_by_the_end(journal: Journal) -> None:
    await journal.create(run_record("run-1"))

    async def ended() -> bool:
        record = await journal.get("run-1")
        return record is not None and record.ended is not None

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(until, journal, "run-1", 50, ended)
            await anyio.wait_all_tasks_blocked()
            await journal.finish("run-1", Entry(1, b"end"), "completed", 1.0)


async def test_who_waits_is_woken_by_the_end_of_the_journal(journal: Journal) -> None:
    await journal.create(run_record("run-1"))
    closed = False

    async def is_closed() -> bool:
        await checkpoint()
        return closed

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(until, journal, "run-1", 0, is_closed)
            await anyio.wait_all_tasks_blocked()
            closed = True
            await journal.close()


async def test_a_reader_that_gives_up_waiting_disturbs_no_other(journal: Journal) -> None:
    await journal.create(run_record("run-1"))

    async def there() -> bool:
        return bool(await journal.read("run-1"))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks, anyio.create_task_group() as impatient:
            tasks.start_soon(until, journal, "run-1", 0, there)
            for _ in range(3):
                impatient.start_soon(until, journal, "run-1", 0, there)
            await anyio.wait_all_tasks_blocked()
            impatient.cancel_scope.cancel()
            with anyio.CancelScope(shield=True):
                await journal.append("run-1", entries(1, 1))


# Cancelling


async def cancelled(call: Callable[[], Awaitable[object]], steps: int) -> bool:
    """Call something, cancel it some steps later, and return whether it returned all the same."""
    scope = anyio.CancelScope()
    returned = False

    async def do() -> None:
        nonlocal returned
        with scope:
            await call()
            returned = True

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(do)
            for _ in range(steps):
                await checkpoint()
            scope.cancel()
    return returned


@pytest.mark.parametrize("steps", range(6))
async def test_what_is_cancelled_while_it_is_stored_is_stored_to_its_end(
    journal: Journal, steps: int
) -> None:
    made = await cancelled(lambda: journal.create(run_record("run-1")), steps)
    assert (await journal.get("run-1") is not None) == made
    if not made:
        await journal.create(run_record("run-1"))
    last = 0
    for _ in range(5):
        added = entries(last + 1, last + 3)
        if await cancelled(partial(journal.append, "run-1", added), steps):
            last += 3
        assert seqs(await journal.read("run-1")) == list(range(1, last + 1))
    end = Entry(last + 1, b"end")
    ended = await cancelled(lambda: journal.finish("run-1", end, "completed", 1.0), steps)
    record = await journal.get("run-1")
    assert record is not None
    assert (record.status, record.last_seq) == (("completed", last + 1) if ended else ("running", last))
    if not ended:
        await journal.finish("run-1", end, "completed", 1.0)
    gone = await cancelled(lambda: journal.delete("run-1"), steps)
    assert (await journal.get("run-1") is None) == gone
    kept = await cancelled(lambda: journal.put("kind", "name", b"data"), steps)
    assert await journal.pick("kind", "name") == (b"data" if kept else None)


async def test_what_is_cancelled_before_is_not_begun(journal: Journal) -> None:
    await journal.create(run_record("run-1"))
    with anyio.CancelScope() as scope:
        scope.cancel()
        await journal.append("run-1", entries(1, 1))
    assert scope.cancelled_caught
    assert await journal.read("run-1") == []


async def test_a_reader_that_stops_disturbs_no_other(journal: Journal) -> None:
    await journal.create(run_record("run-1"))
    await journal.append("run-1", entries(1, 5))
    for steps in range(6):
        for _ in range(5):
            await cancelled(lambda: journal.read("run-1"), steps)
            await cancelled(lambda: journal.runs(), steps)
    assert seqs(await journal.read("run-1")) == [1, 2, 3, 4, 5]
