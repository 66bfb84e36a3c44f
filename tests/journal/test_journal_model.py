"""Whatever is done, a journal in a file or in Redis answers as one in memory does."""

from __future__ import annotations

import tempfile
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, TypeAlias

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from journals import redis_journal, run_record

from thinkwell.journal import Entry, JournalConflict, MemoryJournal, SqliteJournal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from redis_servers import RedisServer

    from thinkwell.journal import Journal, RunEnd, RunStatus

Step: TypeAlias = "Callable[[Journal], Awaitable[object]]"

ids = st.sampled_from([f"run-{number}" for number in range(6)])
callers = st.sampled_from(["ada", "bob"])
threads = st.sampled_from([None, "t", "u"])
statuses: st.SearchStrategy[RunStatus | None] = st.sampled_from([None, "running", "completed", "failed"])
ends: st.SearchStrategy[RunEnd] = st.sampled_from(["completed", "failed", "cancelled", "interrupted"])
limits = st.sampled_from([0, 1, 2, 100])
names = st.sampled_from(["a", "b", "c"])


@st.composite
def create(draw: st.DrawFn) -> Step:
    record = run_record(
        draw(ids),
        caller=draw(callers),
        thread=draw(threads),
        key=draw(st.sampled_from([None, None, "k", "l"])),
        created=draw(st.floats(0, 1e10)),
        meta=draw(
            st.dictionaries(st.text(max_size=3), st.none() | st.booleans() | st.integers(), max_size=2)
        ),
    )
    return lambda journal: journal.create(record)


@st.composite
def append(draw: st.DrawFn) -> Step:
    run_id = draw(ids)
    skip = draw(st.sampled_from([0, 0, 0, 0, 1, -1]))
    datas = draw(st.lists(st.binary(max_size=40), max_size=5))

    async def step(journal: Journal) -> object:
        record = await journal.get(run_id)
        first = (1 if record is None else record.last_seq + 1) + skip
        await journal.append(run_id, [Entry(seq, data) for seq, data in enumerate(datas, first)])
        return None

    return step


@st.composite
def finish(draw: st.DrawFn) -> Step:
    run_id, status = draw(ids), draw(ends)
    at, data = draw(st.floats(0, 100)), draw(st.binary(max_size=5))
    skip = draw(st.sampled_from([0, 0, 0, 1]))

    async def step(journal: Journal) -> object:
        record = await journal.get(run_id)
        seq = (1 if record is None else record.last_seq + 1) + skip
        await journal.finish(run_id, Entry(seq, data), status, at)
        return None

    return step


@st.composite
def find(draw: st.DrawFn) -> Step:
    caller, thread, status = draw(st.none() | callers), draw(threads), draw(statuses)
    before, limit = draw(st.none() | ids), draw(limits)
    return lambda journal: journal.runs(
        caller=caller, thread=thread, status=status, before=before, limit=limit
    )


@st.composite
def read(draw: st.DrawFn) -> Step:
    run_id, after, most = draw(ids), draw(st.integers(-2, 20)), draw(st.integers(0, 200))
    return lambda journal: journal.read(run_id, after, most=most)


@st.composite
def look(draw: st.DrawFn) -> Step:
    run_id, name, limit = draw(ids), draw(names), draw(limits)
    looks: list[Step] = [
        lambda journal: journal.get(run_id),
        lambda journal: journal.oldest(limit=limit),
        lambda journal: journal.size(),
        lambda journal: journal.orphans(),
        lambda journal: journal.pick("kind", name),
        lambda journal: journal.pick_all("kind"),
        lambda journal: journal.call(run_id, b"What?"),
    ]
    return draw(st.sampled_from(looks))


@st.composite
def put(draw: st.DrawFn) -> Step:
    name, data = draw(names), draw(st.none() | st.binary(max_size=10))
    return lambda journal: journal.put("kind", name, data)


async def answer(run_id: str, body: bytes) -> bytes:
    return run_id.encode() + body


async def reopen(journal: Journal) -> None:
    await journal.close()
    await journal.open()
    journal.serve(answer)


@st.composite
def delete(draw: st.DrawFn) -> Step:
    run_id = draw(ids)
    return lambda journal: journal.delete(run_id)


reopenings: st.SearchStrategy[Step] = st.just(reopen)
kinds = [create(), append(), append(), finish(), find(), read(), look(), put(), delete(), reopenings]
LAST: list[Step] = [reopen, lambda journal: journal.runs(), lambda journal: journal.size()]


async def outcome(journal: Journal, step: Step) -> object:
    try:
        return await step(journal)
    except JournalConflict as exc:
        return exc.reason


EXAMPLES = pytest.mark.parametrize("examples", [8, pytest.param(100, marks=pytest.mark.long)])


def check(backend: str, examples: int, play: Callable[[list[Step]], Awaitable[None]]) -> None:
    """Play so many plans."""

    @settings(max_examples=examples)
    @given(plan=st.lists(st.one_of(kinds), min_size=10, max_size=40))
    def each(plan: list[Step]) -> None:
        anyio.run(play, plan, backend=backend)

    each()


@EXAMPLES
def test_a_file_answers_as_memory_does(anyio_backend: str, examples: int) -> None:
    async def play(plan: list[Step]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            async with MemoryJournal() as memory, SqliteJournal(Path(folder, "runs.sqlite")) as file:
                for journal in (memory, file):
                    journal.serve(answer)
                for step in [*plan, *LAST]:
                    assert await outcome(file, step) == await outcome(memory, step)

    check(anyio_backend, examples, play)


async def take_over(journal: Journal) -> object:
    """Begin anew, with the runs that were running: in Redis they belong to nobody before."""
    await reopen(journal)
    return await journal.orphans()


@EXAMPLES
def test_redis_answers_as_memory_does(redis_server: RedisServer, anyio_backend: str, examples: int) -> None:
    async def play(plan: list[Step]) -> None:
        async with MemoryJournal() as memory, redis_journal(redis_server.url, prefix=token_hex(8)) as redis:
            for journal in (memory, redis):
                journal.serve(answer)
            for step in [*plan, *LAST]:
                told = take_over if step is reopen else step
                assert await outcome(redis, told) == await outcome(memory, told)

    check(anyio_backend, examples, play)
