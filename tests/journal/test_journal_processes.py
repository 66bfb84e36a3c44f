"""Every journal can be closed and opened again, and knows whose runs are whose."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import anyio
import pytest
from journals import entries, run_record, seqs

from thinkwell.journal import Entry, JournalConflict, JournalError, MemoryJournal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from journals import Place

    from thinkwell.journal import Journal, RunRecord


async def answer(run_id: str, body: bytes) -> bytes:
    return f"{run_id}: ".encode() + body


def by_id(records: list[RunRecord]) -> list[RunRecord]:
    return sorted(records, key=lambda record: record.id)


# Opening again


async def test_everything_is_there_again(place: Place) -> None:
    async with place.journal() as journal:
        await journal.create(run_record("run-1", caller="ada", thread="t", key="k", meta={"a": [1]}))
        await journal.append("run-1", entries(1, 7))
        await journal.finish("run-1", Entry(8, b"end"), "completed", 5.0)
        await journal.create(run_record("run-2", caller="bob"))
        await journal.append("run-2", entries(1, 3))
        await journal.put("kind", "b", b"1")
        await journal.put("kind", "a", b"2")
        before = (
            await journal.runs(),
            await journal.oldest(),
            await journal.size(),
            await journal.read("run-1"),
            await journal.read("run-2"),
            await journal.pick_all("kind"),
        )
    async with place.journal() as journal:
        after = (
            await journal.runs(),
            await journal.oldest(),
            await journal.size(),
            await journal.read("run-1"),
            await journal.read("run-2"),
            await journal.pick_all("kind"),
        )
        assert after == before
        assert (await journal.create(run_record("run-3", caller="ada", key="k"))).id == "run-1"
        await journal.create(run_record("run-4"))
        assert [record.id for record in await journal.runs()] == ["run-4", "run-2", "run-1"]


async def test_it_can_be_closed_and_opened_any_number_of_times(place: Place) -> None:
    journal = place.journal()
    for number in range(4):
        async with journal:
            await journal.create(run_record(f"run-{number}"))
            assert len(await journal.runs()) == number + 1
        await journal.close()


async def test_what_is_open_cannot_be_opened(journal: Journal) -> None:
    with pytest.raises(JournalError, match="open"):
        await journal.open()
    await journal.create(run_record("run-1"))


async def test_who_opens_it_first_has_it(place: Place) -> None:
    journal = place.journal()
    refused: list[JournalError] = []

    async def open_it() -> None:
        try:
            await journal.open()
        except JournalError as exc:
            refused.append(exc)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(open_it)
        assert len(refused) == 2
        await journal.create(run_record("run-1"))
        await journal.close()


async def test_what_is_being_stored_is_stored_before_it_closes(place: Place) -> None:
    journal = place.journal()
    stored: list[int] = []

    async def grow() -> None:
        try:
            for seq in range(1, 10_000):
                await journal.append("run-1", entries(seq, seq))
                stored.append(seq)
        except JournalError:
            pass

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            await journal.open()
            await journal.create(run_record("run-1"))
            tasks.start_soon(grow)
            await journal.wait("run-1", 0)
            await journal.close()
            tasks.cancel_scope.cancel()
        async with place.journal() as journal:
            record = await journal.get("run-1")
    assert record is not None
    assert record.last_seq >= len(stored) > 0


async def test_nothing_can_be_done_with_one_that_is_not_open(place: Place) -> None:
    if not place.outlives:
        pytest.skip("one in memory can be used before and after")
    journal = place.journal()
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: journal.create(run_record("run-1")),
        lambda: journal.append("run-1", entries(1, 1)),
        lambda: journal.finish("run-1", Entry(1, b"end"), "completed", 1.0),
        lambda: journal.get("run-1"),
        lambda: journal.runs(),
        lambda: journal.read("run-1"),
        lambda: journal.delete("run-1"),
        lambda: journal.oldest(),
        lambda: journal.size(),
        lambda: journal.call("run-1", b"", timeout=0.01),
        lambda: journal.put("kind", "name", b""),
        lambda: journal.pick("kind", "name"),
        lambda: journal.pick_all("kind"),
    ]
    for _ in range(2):
        for call in calls:
            with anyio.fail_after(30), pytest.raises(JournalError):
                await call()
        with anyio.fail_after(30):
            await journal.wait("run-1", 0)
        async with journal:
            pass


async def test_one_in_memory_can_be_used_before_and_after() -> None:
    journal = MemoryJournal()
    assert repr(journal) == "<MemoryJournal the journal in memory, closed>"
    await journal.create(run_record("run-1"))
    await journal.create(run_record("run-2"))
    await journal.append("run-1", entries(1, 3))
    with anyio.fail_after(30):
        await journal.wait("run-1", 3)
    await journal.finish("run-2", Entry(1, b"end"), "completed", 1.0)
    async with journal:
        assert [record.id for record in await journal.orphans()] == ["run-1"]
        await journal.finish("run-1", Entry(4, b"end"), "interrupted", 1.0)
    assert await journal.get("run-1") is not None
    assert len(await journal.read("run-1")) == 4


# Runs without a process


async def test_own_runs_are_not_orphans(journal: Journal) -> None:
    await journal.create(run_record("run-1"))
    assert await journal.orphans() == []


async def test_runs_that_were_left_running_are_given_to_the_next_process_once(place: Place) -> None:
    async with place.journal() as journal:
        for number in range(5):
            await journal.create(run_record(f"run-{number}", meta={"number": number}))
            await journal.append(f"run-{number}", entries(1, number, b"abc"))
        await journal.finish("run-3", Entry(4, b"end"), "completed", 1.0)
        expected = [await journal.get(f"run-{number}") for number in (0, 1, 2, 4)]
    async with place.journal() as journal:
        await journal.create(run_record("run-9"))
        assert by_id(await journal.orphans()) == expected
        assert await journal.orphans() == []
        for record in expected:
            assert record is not None
            end = Entry(record.last_seq + 1, b"end")
            await journal.finish(record.id, end, "interrupted", 2.0)
        assert [record.id for record in await journal.runs(status="interrupted")] == [
            "run-4",
            "run-2",
            "run-1",
            "run-0",
        ]
        assert [record.id for record in await journal.runs(status="running")] == ["run-9"]


async def test_an_orphan_that_was_taken_and_not_ended_is_one_again(place: Place) -> None:
    async with place.journal() as journal:
        await journal.create(run_record("run-1"))
    for last in range(3):
        async with place.journal() as journal:
            (record,) = await journal.orphans()
            assert (record.id, record.last_seq) == ("run-1", last)
            await journal.append("run-1", entries(last + 1, last + 1))
    async with place.journal() as journal:
        (record,) = await journal.orphans()
        await journal.finish("run-1", Entry(4, b"end"), "interrupted", 1.0)
    async with place.journal() as journal:
        assert await journal.orphans() == []
        assert seqs(await journal.read("run-1")) == [1, 2, 3, 4]


async def test_an_orphan_that_has_ended_meanwhile_is_not_taken(place: Place) -> None:
    async with place.journal() as journal:
        await journal.create(run_record("run-1"))
        await journal.create(run_record("run-2"))
    async with place.journal() as journal:
        with suppress(JournalConflict):  # where there may be several processes, it belongs to none yet
            await journal.finish("run-1", Entry(1, b"end"), "failed", 1.0)
        running = await journal.runs(status="running")
        assert by_id(await journal.orphans()) == by_id(running)


async def test_who_waits_for_an_orphan_is_woken(place: Place) -> None:
    async with place.journal() as journal:
        await journal.create(run_record("run-1"))
    async with place.journal() as journal:
        await journal.orphans()
        found: list[Entry] = []

        async def follow() -> None:
            while not found:
                await journal.wait("run-1", 0)
                found.extend(await journal.read("run-1"))

        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(follow)
                await journal.finish("run-1", Entry(1, b"end"), "interrupted", 1.0)
    assert found == [Entry(1, b"end")]


# Asking the process of a run


async def test_the_process_of_a_run_is_asked(journal: Journal) -> None:
    await journal.create(run_record("run-1"))
    journal.serve(answer)
    with anyio.fail_after(30):
        assert await journal.call("run-1", b"\0 What? \xff") == b"run-1: \0 What? \xff"


async def test_many_ask_at_once(journal: Journal) -> None:
    journal.serve(answer)
    got: dict[bytes, bytes] = {}

    async def ask(run_id: str, body: bytes) -> None:
        got[body] = await journal.call(run_id, body)

    with anyio.fail_after(30):
        for number in range(3):
            await journal.create(run_record(f"run-{number}"))
        async with anyio.create_task_group() as tasks:
            for number in range(30):
                tasks.start_soon(ask, f"run-{number % 3}", b"%d" % number)
    assert got == {b"%d" % number: b"run-%d: %d" % (number % 3, number) for number in range(30)}


async def test_a_call_for_a_run_that_has_ended_or_is_unknown_is_a_conflict(journal: Journal) -> None:
    journal.serve(answer)
    await journal.create(run_record("run-1"))
    await journal.finish("run-1", Entry(1, b"end"), "completed", 1.0)
    for run_id in ("run-1", "run-2", "\ud800"):
        with anyio.fail_after(30), pytest.raises(JournalConflict, match="has ended or was deleted"):
            await journal.call(run_id, b"What?")


async def test_a_process_that_does_not_answer(journal: Journal) -> None:
    await journal.create(run_record("run-1"))
    with anyio.fail_after(30):
        for handler in (None, answer, None):
            journal.serve(handler)
            if handler is None:
                with pytest.raises(JournalConflict, match="run-1"):
                    await journal.call("run-1", b"What?", timeout=0.05)
            else:
                assert await journal.call("run-1", b"What?") == b"run-1: What?"


async def test_a_process_that_takes_too_long_to_answer(journal: Journal) -> None:
    async def think(_: str, body: bytes) -> bytes:
        if body == b"Slowly":
            await anyio.sleep_forever()
        return b"Yes"

    await journal.create(run_record("run-1"))
    journal.serve(think)
    with anyio.fail_after(30):
        with pytest.raises(JournalConflict, match="has not answered within"):
            await journal.call("run-1", b"Slowly", timeout=0.05)
        assert await journal.call("run-1", b"Quickly") == b"Yes"


async def test_who_asks_may_give_up(journal: Journal) -> None:
    asked = anyio.Event()

    async def think(_: str, body: bytes) -> bytes:
        if body == b"Slowly":
            asked.set()
            await anyio.sleep_forever()
        return b"Yes"

    await journal.create(run_record("run-1"))
    journal.serve(think)
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(journal.call, "run-1", b"Slowly")
            await asked.wait()
            tasks.cancel_scope.cancel()
        assert await journal.call("run-1", b"Quickly") == b"Yes"


async def test_an_orphan_answers_once_a_process_has_taken_it(place: Place) -> None:
    async with place.journal() as journal:
        journal.serve(answer)
        await journal.create(run_record("run-1"))
    with anyio.fail_after(30):
        async with place.journal() as journal:
            with pytest.raises(JournalConflict, match="run-1"):
                await journal.call("run-1", b"What?", timeout=0.05)
            journal.serve(answer)
            with pytest.raises(JournalConflict, match="run-1"):
                await journal.call("run-1", b"What?", timeout=0.05)
            await journal.orphans()
            assert await journal.call("run-1", b"What?") == b"run-1: What?"
