"""``thinkwell login``: which way, and what to type where that is not clear."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

import pytest
from cli.command import run_command
from login.terminal import PROGRAMS, terminal

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from login.terminal import Terminal


def wanting(*offers: str) -> str:
    """Return the command of an agent that offers these logins."""
    return shlex.join([sys.executable, str(PROGRAMS / "login_agent.py"), *offers])


@pytest.fixture
def token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that a login writes."""
    file = tmp_path / "token"
    monkeypatch.setenv("LOGIN_TOKEN", str(file))
    return file


def test_the_only_way_is_gone(token: Path) -> None:
    done = run_command("login", "--command", wanting("browser"))
    assert (done.code, done.out) == (0, "")
    assert "Logged in" in done.err
    assert token.read_text("utf-8") == "by browser"


def test_several_ways_are_listed(token: Path) -> None:
    command = wanting("browser", "console")
    done = run_command("login", "--command", command)
    assert (done.code, done.out) == (4, "")
    assert "offers several logins, and none was chosen:\n  browser  Browser\n" in done.err
    assert "  console  Console (in this terminal): asks for a key\n" in done.err
    assert f"Next, type: thinkwell login --command {shlex.quote(command)} --method ID" in done.err
    assert not token.exists()


def test_a_way_is_chosen(token: Path) -> None:
    assert run_command("login", "--command", wanting("browser", "console"), "--method", "browser").code == 0
    assert token.read_text("utf-8") == "by browser"


def test_a_way_that_there_is_not(token: Path) -> None:
    done = run_command("login", "--command", wanting("browser"), "--method", "bro\twser")
    assert done.code == 4
    assert "offers no login 'bro wser', but:\n  browser  Browser\nNext, type: thinkwell login " in done.err
    assert "--method browser" in done.err


def test_a_way_that_needs_a_terminal(token: Path) -> None:
    done = run_command("login", "--command", wanting("console"))
    assert done.code == 4
    assert "needs a terminal in the foreground" in done.err


def test_a_login_that_fails(token: Path) -> None:
    done = run_command("login", "--command", wanting("refused"))
    assert done.code == 4
    assert "failed: Authentication required" in done.err


def test_an_agent_without_any() -> None:
    done = run_command("login", "builtin")
    assert (done.code, done.err) == (4, "Error: agent builtin offers no login\n")


def test_its_own_program_is_named(token: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "thinkwell" / "agents"
    folder.mkdir(parents=True)
    quoted = ", ".join(f'"{part}"' for part in shlex.split(wanting("browser", "console")))
    (folder / "shop.toml").write_text(f'login = "shop auth"\n[program]\ncommand = [{quoted}]\n', "utf-8")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    done = run_command("login", "shop")
    assert done.code == 4
    assert "Next, type: thinkwell login shop --method ID" in done.err
    assert "A login with its own program counts too: shop auth" in done.err


def test_a_version_and_a_command() -> None:
    done = run_command("login", "claude@1", "--command", "claude")
    assert done.code == 2
    assert "the command says which version" in done.err


def started(token: Path, *offers: str) -> AbstractContextManager[Terminal]:
    command = (sys.executable, "-m", "thinkwell", "login", "--command", wanting(*offers))
    return terminal(*command, env={"LOGIN_TOKEN": str(token), "ENV": ""}, cwd=token.parent)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such terminals")
class TestInATerminal:
    def test_a_person_is_asked(self, token: Path) -> None:
        with started(token, "browser", "console") as shown:
            assert "2  console  Console" in shown.expect(r"Which one\? \[1-2\] ")
            shown.type("5\n")
            shown.expect(r"Which one\? \[1-2\] ")
            shown.type("console\n")
            shown.expect("Key: ")
            shown.type("secret\n")
            shown.expect("Logged in")
        assert shown.process.returncode == 0
        assert token.read_text("utf-8") == "secret"

    def test_a_person_says_nothing(self, token: Path) -> None:
        with started(token, "browser", "console") as shown:
            shown.expect(r"Which one\? ")
            shown.type("\x04")
            shown.expect("Next, type: thinkwell login")
        assert shown.process.returncode == 4

    def test_a_person_leaves(self, token: Path) -> None:
        with started(token, "browser", "console") as shown:
            shown.expect(r"Which one\? ")
            shown.leave()
        assert shown.process.returncode == 130
