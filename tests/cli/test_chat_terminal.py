"""``thinkwell chat`` in a terminal: the line that is typed, Ctrl-C, questions, the history."""

from __future__ import annotations

import json
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

from thinkwell.testing import script

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from login.terminal import Terminal

    from thinkwell.testing import Script, ScriptedAgentFactory

if sys.platform == "win32":
    pytest.skip("there are no such terminals", allow_module_level=True)

EVERYTHING = ("list", "load", "modes", "options", "commands")
CTRL_C = "\x03"
CTRL_D = "\x04"
UP = "\x1b[A"
LEAVES = r"Ctrl-D or /exit leaves"


class Chat:
    """Starts chats in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.here = folder / "here"
        self.here.mkdir()
        self.history = folder / "state" / "thinkwell" / "chat_history"
        remember(folder, [{"sessionId": "s-old", "cwd": str(self.here)}])

    def __call__(
        self, *options: str, agent: str = "", style: str = "lines"
    ) -> AbstractContextManager[Terminal]:
        command = agent or remembering(*EVERYTHING)
        environment = {
            "SESSIONS": str(self.folder / "sessions.json"),
            "XDG_STATE_HOME": str(self.folder / "state"),
            "INPUTRC": "/dev/null",
            "TERM": "xterm",
            "NO_COLOR": "",
            "CI": "",
        }
        arguments = ("chat", "--command", command, "--style", style, *options)
        return terminal(sys.executable, "-m", "thinkwell", *arguments, env=environment, cwd=self.here)

    def kept(self) -> list[str]:
        """What the history has."""
        return [json.loads(line) for line in self.history.read_text("utf-8").splitlines()]


def leave(shown: Terminal) -> None:
    """Leave a chat, at its prompt: what is typed before is not for the line editor."""
    shown.expect("> ")
    shown.type(CTRL_D)


@pytest.fixture
def chat(tmp_path: Path) -> Chat:
    return Chat(tmp_path)


def test_a_chat(chat: Chat) -> None:
    with chat() as shown:
        shown.expect(
            r"remembering_agent.py 1\.0 in .*/here, mode ask\r\n/help lists the commands; Ctrl-D leaves"
        )
        shown.expect("> ")
        shown.type("Hello.\n")
        shown.expect(r"You said: 'Hello\.'")
        leave(shown)
        shown.expect(r"To go on another time, type: thinkwell chat --command .* --load session-1\b")
    assert shown.process.returncode == 0


def test_what_was_typed_comes_back(chat: Chat) -> None:
    with chat() as shown:
        shown.expect("> ")
        shown.type("one\\\n")
        shown.expect(r"\. ")
        shown.type("two\n")
        shown.expect(r"You said: 'one\\ntwo'")
        shown.expect("> ")
        shown.type(" not to be kept\n")
        shown.expect("You said: ' not")
        shown.expect("> ")
        shown.type("my key is sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789\n")
        shown.expect("You said: 'my key")
        shown.expect("> ")
        shown.type("/exit\n")
    assert chat.kept() == ["one\ntwo", "/exit"]
    assert chat.history.stat().st_mode & 0o777 == 0o600
    assert chat.history.parent.stat().st_mode & 0o777 == 0o700
    with chat() as shown:
        shown.expect("> ")
        shown.type(UP + UP)
        shown.expect("two")
        shown.type("!\n")
        shown.expect(r"You said: 'one\\ntwo!'")
        leave(shown)


def test_what_is_pasted_is_one_text(chat: Chat) -> None:
    with chat() as shown:
        shown.expect("> ")
        shown.type("\x1b[200~one\rtwo\x1b[201~")
        shown.expect("two")
        shown.type("\r")
        shown.expect(r"You said: 'one\\ntwo'")
        leave(shown)


def test_no_history(chat: Chat) -> None:
    with chat("--no-history") as shown:
        shown.expect("> ")
        shown.type("Hello.\n")
        shown.expect("You said: 'Hello.'")
        leave(shown)
    assert not chat.history.exists()


def test_a_history_that_cannot_be_read_or_is_broken(chat: Chat) -> None:
    chat.history.mkdir(parents=True)
    with chat() as shown:
        shown.expect("No history is kept: .*chat_history: Is a directory")
        leave(shown)
    chat.history.rmdir()
    chat.history.write_text('no json\n"Hello."\n\n', "utf-8")
    with chat() as shown:
        shown.expect("> ")
        shown.type(UP)
        shown.expect(r"Hello\.")
        shown.type("\n")
        shown.expect("You said: 'Hello.'")
        leave(shown)


def test_a_long_history_is_cut(chat: Chat) -> None:
    chat.history.parent.mkdir(parents=True)
    chat.history.write_text("".join(f'"{number}"\n' for number in range(2500)), "utf-8")
    with chat() as shown:
        leave(shown)
    assert chat.kept() == [str(number) for number in range(1500, 2500)]
    assert chat.history.stat().st_mode & 0o777 == 0o600


def test_tab_completes(chat: Chat) -> None:
    with chat() as shown:
        shown.expect("> ")
        shown.type("/rev\t")
        shown.expect("/review ")
        shown.type("it\n")
        shown.expect("You said: '/review it'")
        shown.expect("> ")
        shown.type("/mo\tc\t\n")
        shown.expect("The mode is code")
        shown.expect("> ")
        shown.type("/opt\tmo\tl\t\n")
        shown.expect("model is large")
        shown.expect("> ")
        shown.type("/opt\tbr\ton\n")
        shown.expect("brave is on")
        shown.expect("> ")
        shown.type("no\tway\n")
        shown.expect(r"You said: 'no(\\t)?way'")
        leave(shown)


def test_mistakes_do_not_end_it(chat: Chat) -> None:
    with chat() as shown:
        shown.expect("> ")
        shown.type("/hlep\n")
        shown.expect("There is no command /hlep")
        shown.expect("> ")
        shown.type("refuse\n")
        shown.expect("no model")
        shown.expect("> ")
        shown.type("/save /nowhere/at/all\n")
        shown.expect("/nowhere/at/all: No such file or directory")
        shown.expect("> ")
        shown.type("Hello.\n")
        shown.expect("You said: 'Hello.'")
        leave(shown)
    assert shown.process.returncode == 0


def test_an_agent_that_dies(chat: Chat) -> None:
    with chat() as shown:
        shown.expect("> ")
        shown.type("die\n")
        shown.expect("exited with code 3")
        shown.expect("It was too much")
        shown.expect("To go on another time, type: thinkwell chat")
    assert shown.process.returncode == 3


def test_ctrl_c_at_the_prompt(chat: Chat) -> None:
    with chat() as shown:
        shown.expect("> ")
        press_until(shown, CTRL_C, LEAVES)
        shown.expect("> ")
        shown.type("half a line")
        shown.expect("half a line")
        press_until(shown, CTRL_C, LEAVES)
        shown.expect("> ")
        shown.type('"""\n')
        shown.expect(r"\. ")
        shown.type("in a block\n")
        shown.expect(r"\. ")
        press_until(shown, CTRL_C, LEAVES)
        shown.expect("> ")
        shown.type("whole\n")
        shown.expect("You said: 'whole'")
        leave(shown)
    assert shown.process.returncode == 0


def played(agent: ScriptedAgentFactory, told: Script, *, complete: bool = True) -> str:
    return shlex.join(agent(told, complete=complete).program())


@pytest.mark.parametrize("style", ["lines", "live"])
def test_ctrl_c_cancels_a_turn(chat: Chat, scripted_agent: ScriptedAgentFactory, style: str) -> None:
    told = script.says("Let me see").uses("Look", kind="think").hangs().stops("cancelled").says("Here again.")
    with chat(agent=played(scripted_agent, told), style=style) as shown:
        shown.expect("> ")
        shown.type("Hello.\n")
        shown.expect("Look")
        shown.type(CTRL_C)
        shown.expect("ancelled")
        shown.expect("> ")
        shown.type("And now?\n")
        shown.expect("Here again.")
        leave(shown)
    assert shown.process.returncode == 0


@pytest.mark.parametrize("style", ["lines", "live"])
def test_ctrl_c_twice_kills(chat: Chat, scripted_agent: ScriptedAgentFactory, style: str) -> None:
    told = script.says("Let me see").uses("Look", kind="think").hangs(deaf=True)
    with chat(agent=played(scripted_agent, told, complete=False), style=style) as shown:
        shown.expect("> ")
        shown.type("Hello.\n")
        shown.expect("Look")
        shown.type(CTRL_C)
        shown.expect("ancelling")
        shown.type(CTRL_C)
    assert shown.process.returncode == 130


@pytest.mark.parametrize("style", ["lines", "live"])
def test_a_question_is_answered_by_a_key(
    chat: Chat, scripted_agent: ScriptedAgentFactory, style: str
) -> None:
    told = script.asks("Delete it", input={"command": "rm -rf build"}, expect="allow_once").says("Gone.")
    with chat(agent=played(scripted_agent, told), style=style) as shown:
        shown.expect("> ")
        shown.type("Clean up.\n")
        shown.expect("rm -rf build")
        shown.expect(r"\[?y\]?")
        press_until(shown, "y", "Gone")
        leave(shown)
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


def test_a_person_whose_output_goes_to_a_file(chat: Chat, tmp_path: Path) -> None:
    command = ["thinkwell", "chat", "--command", remembering(), "--style", "lines"]
    line = f"{shlex.join([sys.executable, '-m', *command])} > {shlex.quote(str(tmp_path / 'out'))}"
    with terminal(
        "/bin/sh", "-c", line, env={"SESSIONS": str(tmp_path / "sessions.json")}, cwd=tmp_path
    ) as shown:
        shown.expect("> ")
        shown.type("Hello.\n")
        leave(shown)
    assert (tmp_path / "out").read_text("utf-8") == "You said: 'Hello.'\n"


def test_a_history_that_cannot_be_written(chat: Chat) -> None:
    (chat.folder / "state").symlink_to("/proc/nothing")
    with chat() as shown:
        shown.expect("> ")
        shown.type("Hello.\n")
        shown.expect("No history is kept: .*chat_history: ")
        shown.expect("You said: 'Hello.'")
        leave(shown)


def test_ctrl_c_ends_the_wait_for_a_command(chat: Chat) -> None:
    stuck = chat.folder / "stuck"
    os.mkfifo(stuck)
    with chat(agent=remembering("modes", "stuck")) as shown:
        shown.expect("> ")
        shown.type("/mode code\n")
        stuck.read_text()  # it waits now
        press_until(shown, CTRL_C, "> ", 8.0)  # a second one, where the first was seen, ends the chat
        shown.type("Hello.\n")
        shown.expect("You said: 'Hello.'")
        leave(shown)
    assert shown.process.returncode == 0


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
