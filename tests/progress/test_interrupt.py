"""Ctrl-C and Ctrl-Z."""

from __future__ import annotations

import os
import signal
import threading

import anyio
import pytest
from progress.keeping import kept, stream_of
from progress.ptys import program
from scripted import Turn, scripted

from thinkwell import ThoughtCancelled
from thinkwell.progress._interrupt import CtrlC, signal_received


class Pressed:
    """What Ctrl-C came to."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.ctrl_c = CtrlC(lambda: self._note("cancel"), lambda: self._note("kill"))
        self._news = anyio.Event()

    def _note(self, call: str) -> None:
        self.calls.append(call)
        self._news.set()
        self._news = anyio.Event()

    async def press(self) -> None:
        news = self._news
        signal.raise_signal(signal.SIGINT)
        await news.wait()


async def test_the_first_cancels_the_second_kills_the_third_is_the_programs() -> None:
    before = signal.getsignal(signal.SIGINT)
    pressed = Pressed()
    with anyio.fail_after(5), pressed.ctrl_c.received() as received:
        assert received
        await pressed.press()
        assert pressed.calls == ["cancel"]
        await pressed.press()
        assert pressed.calls == ["cancel", "kill"]
        assert signal.getsignal(signal.SIGINT) is before
    assert signal.getsignal(signal.SIGINT) is before
    assert pressed.ctrl_c.presses == 2


async def test_the_inner_of_two_receives_and_then_the_outer_one() -> None:
    outer, inner = Pressed(), Pressed()
    with anyio.fail_after(5), outer.ctrl_c.received():
        with inner.ctrl_c.received():
            await inner.press()
        await outer.press()
    assert (outer.calls, inner.calls) == (["cancel"], ["cancel"])


async def test_a_program_that_ignores_it_goes_on_ignoring_it() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Pressed().ctrl_c.received() as received:
            assert not received
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_receive_nothing(anyio_backend: str) -> None:
    answers: list[bool] = []

    async def main() -> None:
        with signal_received(signal.SIGINT, lambda: None) as received:
            answers.append(received)

    thread = threading.Thread(target=lambda: anyio.run(main, backend=anyio_backend))
    thread.start()
    thread.join(10)
    assert answers == [False]


async def test_a_run_is_cancelled_and_shown_so() -> None:
    ended = anyio.Event()

    async def script(turn: Turn) -> str:
        turn.say("Well")
        with anyio.CancelScope(shield=True):
            await ended.wait()
        return "cancelled"

    async with scripted(script) as agent:
        stream = stream_of(agent)
        with anyio.fail_after(5):
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


@pytest.mark.parametrize("style", ["live", "lines"])
def test_ctrl_c_in_a_terminal_cancels(style: str) -> None:
    with program("stubborn.py", style, "polite") as shell:
        shell.expect("working on it")
        shell.type("\x03")
        shell.expect("ThoughtCancelled")
        assert shell.process.wait(10) == 0


@pytest.mark.parametrize("style", ["live", "lines"])
def test_ctrl_c_twice_in_a_terminal_kills(style: str) -> None:
    with program("stubborn.py", style, "stubborn") as shell:
        shell.expect("working on it")
        shell.type("\x03")
        shell.expect("cancelling")
        shell.type("\x03")
        shell.expect("came to ThoughtCancelled")
        assert shell.process.wait(10) == 0
