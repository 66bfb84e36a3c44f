"""When runs are drawn, and what becomes of them meanwhile."""

from __future__ import annotations

import io
import logging
import math
import os
import threading
import time
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio.lowlevel import checkpoint
from progress.stage import SHARE, Keeping, end_soon, kept, output, shown_by, stream_of
from scripted import Turn, scripted

from thinkwell import ThoughtCancelled, replay

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from pathlib import Path


async def one_word(turn: Turn) -> None:
    turn.say("Done")


class Gate:
    """A turn that says something and then waits."""

    def __init__(self) -> None:
        self.open = anyio.Event()

    async def __call__(self, turn: Turn) -> None:
        turn.say("Well, ")
        await self.open.wait()
        turn.say("done")


async def test_news_is_drawn_in_one_other_thread_and_the_end_last() -> None:
    gate = Gate()
    async with scripted(gate) as agent:
        stream = stream_of(agent)
        with anyio.fail_after(30):
            async with kept(stream) as (renderer, _):
                await renderer.shows(lambda run: run.view.text == "Well, ")
                gate.open.set()
                assert await stream.result == "Well, done"
    last = renderer.last[0]
    assert (last.label, last.view.text, last.view.phase) == ("scripted", "Well, done", "completed")
    assert last.result == "Well, done"
    assert last.now == stream.elapsed
    assert renderer.calls.count("finish") == 1
    assert renderer.calls[-1] == "finish"
    assert len(renderer.threads) == 1
    assert threading.get_ident() not in renderer.threads


@pytest.mark.long
async def test_frames_that_take_long_come_less_often() -> None:
    class Slow(Keeping):
        """Computes for long at each frame."""

        def __init__(self) -> None:
            super().__init__()
            self.pauses: list[tuple[float, float]] = []
            """The time that a frame took to compute, and that until the next one."""
            self._cost = 0.0
            self._ended = math.inf

        def draw(self, runs: Sequence[Any], /, *, end: bool = False) -> None:
            if self._cost and not end:  # the end is drawn at once
                self.pauses.append((self._cost, time.monotonic() - self._ended))
            began = time.thread_time()
            while (cost := time.thread_time() - began) < 0.03:
                pass
            self._cost = cost
            super().draw(runs, end=end)
            self._ended = time.monotonic()

    async def chatters(turn: Turn) -> None:
        while len(renderer.pauses) < 3:
            turn.say("more ")
            await checkpoint()

    renderer = Slow()
    async with scripted(chatters) as agent:
        stream = stream_of(agent)
        with anyio.fail_after(30):
            async with shown_by(renderer, stream):
                await stream.wait()
    for cost, pause in renderer.pauses:
        assert pause >= cost * (1 - SHARE) / SHARE * 0.99


async def test_the_end_is_drawn_when_the_runs_end_not_when_the_block_does() -> None:
    async with scripted(one_word) as agent:
        with anyio.fail_after(30):
            async with kept(stream_of(agent)) as (renderer, _):
                await renderer.until(lambda kept: "finish" in kept.calls)
    assert renderer.calls.count("finish") == 1


async def test_leaving_early_draws_the_state_and_changes_nothing() -> None:
    gate = Gate()
    async with scripted(gate) as agent:
        stream = stream_of(agent)
        with anyio.fail_after(30):
            async with kept(stream) as (renderer, _):
                await renderer.shows(lambda run: run.view.text == "Well, ")
            assert renderer.calls[-1] == "finish"
            assert renderer.last[0].view.phase == "responding"
            assert renderer.last[0].result is None
            gate.open.set()
            assert await stream.result == "Well, done"


async def test_clocks_go_on_without_news() -> None:
    gate = Gate()
    async with scripted(gate) as agent:
        with anyio.fail_after(30):
            async with kept(stream_of(agent)) as (renderer, _):
                first = await renderer.shows(lambda run: run.view.text == "Well, ")
                later = await renderer.shows(lambda run: run.now > first.now + 0.5)
                assert later.view.text == first.view.text
        gate.open.set()


async def test_an_error_of_the_block_passes_as_it_is() -> None:
    async with scripted(Gate()) as agent:
        with pytest.raises(KeyError, match="mine"):
            async with kept(stream_of(agent)):
                raise KeyError("mine")


async def test_cancelling_the_block_draws_the_state() -> None:
    async with scripted(Gate()) as agent:
        stream = stream_of(agent)
        kept_by = list[Keeping]()
        with anyio.fail_after(30), anyio.CancelScope() as scope:
            async with kept(stream) as (renderer, _):
                kept_by.append(renderer)
                await renderer.shows(lambda run: run.view.text == "Well, ")
                scope.cancel()
                await anyio.sleep_forever()
        assert kept_by[0].calls[-1] == "finish"
        assert not stream.result.done()


async def test_several_runs_of_several_agents() -> None:
    gate = Gate()
    async with scripted(one_word) as first, scripted(gate) as second:
        streams = [stream_of(first), stream_of(second), stream_of(first)]
        with anyio.fail_after(30):
            async with kept(*streams) as (renderer, _):
                await renderer.until(lambda kept: [run.result for run in kept.last] == ["Done", None, "Done"])
                assert "finish" not in renderer.calls
                gate.open.set()
                await renderer.until(lambda kept: "finish" in kept.calls)
        assert [run.result for run in renderer.last] == ["Done", "Well, done", "Done"]
        assert [run.label for run in renderer.last] == [f"scripted {stream.id}" for stream in streams]


async def test_no_run_at_all() -> None:
    with anyio.fail_after(30):
        async with kept() as (renderer, _):
            pass
    assert renderer.frames[-1] == ()


async def test_results_are_left_out() -> None:
    async with scripted(one_word) as agent:
        with anyio.fail_after(30):
            async with kept(stream_of(agent), result=False) as (renderer, _):
                await renderer.until(lambda kept: "finish" in kept.calls)
    assert renderer.last[0].result is None


@pytest.fixture
async def recording(tmp_path: Path) -> Path:
    """A recorded run."""
    file = tmp_path / "run.jsonl"
    gate = Gate()
    gate.open.set()
    async with scripted(gate, record=file) as agent:
        assert await agent.think().text("Go").run() == "Well, done"
    return file


@pytest.mark.parametrize("speed", [0, 1])
async def test_replays(recording: Path, speed: float) -> None:
    with anyio.fail_after(30):
        async with kept(replay(recording, speed=speed)) as (renderer, _):
            await renderer.until(lambda kept: "finish" in kept.calls)
    last = renderer.last[0]
    assert (last.view.text, last.view.phase, last.result) == ("Well, done", "completed", "Well, done")
    assert last.recording == str(recording)


class Stuck(Keeping):
    """Hangs in its first frame."""

    def __init__(self) -> None:
        super().__init__()
        self.free = threading.Event()

    def draw(self, runs: Sequence[Any], /, *, end: bool = False) -> None:
        super().draw(runs, end=end)
        self.free.wait()


async def test_a_display_that_hangs_holds_up_neither_the_run_nor_the_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    end_soon(monkeypatch)
    gate = Gate()
    async with scripted(gate) as agent:
        stream = stream_of(agent)
        with anyio.fail_after(30):
            renderer = Stuck()
            async with shown_by(renderer, stream):
                await renderer.until(lambda kept: bool(kept.frames))
                gate.open.set()
                assert await stream.result == "Well, done"
            renderer.free.set()
    assert renderer.calls == ["draw"]


@pytest.fixture
def blocked() -> Generator[tuple[int, Any]]:
    """A terminal that nobody reads, and what writes to it."""
    ours, theirs = os.openpty()
    file = os.fdopen(theirs, "w")
    yield ours, output(file)
    os.close(ours)  # which ends what waits for it
    file.close()


class Pouring(Keeping):
    """Writes more than a terminal takes."""

    def __init__(self, out: Any) -> None:
        super().__init__()
        self.out = out

    def draw(self, runs: Sequence[Any], /, *, end: bool = False) -> None:
        super().draw(runs, end=end)
        self.out.write("x" * 1_000_000)


async def test_a_terminal_that_takes_no_output_holds_up_neither_the_run_nor_the_program(
    blocked: tuple[int, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    end_soon(monkeypatch)
    gate = Gate()
    async with scripted(gate) as agent:
        stream = stream_of(agent)
        with anyio.fail_after(30):
            renderer = Pouring(blocked[1])
            async with shown_by(renderer, stream, out=blocked[1]):
                await renderer.until(lambda kept: bool(kept.frames))
                gate.open.set()
                assert await stream.result == "Well, done"
                await stream.wait()
    assert renderer.calls == ["draw"]


class Broken(Keeping):
    """Cannot draw."""

    def draw(self, runs: Sequence[Any], /, *, end: bool = False) -> None:
        super().draw(runs, end=end)
        raise OSError("the terminal is gone")


async def test_what_fails_in_drawing_is_logged_once_and_ends_the_drawing_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    gate = Gate()
    async with scripted(gate) as agent:
        stream = stream_of(agent)
        with anyio.fail_after(30):
            renderer = Broken()
            async with shown_by(renderer, stream):
                await renderer.until(lambda kept: "suspend" in kept.calls)
                gate.open.set()
                assert await stream.result == "Well, done"
    assert renderer.calls == ["draw", "suspend"]
    (record,) = [each for each in caplog.records if each.levelno >= logging.WARNING]
    assert "the terminal is gone" in str(record.exc_info)


async def test_ctrl_c_is_shown() -> None:
    async with scripted(Gate()) as agent:
        stream = stream_of(agent)
        with anyio.fail_after(30):
            async with kept(stream) as (renderer, pressing):
                before = await renderer.shows(lambda run: run.view.text == "Well, ")
                assert not before.cancelling
                pressing.press()
                with pytest.raises(ThoughtCancelled):
                    await stream.result
                await renderer.until(lambda kept: "finish" in kept.calls)
    assert renderer.last[0].view.phase == "cancelled"


# What is written through


def test_what_is_no_file_of_the_systems_is_written_to_as_it_is() -> None:
    file = io.StringIO()
    assert output(file) is file


def test_a_file_that_does_not_wait_is_waited_for() -> None:
    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    seen: list[bytes] = []

    def read() -> None:
        while data := os.read(ours, 65536):
            seen.append(data)

    with os.fdopen(theirs, "w", encoding="utf-8") as file:
        out = output(file)
        assert (out.encoding, out.fileno(), out.isatty(), out.writable()) == ("utf-8", theirs, False, True)
        reader = threading.Thread(target=read)
        reader.start()
        assert out.write("é" * 200_000) == 200_000
        out.flush()
    reader.join(10)
    os.close(ours)
    assert b"".join(seen).decode() == "é" * 200_000
