"""``thinkwell chat`` in terminals of the system: signals, settings, and those that can do little."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from cli.remembering import remember, remembering
from login.terminal import terminal
from progress.ptys import is_raw

from thinkwell.testing import script

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from login.terminal import Terminal

    from thinkwell.testing import Script, ScriptedAgentFactory

if sys.platform == "win32":
    pytest.skip("there are no such terminals", allow_module_level=True)

EVERYTHING = ("list", "load", "modes", "options", "commands")
START = 40.0
"""Seconds that a chat gets to begin."""
CTRL_C = "\x03"
CTRL_D = "\x04"
LEAVES = r"Ctrl-D or /exit leaves"


class Chat:
    """Starts chats in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.here = folder / "here"
        self.here.mkdir()
        remember(folder, [{"sessionId": "s-old", "cwd": str(self.here)}])

    def __call__(
        self, *options: str, agent: str = "", style: str = "lines", term: str = "xterm"
    ) -> AbstractContextManager[Terminal]:
        command = agent or remembering(*EVERYTHING)
        environment = {
            "SESSIONS": str(self.folder / "sessions.json"),
            "XDG_STATE_HOME": str(self.folder / "state"),
            "TERM": term,
            "NO_COLOR": "",
            "CI": "",
        }
        arguments = ("chat", "--command", command, "--style", style, *options)
        return terminal(sys.executable, "-m", "thinkwell", *arguments, env=environment, cwd=self.here)


@pytest.fixture
def chat(tmp_path: Path) -> Chat:
    return Chat(tmp_path)


def played(agent: ScriptedAgentFactory, told: Script, *, complete: bool = True) -> str:
    return shlex.join(agent(told, complete=complete).program())


def starting_when(there: Path) -> str:
    """The command of an agent that starts when a file is there."""
    waits = f"until [ -e {shlex.quote(str(there))} ]; do sleep 0.05; done; exec {remembering(*EVERYTHING)}"
    return shlex.join(["sh", "-c", waits])


def test_a_chat(chat: Chat) -> None:
    with chat() as shown:
        shown.expect("remembering_agent.py 1.0 in ", START)
        shown.expect("/help lists the commands; Ctrl-D leaves")
        shown.expect("─", START)
        assert is_raw(shown.settings())
        shown.type("Hello.\r")
        shown.expect(r"You said: 'Hello\.'")
        shown.expect("done in")
        shown.type(CTRL_D)
        shown.expect(r"To continue later, type: thinkwell chat --command ")
        assert not is_raw(shown.settings())
    assert shown.process.returncode == 0


def test_what_is_typed_while_the_agent_starts_is_done_line_by_line(chat: Chat, tmp_path: Path) -> None:
    go = tmp_path / "go"
    with chat(agent=starting_when(go), style="live") as shown:
        shown.expect("starting", START)
        shown.type("Hello.\r\r/usage\rAnd you")
        go.touch()
        shown.expect(r"You said: 'Hello\.'", START)
        shown.expect("done in")
        shown.expect("> /usage")
        shown.type("?\r")
        shown.expect(r"You said: 'And you\?'")
        shown.expect("done in")
        shown.type(CTRL_D)
        shown.expect("To continue later")


def test_a_chat_that_is_left_before_its_prompt_is_shown(chat: Chat, tmp_path: Path) -> None:
    go = tmp_path / "go"
    with chat(agent=starting_when(go), style="live") as shown:
        shown.expect("starting", START)
        shown.type("/exit\r")
        go.touch()
        shown.expect("> /exit", START)
    assert shown.process.returncode == 0


@pytest.mark.parametrize(("signal_", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_leaves_the_terminal_as_it_was(chat: Chat, signal_: signal.Signals, code: int) -> None:
    with chat() as shown:
        shown.expect("─", START)
        shown.process.send_signal(signal_)
        shown.process.wait(20)
        assert not is_raw(shown.settings())
    assert shown.process.returncode == code


def test_ctrl_c_from_elsewhere_cancels_a_turn(chat: Chat, scripted_agent: ScriptedAgentFactory) -> None:
    told = script.says("Let me see").uses("Look", kind="think").hangs()
    with chat(agent=played(scripted_agent, told), style="live") as shown:
        shown.expect("─", START)
        shown.type("Hello.\r")
        shown.expect("Look")
        shown.process.send_signal(signal.SIGINT)
        shown.expect("Cancelled")
        shown.type(CTRL_D)
    assert shown.process.returncode == 0


def test_a_person_whose_output_goes_to_a_file(chat: Chat, tmp_path: Path) -> None:
    command = shlex.join(
        [sys.executable, "-m", "thinkwell", "chat", "--no-history", "--command", remembering()]
    )
    line = f"{command} > {shlex.quote(str(tmp_path / 'out'))}"
    environment = {"SESSIONS": str(tmp_path / "sessions.json"), "TERM": "xterm"}
    with terminal("/bin/sh", "-c", line, env=environment, cwd=tmp_path) as shown:
        shown.expect("─", START)
        shown.type("Hello.\r")
        shown.expect("done in")
        shown.type(CTRL_D)
    assert (tmp_path / "out").read_text("utf-8") == "You said: 'Hello.'\n"


def test_a_terminal_that_can_do_little(chat: Chat, scripted_agent: ScriptedAgentFactory) -> None:
    told = script.uses("Look", kind="think").hangs().stops("cancelled").says("Here again.")
    with chat(agent=played(scripted_agent, told), term="dumb") as shown:
        shown.expect("> ")
        press_until(shown, CTRL_C, LEAVES)
        shown.expect("> ")
        shown.type("Hello.\n")
        shown.expect("Look")
        shown.type(CTRL_C)
        shown.expect("Cancelled")
        shown.expect("> ")
        shown.type("And now?\n")
        shown.expect("Here again.")
        shown.expect("> ")
        shown.type(CTRL_D)
    assert shown.process.returncode == 0


def press_until(shown: Terminal, key: str, pattern: str, patience: float = 1.0) -> None:
    """Press a key until something is shown.

    Keys do not count in the first moments of a question. And Ctrl-C just when the line editor begins to wait
    is noticed by Python with the next key.
    """
    for _ in range(10):
        shown.type(key)
        with suppress(AssertionError):
            shown.expect(pattern, patience)
            return
    shown.expect(pattern)


def test_ctrl_c_without_a_terminal_ends_it(chat: Chat) -> None:
    command = [sys.executable, "-m", "thinkwell", "chat", "--command", remembering()]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "SESSIONS": str(chat.folder / "sessions.json")},
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(b"Hello.\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"You said: 'Hello.'\n"
        while not process.stderr.readline().startswith(b"[done]   session"):
            pass  # as long as the turn goes on it would be cancelled
        for _ in range(4):  # just when it begins to wait for a line, Python notices it with the next one
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(8)
                break
        assert process.wait(20) == 130
