"""Those who watch a run: at every place of it, fast and slow, in and behind the window that they share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest
from anyio.lowlevel import checkpoint
from web_stage import ADA, PATIENCE, read_entry, served

from thinkwell import events as ev
from thinkwell.journal import MemoryJournal
from thinkwell.web import RunEnded

if TYPE_CHECKING:
    from scripted import Turn

    from thinkwell.journal import Entry
    from thinkwell.web import Batch, Watcher

WINDOW = 256 * 1024
"""Bytes of a run's end that are kept in memory."""

PIECE = 64 * 1024
"""Bytes that are given at once."""


class CountedJournal(MemoryJournal):
    """A journal that knows how often it was read."""

    reads = 0

    async def read(self, run_id: str, after: int = 0, *, most: int = 4 * PIECE) -> list[Entry]:
        self.reads += 1
        return await super().read(run_id, after, most=most)


async def given(watcher: Watcher) -> Batch | None:
    """Wait for what a watcher gets next, and not for ever."""
    with anyio.fail_after(PATIENCE):
        return await watcher.next()


@pytest.mark.parametrize("ended", [True, False])
async def test_from_every_number(*, ended: bool) -> None:
    go = anyio.Event()

    async def work(turn: Turn) -> None:
        for number in range(40):
            turn.say(f"{number} ")
        await go.wait()

    async with served(work) as stage:
        run = await stage.start()
        if ended:
            go.set()
            await stage.ended(run.id)
            last = (await stage.server.get(run.id, caller=ADA)).last_seq
        else:
            last = 40
        for after in range(last + 1):
            async with stage.server.watch(run.id, caller=ADA, after=after) as watcher:
                numbers: list[int] = []
                while (numbers or [after])[-1] < last:
                    batch = await given(watcher)
                    assert batch is not None
                    numbers += [entry.seq for entry in batch.entries]
                assert numbers[: last - after] == list(range(after + 1, last + 1))
                assert watcher.seq == (numbers or [after])[-1]
                assert watcher.ended == ended
        go.set()


@pytest.mark.long
async def test_a_slow_watcher_gets_everything_and_delays_no_other() -> None:
    going, size, journal = anyio.Event(), 100_000, CountedJournal()

    async def pour(turn: Turn) -> None:
        turn.say("first")
        await going.wait()
        for number in range(12):
            turn.say(f"{number:02}" + "x" * size)
            await checkpoint()

    async with served(pour, journal=journal) as stage:
        run = await stage.start()
        async with stage.server.watch(run.id, caller=ADA) as slow:
            first = await given(slow)
            assert first is not None
            going.set()
            log = await stage.ended(run.id)  # another one has all of it meanwhile
            before = journal.reads
            assert sum(len(e.text) for e in log if isinstance(e, ev.Message)) > 4 * WINDOW
            entries = list(first.entries)
            while (batch := await given(slow)) is not None:
                assert batch.size <= WINDOW or len(batch.entries) == 1  # the end has the whole text
                entries += batch.entries
            assert [read_entry(entry) for entry in entries] == log
            assert slow.ended
            assert journal.reads - before > 4, "the window has forgotten it"


async def test_who_is_a_little_behind_gets_what_has_come_meanwhile_at_once() -> None:
    going, size, number, journal = anyio.Event(), 1_000, 150, CountedJournal()
    said = anyio.Semaphore(0)

    async def trickle(turn: Turn) -> None:
        turn.say("first")
        await going.wait()
        for _ in range(number):
            turn.say("x" * size)
            await said.acquire()

    async with served(trickle, journal=journal) as stage:
        run = await stage.start()
        async with (
            stage.server.watch(run.id, caller=ADA) as fast,
            stage.server.watch(run.id, caller=ADA) as slow,
            stage.server.watch(run.id, caller=ADA) as other,
        ):
            for watcher in (fast, slow, other):
                while (batch := await given(watcher)) is not None:
                    if isinstance(read_entry(batch.entries[-1]), ev.Message):
                        break
            going.set()
            last = fast.seq + number
            while fast.seq < last:
                assert await given(fast) is not None
                said.release()
            before = journal.reads
            batch = await given(slow)
            assert batch is not None
            assert len(batch.entries) > 30
            assert PIECE - 2 * size < batch.size <= PIECE
            assert await given(other) is batch, "it is made once for all who are at that place"
            while not slow.ended:
                assert await given(slow) is not None
            assert journal.reads == before, "it is all in the window"


async def test_frames_are_those_of_an_event_source() -> None:
    async def hello(turn: Turn) -> None:
        turn.say("Two\nlines\r\nand a \u2028.")

    async with served(hello) as stage:
        run = await stage.start()
        await stage.ended(run.id)
        async with stage.server.watch(run.id, caller=ADA) as watcher:
            batch = await given(watcher)
        assert batch is not None
        frames = batch.sse.split(b"\n\n")
        assert frames.pop() == b""
        assert len(frames) == len(batch.entries)
        for frame, entry in zip(frames, batch.entries, strict=True):
            lines = frame.split(b"\n")
            assert lines[0] == b"id: %d" % entry.seq
            assert lines[-1] == b"data: " + entry.data
            assert (b"event: end" in lines) == isinstance(read_entry(entry), RunEnded)
        assert batch.sse is batch.sse


async def test_a_number_that_is_not_there_yet_is_waited_for() -> None:
    go = anyio.Event()

    async def work(turn: Turn) -> None:
        turn.say("One.")
        await go.wait()
        for number in range(50):
            turn.say(f"{number} ")

    async with served(work) as stage:
        run = await stage.start()
        async with stage.server.watch(run.id, caller=ADA, after=30) as watcher:
            with anyio.move_on_after(0.05) as waiting:
                await watcher.next()
            assert waiting.cancelled_caught
            go.set()
            batch = await given(watcher)
            assert batch is not None
            assert batch.entries[0].seq == 31
        await stage.ended(run.id)
        async with stage.server.watch(run.id, caller=ADA, after=10_000) as watcher:
            assert await given(watcher) is None
            assert watcher.ended
