"""Ctrl-C and Ctrl-Z."""

from __future__ import annotations

import io
import os
import signal
import threading
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio.lowlevel import checkpoint
from progress.ptys import program
from progress.stage import Pty, kept, stream_of
from rich.console import Console
from scripted import Turn, scripted

from thinkwell import ThoughtCancelled
from thinkwell.progress import Live

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import FrameType

    from thinkwell import ThoughtStream


def interrupt(number: int, frame: FrameType | None) -> None:
    """Stand in for what a program does at Ctrl-C: tests that run in the background ignore it."""
    raise KeyboardInterrupt


@pytest.fixture(autouse=True)
def before() -> Generator[Any]:
    """What is done at Ctrl-C while nothing is shown."""
    kept = signal.signal(signal.SIGINT, interrupt)
    yield interrupt
    signal.signal(signal.SIGINT, kept)


async def for_ever(turn: Turn) -> None:
    turn.say("Well")
    await anyio.sleep_forever()


def live(stream: ThoughtStream[Any]) -> Live:
    return Live(stream, console=Console(file=io.StringIO()), ctrl_c=True)


async def press(live: Live) -> None:
    """Press Ctrl-C, and wait until it has arrived."""
    presses = live.presses
    signal.raise_signal(signal.SIGINT)
    while live.presses == presses:
        await checkpoint()


async def test_the_first_cancels_the_second_kills_the_third_is_the_programs(before: Any) -> None:
    ended = anyio.Event()

    async def deaf(turn: Turn) -> None:
        turn.say("Well")
        with anyio.CancelScope(shield=True):
            await ended.wait()

    async with scripted(deaf) as agent:
        stream = stream_of(agent)
        try:
            with anyio.fail_after(30):
                async for event in stream:
                    if event.type == "message":
                        break
                async with live(stream) as showing:
                    await press(showing)
                    assert isinstance(stream.result.exception(), ThoughtCancelled)
                    phase = stream.view.phase
                    assert phase == "responding"
                    assert (showing.presses, showing.killed) == (1, False)
                    await press(showing)
                    assert (showing.presses, showing.killed) == (2, True)
                    assert signal.getsignal(signal.SIGINT) is before
                    await stream.wait()
                    assert stream.view.phase == "cancelled"
            assert signal.getsignal(signal.SIGINT) is before
            assert showing.presses == 2
        finally:
            ended.set()


async def test_the_inner_of_two_receives_and_then_the_outer_one() -> None:
    async with scripted(for_ever) as one, scripted(for_ever) as two:
        with anyio.fail_after(30):
            async with live(stream_of(one)) as outer:
                async with live(stream_of(two)) as inner:
                    await press(inner)
                    assert outer.presses == 0
                await press(outer)
    assert (outer.presses, inner.presses) == (1, 1)


async def test_a_program_that_ignores_it_goes_on_ignoring_it() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    async with scripted(for_ever) as agent:
        with anyio.fail_after(30):
            async with live(stream_of(agent)) as showing:
                assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    assert showing.presses == 0


async def test_a_program_that_handles_sigterm_goes_on_handling_it() -> None:
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        with Pty() as pty, anyio.fail_after(30):
            async with scripted(for_ever) as agent, kept(stream_of(agent), out=pty.out):
                assert signal.getsignal(signal.SIGTERM) is interrupt
                assert signal.getsignal(signal.SIGHUP) is not signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, before)


def test_other_threads_receive_nothing(anyio_backend: str, before: Any) -> None:
    handlers: list[Any] = []

    async def main() -> None:
        async with scripted(for_ever) as agent, live(stream_of(agent)):
            handlers.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=lambda: anyio.run(main, backend=anyio_backend))
    thread.start()
    thread.join(20)
    assert handlers == [before]


async def test_a_run_is_cancelled_and_shown_so() -> None:
    ended = anyio.Event()

    async def script(turn: Turn) -> str:
        turn.say("Well")
        with anyio.CancelScope(shield=True):
            await ended.wait()
        return "cancelled"

    async with scripted(script) as agent:
        stream = stream_of(agent)
        with anyio.fail_after(30):
            async with kept(stream, ctrl_c=True) as (renderer, _):
                await renderer.shows(lambda run: run.view.text == "Well")
                os.kill(os.getpid(), signal.SIGINT)
                await renderer.shows(lambda run: run.cancelling)
                assert not renderer.last[0].killed
                ended.set()
                with pytest.raises(ThoughtCancelled):
                    await stream.result
                await renderer.until(lambda kept: "finish" in kept.calls)
                assert signal.getsignal(signal.SIGINT) is not None
        assert not renderer.last[0].cancelling


@pytest.mark.parametrize("style", ["live", pytest.param("lines", marks=pytest.mark.long)])
def test_ctrl_c_in_a_terminal_cancels(style: str) -> None:
    with program("stubborn.py", style, "polite") as shell:
        shell.expect("working on it")
        shell.type("\x03")
        shell.expect("ThoughtCancelled")
        assert shell.process.wait(10) == 0


@pytest.mark.parametrize("style", ["live", pytest.param("lines", marks=pytest.mark.long)])
def test_ctrl_c_twice_in_a_terminal_kills(style: str) -> None:
    with program("stubborn.py", style, "stubborn") as shell:
        shell.expect("working on it")
        shell.type("\x03")
        shell.expect("cancelling")
        shell.type("\x03")
        shell.expect("came to ThoughtCancelled")
        assert shell.process.wait(10) == 0
