"""Ctrl-C, and the end of the interpreter. Nothing of an agent is left running."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from sync.playing import playing, program, until_it_waits

from thinkwell import AgentExited, ThoughtCancelled
from thinkwell.sync import open_agent
from thinkwell.testing import script

PROGRAMS = Path(__file__).parent / "programs"
CALLER = PROGRAMS / "caller.py"
STUBBORN = PROGRAMS / "stubborn_agent.py"

PATIENT = 6.0
"""Seconds that it takes to leave an agent that heeds nothing but a kill, at least."""


class Program:
    """A program that uses an agent, in a process of its own."""

    def __init__(self, what: str, command: list[str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-W", "error", str(CALLER), what, *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ready(self) -> None:
        """Wait until it is about to wait."""
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def end(self) -> tuple[int, str, str]:
        """Wait for its end, and return the exit code and what it has said."""
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err


def appears(file: Path) -> None:
    """Wait for a file."""
    until = time.monotonic() + 60
    while not file.exists():
        assert time.monotonic() < until
        time.sleep(0.01)


def is_gone(pid_file: Path) -> bool:
    """Whether nothing is left of an agent's process group."""
    try:
        os.killpg(int(pid_file.read_text()), 0)
    except ProcessLookupError:
        return True
    return False  # pragma: no cover - then the test fails


def stubborn(pid_file: Path, *options: str) -> list[str]:
    return [sys.executable, str(STUBBORN), str(pid_file), *options]


def check_interrupted(ended: tuple[int, str, str]) -> None:
    """Check that a program has ended by Ctrl-C, with a word of its main thread about that and no other."""
    code, _, errors = ended
    assert code == -signal.SIGINT
    assert errors.rstrip().endswith("KeyboardInterrupt"), errors
    assert str(CALLER) in errors
    for noise in ("Exception in", "Exception ignored", "Task ", "Warning", "never"):
        assert noise not in errors, errors


@pytest.mark.parametrize("what", ["result", "run", "listen", "iterate", "session", "sleep"])
def test_ctrl_c_and_an_agent_that_leaves_when_it_is_told(what: str) -> None:
    used = Program(what, program(script.says("a").hangs()))
    used.ready()
    started = time.monotonic()
    used.interrupt()
    check_interrupted(used.end())
    assert time.monotonic() - started < 10


@pytest.mark.parametrize(
    "what",
    ["result", "run", "listen", "iterate", pytest.param("session", marks=pytest.mark.long), "leave"],
)
def test_ctrl_c_twice_and_an_agent_that_heeds_nothing(what: str, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    used = Program(what, stubborn(pid_file))
    used.ready()
    appears(tmp_path / "pid-prompted")
    if what != "leave":  # which it is doing already
        used.interrupt()
    appears(tmp_path / "pid-cancelled")
    started = time.monotonic()
    used.interrupt()
    check_interrupted(used.end())
    assert time.monotonic() - started < PATIENT
    assert is_gone(pid_file)


def test_ctrl_c_and_an_agent_that_does_not_come_up(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    used = Program("opening", stubborn(pid_file, "mute"))
    used.ready()
    appears(pid_file)
    used.interrupt()
    check_interrupted(used.end())
    assert is_gone(pid_file)


@pytest.mark.parametrize(
    ("what", "code", "error"),
    [
        ("left open", 0, ""),
        ("left by a tool", 0, ""),
        ("left session", 0, ""),
        ("left in a thread", 0, ""),
        ("left and raised", 1, "the program fails"),
        ("left and exited", 3, ""),
    ],
)
def test_an_agent_that_is_left_open(what: str, code: int, error: str) -> None:
    told = script.says("a") if what in ("left open", "left and raised", "left and exited") else script
    if what in ("left by a tool", "left in a thread"):
        told = told.calls("greet")
    ended, _, errors = Program(what, program(told.says("Done."))).end()
    assert ended == code, errors
    assert errors.strip().endswith(error)
    assert "ignored" not in errors
    assert bool(errors) == bool(error)


def test_ctrl_c_while_the_interpreter_exits(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    used = Program("left open", stubborn(pid_file))
    used.ready()
    appears(tmp_path / "pid-cancelled")
    used.interrupt()
    code, _, errors = used.end()
    assert (code, errors) == (0, "")
    assert is_gone(pid_file)


def test_a_program_that_opens_nothing() -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", "import thinkwell.sync"], check=True)


def test_a_thread_that_goes_on_after_the_main_one() -> None:
    assert Program("open in a thread", program(script.says("Done."))).end() == (0, "worked\n", "")


# In this process: what a program does that catches it.


def interrupted() -> threading.Thread:
    """Send Ctrl-C to the main thread when it waits, from another one."""

    def interrupt() -> None:
        main = threading.main_thread()
        until_it_waits(main)
        assert main.ident is not None
        signal.pthread_kill(main.ident, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    return thread


def test_an_interrupted_wait_changes_nothing() -> None:
    waiting, release = threading.Event(), threading.Event()

    def hold() -> None:
        """Wait."""
        waiting.set()
        assert release.wait(30)

    with playing(script.says("a").calls("hold").says("b")) as agent:
        stream = agent.think().text("Go.").tool(hold).stream(include={"message"})
        events = iter(stream)
        assert next(events).type == "message"
        assert waiting.wait(30)
        thread = interrupted()
        with pytest.raises(KeyboardInterrupt):
            next(events)
        thread.join()
        thread = interrupted()
        with pytest.raises(KeyboardInterrupt):
            stream.result()
        thread.join()
        assert not stream.done()
        release.set()
        assert stream.result() == "ab"
        assert [event.seq for event in events] == [2]  # the iterator has lost nothing


def test_an_interrupted_run_is_cancelled() -> None:
    with playing(script.hangs()) as agent:
        thread = interrupted()
        with pytest.raises(KeyboardInterrupt):
            agent.think().text("Go.").run()
        thread.join()


def test_ctrl_c_in_the_block_of_a_run_kills_its_agent(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    with open_agent(command=stubborn(pid_file)) as agent:
        stream = agent.think().text("Go.").stream()
        next(iter(stream))
        thread = None
        with pytest.raises(KeyboardInterrupt), stream:
            thread = interrupted()
        assert thread is not None
        thread.join()
        assert isinstance(stream.exception(), ThoughtCancelled)


@pytest.mark.parametrize("killed", ["agent", "stream"])
def test_a_kill(killed: str, tmp_path: Path) -> None:
    with open_agent(command=stubborn(tmp_path / "pid")) as agent:
        stream = agent.think().text("Go.").stream()
        next(iter(stream))
        if killed == "agent":
            agent.kill()
        else:
            stream.kill()
        with pytest.raises(AgentExited):
            stream.result()
