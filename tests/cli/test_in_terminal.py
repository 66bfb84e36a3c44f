"""`thinkwell run` in a terminal: what is shown, what is asked, and where the result goes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from cli.typing_in import LIMIT, home, scripted, thinkwell
from login.terminal import terminal as terminal_of

from thinkwell.testing import script

if sys.platform == "win32":
    pytest.skip("terminals of POSIX systems", allow_module_level=True)

from cli.terminal import in_terminal

__all__ = ("home",)


def test_the_result_stands_once_where_both_outputs_are_the_terminal(home: Path) -> None:
    command = scripted(home, script.says("the very answer"))
    with in_terminal("run", "go", "--command", command, "--style", "lines") as terminal:
        assert terminal.end() == 0
    assert terminal.shown.count(b"the very answer") == 1


def test_a_value_is_shown_by_the_display(home: Path) -> None:
    command = scripted(home, script.returns({"result": 12321}))
    with in_terminal("run", "go", "--command", command, "--type", "builtins:int") as terminal:
        assert terminal.end() == 0
    assert terminal.shown.count(b"12321") == 1
    assert b"looking for thinkwell.testing" in terminal.shown
    assert b"starting thinkwell.testing" in terminal.shown


def test_the_result_goes_to_a_file_and_the_progress_to_the_terminal(home: Path) -> None:
    command = scripted(home, script.thinks("hm").returns({"result": 12321}))
    with (
        (home / "out.json").open("wb") as out,
        in_terminal(
            "run", "go", "--command", command, "--type", "builtins:int", stdout=out.fileno()
        ) as terminal,
    ):
        assert terminal.end() == 0
    assert json.loads((home / "out.json").read_text("utf-8")) == 12321
    assert b"done" in terminal.shown


def test_the_progress_goes_to_a_file_and_the_result_to_the_terminal(home: Path) -> None:
    command = scripted(home, script.says("good \x1b]0;title\x07\x1b[2J\x9bbye"))
    with (
        (home / "err.txt").open("wb") as err,
        in_terminal("run", "go", "--command", command, stderr=err.fileno()) as terminal,
    ):
        assert terminal.end() == 0
    assert terminal.shown.startswith(b"good ")
    assert b"\x1b" not in terminal.shown
    text = (home / "err.txt").read_text("utf-8")
    assert "[done]" in text
    assert "\x1b" not in text


def test_nothing_but_the_result_with_quiet(home: Path) -> None:
    command = scripted(home, script.says("good"))
    with in_terminal("run", "go", "-q", "--command", command) as terminal:
        assert terminal.end() == 0
    assert terminal.shown == b"good\r\n"


def test_a_question_is_answered_by_a_key(home: Path) -> None:
    played = script.asks("May I delete everything?").says("went on")
    for key, choice in ((b"y", "allow_once"), (b"n", "reject_once")):
        command = scripted(home, played)
        with in_terminal("run", "go", "--command", command, "--record", "run.ndjson") as terminal:
            terminal.wait_for("May I delete everything?")
            terminal.wait_for("[n]")
            terminal.press(key, until="went on")
            assert terminal.end() == 0
        assert f'"choice":"{choice}"' in (home / "run.ndjson").read_text("utf-8")


@pytest.mark.parametrize("permissions", ["ask", "rules.toml"])
def test_unanswerable_questions_are_denied_at_once(permissions: str, home: Path) -> None:
    (home / "rules.toml").write_text('otherwise = "ask"\n', "utf-8")
    command = scripted(home, script.asks("May I?").says("went on"))
    ran = subprocess.run(
        thinkwell("run", "go", "-p", permissions, "--command", command),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (0, "went on\n")
    assert "there is no terminal to ask in" in ran.stderr


def test_no_prompt_in_a_terminal(home: Path) -> None:
    with in_terminal("run") as terminal:
        assert terminal.end() == 2
    assert b"there is none; say what to do" in terminal.shown


def test_a_prompt_is_typed(home: Path) -> None:
    command = scripted(home, script.expects("what is this").says("yes"))
    with in_terminal("run", "-", "-q", "--command", command) as terminal:
        terminal.wait_for("end it with Ctrl-D")
        terminal.type(b"what is this\n\x04")
        assert terminal.end() == 0
    assert terminal.shown.endswith(b"yes\r\n")


@pytest.mark.long
def test_make_demo_draws_a_run_where_there_is_a_terminal(home: Path) -> None:
    makefile = Path(__file__).parents[2] / "Makefile"
    installed = ("-o", f"{sys.prefix}/.installed", f"VENV={sys.prefix}")
    command = ("make", "--no-print-directory", "-f", str(makefile), *installed, "demo")
    environment = {"TERM": "xterm", "CI": "", "NO_COLOR": ""}
    with terminal_of(*command, env=environment, cwd=home) as shown:
        assert "\x1b[?2026h" in shown.expect("✔ done")
        shown.expect("one task")
    piped = subprocess.run(command, cwd=home, capture_output=True, timeout=LIMIT, check=True)
    assert json.loads(piped.stdout)["title"] == "parser.py"
    assert b"[done]" in piped.stderr
    assert b"\x1b" not in piped.stderr
