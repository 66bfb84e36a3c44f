"""``thinkwell chat`` without a terminal: each line is a turn."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from cli.command import run_command
from cli.remembering import remember, remembering

from thinkwell.testing import script

if TYPE_CHECKING:
    from pathlib import Path

    from thinkwell.testing import ScriptedAgentFactory

EVERYTHING = ("list", "load", "resume", "modes", "options", "commands")


@pytest.fixture(autouse=True)
def known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of what the agent remembers."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    infos = [{"sessionId": "old", "cwd": str(here)}, {"sessionId": "other", "cwd": "/elsewhere"}]
    file = remember(tmp_path, infos)
    monkeypatch.setenv("SESSIONS", str(file))
    return file


def chat(stdin: str, *options: str, agent: str = "") -> tuple[int, str, str]:
    """Hold a chat without a terminal."""
    return run_command("chat", "--command", agent or remembering(*EVERYTHING), *options, stdin=stdin)


def test_each_line_is_a_turn(tmp_path: Path) -> None:
    code, out, err = chat("Hello.\n\nAnd now?")
    assert (code, out) == (0, "You said: 'Hello.'\nYou said: 'And now?'\n")
    assert "> " not in err
    assert not (tmp_path / "state").exists()  # what others typed is not ours to keep


def test_instructions_stand_before_the_first_prompt_only() -> None:
    code, out, _ = chat("Hello.\nAnd now?", "--system", "Rhyme.")
    first, second = out.splitlines()
    assert code == 0
    assert "Rhyme." in first
    assert second == "You said: 'And now?'"


def test_without_a_terminal_no_prompt_is_loaded() -> None:
    command = [sys.executable, "-X", "importtime", "-m", "thinkwell", "chat", "--command", remembering()]
    done = subprocess.run(command, input=b"Hello.\n", capture_output=True, timeout=60, check=True)
    assert done.stdout == b"You said: 'Hello.'\n"
    assert b"thinkwell.cli.chat._conversation" in done.stderr
    assert b"prompt_toolkit" not in done.stderr


def test_lines_that_belong_together() -> None:
    code, out, _ = chat('one\\\ntwo\n"""\nthree\n\nfour\\\n"""\nfive\\\n')
    assert code == 0
    assert out.splitlines() == [
        "You said: 'one\\ntwo'",
        "You said: 'three\\n\\nfour\\\\'",
        "You said: 'five'",
    ]


def test_the_built_in_agent() -> None:
    code, out, _ = run_command("chat", "--agent", "builtin", stdin="What is here?\n/exit\nNot this.\n")
    assert code == 0
    assert out.count("\n") >= 1


def test_an_agent_that_dies(tmp_path: Path) -> None:
    code, out, err = chat("Hello.\ndie\nNot this.\n")
    assert (code, out) == (3, "You said: 'Hello.'\n")
    assert "exited with code 3" in err
    assert "It was too much." in err
    assert "open it again" in err


def test_an_error_ends_a_chat_without_a_terminal() -> None:
    code, out, err = chat("refuse\nNot this.\n")
    assert (code, out) == (3, "")
    assert "no model" in err


def test_commands_of_the_agent_are_prompts() -> None:
    code, out, _ = chat("/review it\n//help\n/usr/bin is a folder\n")
    assert code == 0
    assert out == "You said: '/review it'\nYou said: '/help'\nYou said: '/usr/bin is a folder'\n"


def test_an_unknown_command() -> None:
    code, out, err = chat("/revew it\nNot this.\n")
    assert (code, out) == (2, "")
    assert "There is no command /revew: see /help. //revew is sent as it is" in err


def test_help() -> None:
    code, out, _ = chat("/help\n")
    assert code == 0
    assert "  /save FILE " in out
    assert "  /review what              Review the change\n" in out
    assert "\x1b" not in out
    assert "the agent's own /help is //help here" in out


def test_help_where_the_agent_has_no_commands() -> None:
    assert "Of " not in chat("/help\n", agent=remembering())[1]


def test_modes() -> None:
    code, out, _ = chat("/mode\n/mode code\n/mode\n")
    assert code == 0
    assert out.splitlines() == [
        "* ask  Ask: asks first",
        "  code  Code",
        "The mode is code",
        "  ask  Ask: asks first",
        "* code  Code",
    ]


def test_options() -> None:
    typed = "/option\n/option model\n/option model large\n/option brave\n/option brave on\n/option\n"
    code, out, _ = chat(typed)
    assert code == 0
    assert out.splitlines() == [
        "  model = small  (Model)",
        "  brave = off",
        "* small  Small: quick",
        "  large  Large",
        "model is large",
        "  brave = off",
        "brave is on",
        "  model = large  (Model)",
        "  brave = on",
    ]


@pytest.mark.parametrize(
    ("typed", "why"),
    [
        ("/mode think", "There is no mode 'think', but ask, code"),
        ("/option colour", "There is no option 'colour', but model, brave"),
        ("/option model huge", "The option 'model' cannot be 'huge', but small, large"),
        ("/option brave yes", "The option 'brave' cannot be 'yes', but on, off"),
        ("/usage", "There was no turn yet"),
        ("/save", "/save FILE"),
    ],
)
def test_commands_that_cannot_be(typed: str, why: str) -> None:
    code, out, err = chat(typed)
    assert (code, out) == (2, "")
    assert why in err


@pytest.mark.parametrize("what", ["mode", "option"])
def test_what_an_agent_does_not_have(what: str) -> None:
    code, _, err = chat(f"/{what}", agent=remembering())
    assert code == 2
    assert f"This agent has no {what}s" in err


def test_usage() -> None:
    code, out, _ = chat("Hello.\n/usage\nusage\n/usage\n")
    assert code == 0
    assert out.splitlines()[1] == "usage not reported"
    assert out.splitlines()[3] == "1.2k/200k ctx"


def test_the_history_is_shown_and_saved(scripted_agent: ScriptedAgentFactory, tmp_path: Path) -> None:
    told = script.thinks("Hm.").uses("Read\x1b[2J a.py", kind="read").says("Fine\x07.")
    agent = shlex.join(scripted_agent(told).program())
    code, out, err = chat(
        "/history\nHow\\\nis it?\n/history\n/save a.md\n/save a.json\n/save a.md\n", agent=agent
    )
    assert code == 1  # the file is there
    assert "File exists" in err
    assert out.startswith("Nothing was said yet\nFine\x07.\n")  # who pipes it gets it as it is
    assert "> How\n> is it?\n\n  ┆ Hm.\n\n  Read a.py (completed)\n\nFine␇.\n" in out
    page = (tmp_path / "here" / "a.md").read_text("utf-8")
    assert page == (
        "# A chat with thinkwell.testing\n\n"
        "## You\n\nHow\nis it?\n\n## thinkwell.testing\n\n- *Read a.py* (completed)\n\nFine␇.\n"
    )
    saved = json.loads((tmp_path / "here" / "a.json").read_text("utf-8"))
    assert [message["role"] for message in saved] == ["user", "thought", "tool", "assistant"]
    assert (tmp_path / "here" / "a.json").stat().st_mode & 0o077 == 0


def test_an_old_session_is_gone_on_with() -> None:
    code, out, _ = chat("/history\nHello.\n", "--load", "old")
    assert code == 0
    assert out == "> Hello?\n\nHello yourself.\nYou said: 'Hello.'\n"
    code, out, _ = chat("/history\n", "--resume", "old")
    assert (code, out) == (0, "Nothing was said yet\n")


def test_an_old_session_of_another_folder() -> None:
    code, _, err = chat("Hello.\n", "--load", "other")
    assert code == 2
    assert "belongs to another folder" in err
    assert "--cwd /elsewhere" in err


def test_an_old_session_that_is_gone() -> None:
    code, _, err = chat("Hello.\n", "--load", "gone")
    assert code == 3
    assert "no such session" in err


def test_an_agent_that_loads_nothing() -> None:
    code, _, err = chat("Hello.\n", "--load", "old", agent=remembering())
    assert code == 3
    assert "does not advertise loadSession" in err


def test_loading_and_resuming_at_once() -> None:
    code, _, err = chat("", "--load", "old", "--resume", "old")
    assert code == 2
    assert "not both" in err


def test_an_unanswerable_question(scripted_agent: ScriptedAgentFactory) -> None:
    told = script.asks("Delete it", expect="reject_once").says("Then not.")
    agent = shlex.join(scripted_agent(told).program())
    code, out, _ = chat("Clean up.\n", "--permissions", "ask", agent=agent)
    assert (code, out) == (0, "Then not.\n")


def test_everything_is_recorded(tmp_path: Path) -> None:
    assert chat("Hello.\nGood bye.\n", "--record", str(tmp_path / "chat.ndjson"))[0] == 0
    done = run_command("replay", str(tmp_path / "chat.ndjson"), "--speed", "0")
    assert done.code == 0
    assert "You said: 'Good bye.'" in done.out + done.err


def test_an_agent_that_there_is_not() -> None:
    done = run_command("chat", "--agent", "nobody", stdin="Hello.\n")
    assert done.code == 3
    assert "nobody" in done.err


def test_verbose_tells_after_each_turn_what_was_logged() -> None:
    assert "Info: " not in chat("Hello.")[2]
    code, _, err = chat("Hello.\nAnd now?", "--verbose")
    assert code == 0
    logged, _, after = err.partition("completed after")
    assert "[done]" in logged
    assert "completed after" in after
