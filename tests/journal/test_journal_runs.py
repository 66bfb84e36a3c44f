"""Every journal knows its runs, by their ids, by what they are, and by their callers' keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest
from journals import entries, run_record

from thinkwell.journal import Entry, JournalConflict, RunRecord

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkwell.journal import Journal, RunEnd

ODD = "a'b\"c\\d\0e\nf äöü 漢字 🦊 % _ * : {}"
"""A text that something might go wrong with."""


def ids(records: Sequence[RunRecord]) -> list[str]:
    return [record.id for record in records]


async def have(
    journal: Journal, run_id: str, *, at: float = 1.0, status: RunEnd = "completed", size: int = 2
) -> None:
    """Let there be a run that has ended."""
    await journal.create(run_record(run_id))
    await journal.finish(run_id, Entry(1, b"x" * size), status, at)


async def test_a_run_is_known_from_its_creation_on(journal: Journal) -> None:
    record = RunRecord(
        id=f"run-{ODD}",
        agent=ODD,
        created=1_700_000_000.123456,
        caller=ODD,
        title=ODD,
        thread=ODD,
        key=ODD,
        meta={
            ODD: [1, 2.5, None, True, {"nested": ODD}],
            "big": 2**63,
            "small": -(2**53),
            "long": "x" * 5000,
        },
    )
    assert await journal.create(record) == record
    assert await journal.get(record.id) == record
    assert await journal.runs() == [record]


async def test_a_run_that_is_nowhere(journal: Journal) -> None:
    for nowhere in ("", "run-1", ODD, "*", "\ud800"):
        assert await journal.get(nowhere) is None
        assert await journal.read(nowhere) == []
        assert not await journal.delete(nowhere)
    assert await journal.runs() == []
    assert await journal.oldest() == []
    assert await journal.orphans() == []
    assert await journal.size() == 0


async def test_an_id_cannot_be_taken_twice(journal: Journal) -> None:
    first = await journal.create(run_record("run-1", title="The first"))
    await journal.append("run-1", entries(1, 3))
    with pytest.raises(JournalConflict, match="run-1"):
        await journal.create(run_record("run-1", key="new", caller="bob", title="The second"))
    found = await journal.get("run-1")
    assert found is not None
    assert (found.title, found.caller, found.last_seq) == (first.title, "ada", 3)
    assert await journal.create(run_record("run-2", key="new", caller="bob")) == run_record(
        "run-2", key="new", caller="bob"
    )


# Keys


async def test_a_key_starts_one_run_only(journal: Journal) -> None:
    first = run_record("run-1", key="k", title="The first")
    assert await journal.create(first) == first
    assert await journal.create(run_record("run-2", key="k", title="The second")) == first
    assert await journal.get("run-2") is None
    assert ids(await journal.runs()) == ["run-1"]
    with anyio.fail_after(30):
        await journal.wait("run-2", 0)
    with pytest.raises(JournalConflict, match="run-2 has ended or was deleted"):
        await journal.append("run-2", entries(1, 1))


async def test_the_same_request_again_is_answered_by_the_run_as_it_is_now(journal: Journal) -> None:
    record = run_record("run-1", key="k")
    await journal.create(record)
    await journal.append("run-1", entries(1, 2, b"ab"))
    again = await journal.create(record)
    assert (again.status, again.last_seq, again.size) == ("running", 2, 4)
    await journal.finish("run-1", Entry(3, b"end"), "failed", 7.5)
    again = await journal.create(run_record("run-2", key="k"))
    assert (again.id, again.status, again.ended, again.last_seq, again.size) == ("run-1", "failed", 7.5, 3, 7)


async def test_keys_are_each_caller_s_own(journal: Journal) -> None:
    await journal.create(run_record("run-1", caller="ada", key="k"))
    assert (await journal.create(run_record("run-2", caller="bob", key="k"))).id == "run-2"
    assert (await journal.create(run_record("run-3", caller="ad", key="ak"))).id == "run-3"
    assert (await journal.create(run_record("run-4", caller="ada", key="K"))).id == "run-4"
    assert (await journal.create(run_record("run-5", caller="ada", key=""))).id == "run-5"
    assert (await journal.create(run_record("run-6", caller="ada", key=""))).id == "run-5"


async def test_runs_without_a_key_are_all_different(journal: Journal) -> None:
    for number in range(3):
        await journal.create(run_record(f"run-{number}"))
    assert len(await journal.runs()) == 3


async def test_a_key_that_comes_many_times_at_once_starts_one_run(journal: Journal) -> None:
    got: set[str] = set()

    async def start(number: int) -> None:
        got.add((await journal.create(run_record(f"run-{number}", key="k"))).id)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(start, number)
    assert got == set(ids(await journal.runs()))
    assert len(got) == 1


async def test_a_key_is_forgotten_with_its_run(journal: Journal) -> None:
    await journal.create(run_record("run-1", key="k"))
    await journal.finish("run-1", Entry(1, b"end"), "completed", 1.0)
    assert await journal.delete("run-1")
    assert (await journal.create(run_record("run-2", key="k"))).id == "run-2"


# Lists


async def test_runs_come_in_the_order_of_their_creation_whatever_the_clock_says(journal: Journal) -> None:
    for number, created in enumerate((5.0, 9.0, 1.0, 9.0, 9.0)):
        await journal.create(run_record(f"run-{number}", created=created))
    assert ids(await journal.runs()) == ["run-4", "run-3", "run-2", "run-1", "run-0"]


async def test_runs_are_found_by_caller_conversation_and_status(journal: Journal) -> None:
    for number in range(12):
        record = run_record(
            f"run-{number}", caller="ada" if number % 2 else "bob", thread=(None, "t", "u")[number % 3]
        )
        await journal.create(record)
    for number in (3, 4, 7):
        await journal.finish(f"run-{number}", Entry(1, b"end"), "completed", 1.0)
    await journal.finish("run-5", Entry(1, b"end"), "cancelled", 1.0)
    every = await journal.runs()
    assert len(every) == 12
    for caller in (None, "ada", "bob", "eve", ""):
        for thread in (None, "t", "u", "ada"):
            for status in (None, "running", "completed", "cancelled", "interrupted"):
                found = await journal.runs(caller=caller, thread=thread, status=status)
                assert found == [
                    record
                    for record in every
                    if caller in (None, record.caller)
                    and thread in (None, record.thread)
                    and status in (None, record.status)
                ]


async def test_lists_are_read_page_by_page(journal: Journal) -> None:
    for number in range(25):
        await journal.create(run_record(f"run-{number}", caller="ada" if number % 5 else "bob"))
    found: list[str] = []
    before = None
    while page := await journal.runs(caller="ada", before=before, limit=6):
        assert len(page) <= 6
        found += ids(page)
        before = page[-1].id
    assert found == [f"run-{number}" for number in reversed(range(25)) if number % 5]
    assert ids(await journal.runs(caller="ada", before="run-5", limit=2)) == ["run-4", "run-3"]


async def test_behind_a_run_that_is_gone_there_is_none(journal: Journal) -> None:
    for number in range(3):
        await have(journal, f"run-{number}")
    assert await journal.runs(before="run-7") == []
    assert await journal.runs(before="run-0") == []
    assert await journal.delete("run-1")
    assert await journal.runs(before="run-1") == []
    assert ids(await journal.runs(before="run-2")) == ["run-0"]


@pytest.mark.parametrize("limit", [0, -1])
async def test_a_list_of_none(journal: Journal, limit: int) -> None:
    await have(journal, "run-1")
    assert await journal.runs(limit=limit) == []
    assert await journal.oldest(limit=limit) == []


async def test_a_list_has_a_hundred_at_most_unless_more_are_asked_for(journal: Journal) -> None:
    for number in range(120):
        await have(journal, f"run-{number}", at=float(number))
    assert len(await journal.runs()) == 100
    assert len(await journal.runs(limit=10**30)) == 120
    assert len(await journal.oldest()) == 100
    assert len(await journal.oldest(limit=10**30)) == 120


# The end


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled", "interrupted"])
async def test_how_a_run_has_ended_is_known(journal: Journal, status: RunEnd) -> None:
    record = await journal.create(run_record("run-1", meta={"a": 1}))
    await journal.append("run-1", entries(1, 2, b"abc"))
    await journal.finish("run-1", Entry(3, b"end"), status, 1_700_000_009.25)
    found = await journal.get("run-1")
    assert found is not None
    assert (found.status, found.ended, found.last_seq, found.size) == (status, 1_700_000_009.25, 3, 9)
    assert (found.created, found.meta) == (record.created, record.meta)


async def test_those_that_ended_first_come_first(journal: Journal) -> None:
    for number, at in enumerate((5.0, 3.5, 9.0, 3.5)):
        await have(journal, f"run-{number}", at=at)
    await journal.create(run_record("run-9"))
    assert ids(await journal.oldest()) == ["run-1", "run-3", "run-0", "run-2"]
    assert ids(await journal.oldest(limit=3)) == ["run-1", "run-3", "run-0"]


async def test_a_deleted_run_is_gone_from_everywhere(journal: Journal) -> None:
    await journal.create(run_record("run-1", thread="t"))
    await journal.append("run-1", entries(1, 50))
    await journal.finish("run-1", Entry(51, b"end"), "completed", 1.0)
    await have(journal, "run-2")
    assert await journal.delete("run-1")
    assert not await journal.delete("run-1")
    assert await journal.get("run-1") is None
    assert await journal.read("run-1") == []
    assert await journal.runs(thread="t") == []
    assert ids(await journal.runs()) == ids(await journal.oldest()) == ["run-2"]
    assert await journal.size() == 2


async def test_a_running_run_cannot_be_deleted(journal: Journal) -> None:
    await journal.create(run_record("run-1"))
    await journal.append("run-1", entries(1, 1))
    with pytest.raises(JournalConflict, match="run-1 is running"):
        await journal.delete("run-1")
    assert len(await journal.read("run-1")) == 1


async def test_a_run_that_many_delete_at_once_is_deleted_once(journal: Journal) -> None:
    await have(journal, "run-1")
    deleted: list[bool] = []

    async def delete() -> None:
        deleted.append(await journal.delete("run-1"))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(delete)
    assert sorted(deleted) == [False, False, False, False, True]


async def test_the_size_is_that_of_all_entries(journal: Journal) -> None:
    await have(journal, "run-1", size=10)
    await journal.create(run_record("run-2"))
    await journal.append("run-2", entries(1, 4, b"x" * 25))
    assert await journal.size() == 110
    assert await journal.delete("run-1")
    assert await journal.size() == 100
