"""``thinkwell sessions``: listed, shown safely, forgotten."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest
from cli.command import run_command
from cli.remembering import remember, remembering
from login.terminal import terminal

if TYPE_CHECKING:
    from pathlib import Path

EVIL = {
    "sessionId": "b-2",
    "cwd": "/elsewhere",
    "title": "Evil\x1b[2J\r\n\x07 title",
    "updatedAt": "yesterday\x1b[31m",
}


@pytest.fixture
def known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of what the agent remembers."""
    monkeypatch.setenv("TZ", "UTC")
    long = {
        "sessionId": "a-1",
        "cwd": str(tmp_path),
        "title": "Mend the parser " * 20,
        "updatedAt": "2026-11-22T10:15:00Z",
    }
    file = remember(tmp_path, [long, EVIL, {"sessionId": "c-3", "cwd": "/elsewhere"}])
    monkeypatch.setenv("SESSIONS", str(file))
    return file


def test_a_table_of_what_it_remembers(known: Path, tmp_path: Path) -> None:
    done = run_command("sessions", "--command", remembering("list"))
    assert (done.code, done.err) == (0, "")
    head, first, second, third = done.out.splitlines()
    assert head.split() == ["ID", "UPDATED", "TITLE", "FOLDER"]
    assert first.startswith("a-1  2026-11-22 ")
    assert ("Mend the parser " * 20).strip() in first  # nothing is cut where no terminal is
    assert str(tmp_path) in first
    assert second.split() == ["b-2", "yesterday", "Evil", "␇", "title", "/elsewhere"]
    assert third.split() == ["c-3", "/elsewhere"]


def test_one_folder_and_as_json(known: Path, tmp_path: Path) -> None:
    done = run_command("sessions", "--command", remembering("list"), "--cwd", str(tmp_path), "--json")
    assert done.code == 0
    (only,) = json.loads(done.out)
    assert (only["id"], only["cwd"]) == ("a-1", str(tmp_path))


def test_none_is_said_and_is_no_error(known: Path, tmp_path: Path) -> None:
    known.write_text("[]", "utf-8")
    done = run_command("sessions", "--command", remembering("list"))
    assert (done.code, done.out) == (0, "")
    assert "remembers no sessions\n" in done.err
    done = run_command("sessions", "--command", remembering("list"), "--cwd", str(tmp_path))
    assert f"remembers no sessions of {tmp_path}" in done.err
    assert run_command("sessions", "--command", remembering("list"), "--json").out == "[]\n"


def test_an_agent_that_does_not_tell(known: Path) -> None:
    done = run_command("sessions", "--command", remembering())
    assert (done.code, done.out) == (3, "")
    assert "does not advertise sessionCapabilities.list" in done.err
    assert run_command("sessions", "builtin").code == 3


def test_a_session_is_forgotten(known: Path) -> None:
    done = run_command("sessions", "--command", remembering("list", "delete"), "--delete", "b-2")
    assert (done.code, done.out, done.err) == (0, "", "Deleted b-2\n")
    assert [info["sessionId"] for info in json.loads(known.read_text("utf-8"))] == ["a-1", "c-3"]


def test_a_typing_mistake_is_no_deletion(known: Path) -> None:
    done = run_command("sessions", "--command", remembering("list", "delete"), "--delete", "b2")
    assert done.code == 1
    assert "remembers no session 'b2'" in done.err


def test_an_agent_that_deletes_without_a_list(known: Path) -> None:
    done = run_command("sessions", "--command", remembering("delete"), "--delete", "b2")
    assert done.code == 0


def test_an_agent_that_forgets_nothing(known: Path) -> None:
    done = run_command("sessions", "--command", remembering("list"), "--delete", "b-2")
    assert done.code == 3
    assert "does not advertise sessionCapabilities.delete" in done.err
    assert len(json.loads(known.read_text("utf-8"))) == 3


def test_options_that_contradict_each_other() -> None:
    done = run_command("sessions", "builtin", "--delete", "b-2", "--json")
    assert done.code == 2
    assert "--delete" in done.err


def test_an_agent_that_there_is_not() -> None:
    done = run_command("sessions", "nobody")
    assert done.code == 3
    assert "nobody" in done.err


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such terminals")
@pytest.mark.parametrize(("can", "advice"), [(["load"], "--load ID"), (["resume"], "--resume ID"), ([], "")])
def test_a_terminal_is_told_how_to_go_on(known: Path, can: list[str], advice: str) -> None:
    line = remembering("list", *can)
    command = (sys.executable, "-m", "thinkwell", "sessions", "--command", line)
    env = {"SESSIONS": str(known), "COLUMNS": "60"}
    with terminal(*command, env=env, cwd=known.parent) as shown:
        table = shown.expect("c-3 .*\r\n")
        assert "a-1  " in table
        assert "…" in table
        if advice:
            shown.expect(f"\r\nContinue one, in its folder: thinkwell chat --command '.*' {advice}\r\n")
