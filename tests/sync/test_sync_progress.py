"""Runs that are shown while they go on, for callers who block."""

from __future__ import annotations

import io
import signal
import threading
from contextlib import redirect_stderr
from typing import TYPE_CHECKING

import pytest
from rich.console import Console
from sync.playing import playing

from thinkwell import AgentExited, ResultMissing, ThoughtCancelled
from thinkwell.sync.progress import Live, show
from thinkwell.testing import script

if TYPE_CHECKING:
    from collections.abc import Callable

    from thinkwell.sync import ThoughtStream


def paper() -> Console:
    return Console(file=io.StringIO(), width=80)


def written(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_run_is_shown_and_its_result_returned() -> None:
    console = paper()
    with playing(script.says("Let me see.").returns({"score": 7})) as agent:
        stream = agent.think(dict[str, int]).text("Go.").stream()
        assert show(stream, console=console, label="mine") == {"score": 7}
    assert "Let me see." in written(console)


def test_several_runs_are_shown_while_a_block_goes_on() -> None:
    console = paper()
    with playing(script.says("one")) as first, playing(script.says("two")) as second:
        streams = [agent.think().text("Go.").stream() for agent in (first, second)]
        with Live(*streams, labels=("first", "second"), console=console):
            assert [stream.result() for stream in streams] == ["one", "two"]
            for stream in streams:
                stream.wait()
    assert "first: " in written(console)
    assert "second: " in written(console)


def test_a_run_that_fails_is_shown_and_raises_its_error() -> None:
    with playing(script.says("no result")) as agent, pytest.raises(ResultMissing):
        show(agent.think(int).text("Go.").stream(reminders=0), console=paper())


def test_wrong_arguments() -> None:
    with playing(script.says("a")) as agent:
        stream = agent.think().text("Go.").stream()
        with pytest.raises(ValueError, match="choose"):
            show(stream, style="loud")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        stream.wait()


def is_received() -> bool:
    """Whether somebody else than the tests receives Ctrl-C."""
    return signal.getsignal(signal.SIGINT) is not signal.default_int_handler


def presses(
    stream: ThoughtStream[str], times: int, when: Callable[[], bool] = is_received
) -> threading.Thread:
    """Press Ctrl-C when the agent has said something and all is ready, and again when it is cancelled."""
    main = threading.main_thread().ident
    assert main is not None

    def press() -> None:
        next(iter(stream))
        while not when():
            POLL.wait(0.01)
        signal.pthread_kill(main, signal.SIGINT)
        if times > 1:
            with pytest.raises(ThoughtCancelled):
                stream.result()
            signal.pthread_kill(main, signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    return thread


POLL = threading.Event()
"""Never set."""


def test_ctrl_c_cancels_the_run() -> None:
    before = signal.getsignal(signal.SIGINT)
    with playing(script.says("a").hangs()) as agent:
        stream = agent.think().text("Go.").stream()
        thread = presses(stream, 1)
        with pytest.raises(ThoughtCancelled):
            show(stream, console=paper())
        thread.join()
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_twice_kills_the_agent() -> None:
    with playing(script.says("a").hangs(deaf=True)) as agent:
        stream = agent.think().text("Go.").stream()
        thread = presses(stream, 2)
        with pytest.raises(ThoughtCancelled):
            show(stream, console=paper())
        thread.join()
        with pytest.raises(AgentExited):
            agent.think().text("Go.").run()


def test_a_display_tells_how_often_ctrl_c_was_pressed() -> None:
    live = Live(console=paper())
    assert (live.presses, live.killed) == (0, False)
    with playing(script.says("a").hangs(deaf=True)) as agent:
        stream = agent.think().text("Go.").stream()
        with Live(stream, console=paper(), ctrl_c=True) as live:
            thread = presses(stream, 2)
            stream.wait()
            thread.join()
        assert (live.presses, live.killed) == (2, True)


class Pressing(Console):
    """Presses Ctrl-C once, when a display that is made looks at it: it is not there yet."""

    armed = False

    @property
    def is_terminal(self) -> bool:
        if self.armed:
            self.armed = False
            main = threading.main_thread().ident
            assert main is not None
            signal.pthread_kill(main, signal.SIGINT)
        return False


def test_ctrl_c_before_the_display_is_there_is_received() -> None:
    before = signal.getsignal(signal.SIGINT)
    with playing(script.says("a").hangs()) as agent:
        stream = agent.think().text("Go.").stream()
        console = Pressing(file=io.StringIO())
        console.armed = True
        with Live(stream, console=console, ctrl_c=True) as live:
            stream.wait()
        assert live.presses == 1
        assert isinstance(stream.exception(), ThoughtCancelled)
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_that_is_not_received_leaves_the_wait_and_cancels_the_run() -> None:
    with playing(script.says("a").hangs()) as agent:
        stream = agent.think().text("Go.").stream()
        console = paper()
        thread = presses(stream, 1, lambda: "a" in written(console))
        with pytest.raises(KeyboardInterrupt):
            show(stream, console=console, ctrl_c=False)
        thread.join()
        assert isinstance(stream.exception(), ThoughtCancelled)


def test_in_another_thread_ctrl_c_is_the_programs() -> None:
    shown: list[str] = []
    with playing(script.says("a")) as agent:
        stream = agent.think().text("Go.").stream()
        with redirect_stderr(io.StringIO()):
            thread = threading.Thread(target=lambda: shown.append(show(stream)))
            thread.start()
            thread.join()
    assert shown == ["a"]
