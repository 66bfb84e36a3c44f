"""Runs that are too old or too many are forgotten, whatever the journal, and never one that is running."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest
from journals import run_record

from thinkwell.journal import Entry, MemoryJournal, Retention

if TYPE_CHECKING:
    from thinkwell.journal import Journal


async def have(journal: Journal, *ended: float, size: int = 100) -> None:
    """Let there be runs that have ended at those times, of so many bytes each."""
    for number, at in enumerate(ended, 1):
        await journal.create(run_record(f"run-{number}"))
        await journal.finish(f"run-{number}", Entry(1, b"x" * size), "completed", at)


async def left(journal: Journal) -> set[str]:
    return {record.id for record in await journal.runs()}


async def test_nothing_is_forgotten_unless_it_was_said(journal: Journal) -> None:
    await have(journal, 1.0, 2.0)
    assert await Retention().prune(journal, 1e12) == []
    assert len(await left(journal)) == 2


async def test_runs_are_forgotten_by_the_time_since_their_end(journal: Journal) -> None:
    await have(journal, 30.0, 10.0, 20.0, 50.0)
    retention = Retention(max_age=10.0)
    assert await retention.prune(journal, 19.9) == []
    assert await retention.prune(journal, 30.0) == ["run-2", "run-3"]
    assert await retention.prune(journal, 30.0) == []
    assert await left(journal) == {"run-1", "run-4"}


async def test_those_that_ended_first_are_forgotten_until_the_others_fit(journal: Journal) -> None:
    await have(journal, 30.0, 10.0, 20.0, 40.0)
    assert await Retention(max_bytes=400).prune(journal, 150.0) == []
    assert await Retention(max_bytes=399).prune(journal, 150.0) == ["run-2"]
    assert await Retention(max_bytes=101).prune(journal, 150.0) == ["run-3", "run-1"]
    assert await Retention(max_bytes=0).prune(journal, 150.0) == ["run-4"]
    assert await journal.size() == 0


async def test_age_comes_first(journal: Journal) -> None:
    await have(journal, 100.0, 200.0, 300.0, 400.0)
    retention = Retention(max_age=250.0, max_bytes=200)
    assert await retention.prune(journal, 350.0) == ["run-1", "run-2"]
    await have_more(journal, "run-5", 300)
    assert await retention.prune(journal, 470.0) == ["run-3", "run-4", "run-5"]


async def test_a_run_that_has_just_ended_is_there_for_those_who_watch_it(journal: Journal) -> None:
    await have(journal, 100.0, 120.0)
    retention = Retention(max_bytes=0)
    assert await retention.prune(journal, 159.9) == []
    assert await retention.prune(journal, 160.0) == ["run-1"]
    assert await Retention(max_age=10.0).prune(journal, 160.0) == ["run-2"]  # as was asked for


async def test_who_waits_for_a_run_that_is_forgotten_waits_no_more(journal: Journal) -> None:
    await have(journal, 10.0)
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(journal.wait, "run-1", 1)
            assert await Retention(max_age=5.0, max_bytes=0).prune(journal, 100.0) == ["run-1"]
        await journal.wait("run-1", 1)
    assert await journal.get("run-1") is None
    assert await journal.read("run-1") == []


async def have_more(journal: Journal, run_id: str, size: int) -> None:
    await journal.create(run_record(run_id))
    await journal.finish(run_id, Entry(1, b"x" * size), "failed", 405.0)


async def test_a_running_run_counts_and_stays(journal: Journal) -> None:
    await have(journal, 10.0, 20.0)
    await journal.create(run_record("long"))
    await journal.append("long", [Entry(1, b"x" * 1000)])
    assert await Retention(max_age=0.0, max_bytes=0).prune(journal, 1e12) == ["run-1", "run-2"]
    assert await left(journal) == {"long"}
    assert len(await journal.read("long")) == 1


async def test_a_run_that_ended_in_the_future_is_not_old(journal: Journal) -> None:
    await have(journal, 1000.0)
    assert await Retention(max_age=0.0).prune(journal, 10.0) == []


@pytest.mark.long
async def test_very_many_are_forgotten(journal: Journal) -> None:
    await have(journal, *(float(number) for number in range(250)), size=10)
    gone = await Retention(max_bytes=300).prune(journal, 1000.0)
    assert gone == [f"run-{number}" for number in range(1, 221)]
    assert await journal.size() == 300


async def test_several_servers_forget_each_run_once(journal: Journal) -> None:
    await have(journal, *(float(number) for number in range(150)), size=10)
    gone: list[str] = []

    async def prune() -> None:
        gone.extend(await Retention(max_age=1.0).prune(journal, 1000.0))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(prune)
        await prune()
    assert sorted(gone) == sorted(f"run-{number}" for number in range(1, 151))


async def test_runs_that_another_server_is_forgetting_are_left_to_it() -> None:
    class Contended(MemoryJournal):
        """Another server is always a little faster, and lists do not show it yet."""

        async def delete(self, run_id: str) -> bool:
            await self.get(run_id)
            return False

    async with Contended() as journal:
        await have(journal, 1.0, 2.0)
        with anyio.fail_after(30):
            assert await Retention(max_age=1.0).prune(journal, 10.0) == []


@pytest.mark.parametrize("name", ["max_age", "max_bytes"])
@pytest.mark.parametrize(
    ("value", "error"), [(-1, ValueError), (float("nan"), ValueError), ("1", TypeError), (True, TypeError)]
)
def test_limits_that_cannot_be(name: str, value: object, error: type[Exception]) -> None:
    options: dict[str, Any] = {name: value}
    with pytest.raises(error, match=name):
        Retention(**options)
