"""Logins in a terminal run there, in the foreground, and leave it as it was."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import anyio
import pytest
from daemons import ON_LINUX, ends
from login.terminal import PROGRAMS, Terminal, terminal
from warm import TRUE

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

if sys.platform == "win32":
    pytest.skip("there are no such terminals", allow_module_level=True)

CTRL_C = "\x03"
CTRL_Z = "\x1a"


@pytest.fixture(params=["asyncio", "trio"])
def backend(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def script(backend: str, *offers: str) -> tuple[str, ...]:
    return (sys.executable, str(PROGRAMS / "log_in.py"), backend, *offers)


def started(folder: Path, *command: str) -> AbstractContextManager[Terminal]:
    return terminal(*command, env={"LOGIN_TOKEN": str(folder / "token"), "ENV": ""}, cwd=folder)


def goes_on(shown: Terminal) -> None:
    """The caller has its terminal again."""
    shown.type("hello\n")
    shown.expect(r"'hello\\n' was for the caller")


def test_the_login_has_the_terminal_and_the_agents_command(backend: str, tmp_path: Path) -> None:
    with started(tmp_path, *script(backend, "console")) as shown:
        facts = shown.expect("Key: ")
        assert f"['a b', 'by hand', 'overlaid', '{tmp_path}']" in facts
        assert not (tmp_path / "token").exists()
        shown.type("secret\n")
        shown.expect("logged in")
        goes_on(shown)
    assert (tmp_path / "token").read_text() == "secret"
    assert '"auth": {"terminal": true}' in (tmp_path / "capabilities").read_text()


@pytest.mark.parametrize(
    ("key", "end", "exit_code"),
    [("wrong", "exited with code 3", 3), ("die", "was killed by signal 9", -9)],
)
def test_a_login_that_fails(backend: str, key: str, end: str, exit_code: int, tmp_path: Path) -> None:
    with started(tmp_path, *script(backend, "console")) as shown:
        shown.expect("Key: ")
        shown.type(f"{key}\n")
        shown.expect(rf"LoginFailed: The login 'console' of .* failed: its command {end}.*\({exit_code}\)")
        goes_on(shown)


def test_a_login_that_changes_nothing(backend: str, tmp_path: Path) -> None:
    with started(tmp_path, *script(backend, "console")) as shown:
        shown.expect("Key: ")
        shown.type("useless\n")
        shown.expect(r"LoginRequired: .* after the login 'console', it wants a login first")
        goes_on(shown)


def test_ctrl_c_is_for_the_login_alone(backend: str, tmp_path: Path) -> None:
    with started(tmp_path, *script(backend, "console")) as shown:
        shown.expect("Key: ")
        shown.type(CTRL_C)
        shown.expect(r"LoginFailed: .* \(-2\)")
        goes_on(shown)


def test_a_login_that_is_given_up_is_ended(backend: str, tmp_path: Path) -> None:
    with started(tmp_path, *script(backend, "console")) as shown:
        shown.expect("Key: ")
        shown.type("again\n")
        shown.expect("Key: ")
        shown.process.send_signal(signal.SIGUSR1)
        shown.expect("cancelled")
        goes_on(shown)


def test_one_that_does_not_want_to_end_is_killed(backend: str, tmp_path: Path) -> None:
    with started(tmp_path, *script(backend, "console")) as shown:
        shown.expect("Key: ")
        shown.type("stay\n")
        shown.expect("Key: ")
        shown.process.send_signal(signal.SIGUSR1)
        shown.expect("cancelled")
        goes_on(shown)


@ON_LINUX
@pytest.mark.parametrize("given_up", [True, False])
def test_a_browser_that_it_has_opened_ends_only_where_it_is_given_up(
    backend: str, tmp_path: Path, given_up: bool
) -> None:
    with started(tmp_path, *script(backend, "console")) as shown:
        shown.expect("Key: ")
        shown.type("open\n")
        shown.expect("Key: ")
        if given_up:
            shown.process.send_signal(signal.SIGUSR1)
        else:
            shown.type("secret\n")
        shown.expect("cancelled" if given_up else "logged in")
        goes_on(shown)
    assert anyio.run(ends, int((tmp_path / "window").read_text())) is given_up


def test_ctrl_z_without_a_shell_changes_nothing(backend: str, tmp_path: Path) -> None:
    with started(tmp_path, *script(backend, "console")) as shown:
        shown.expect("Key: ")
        shown.type(CTRL_Z + "secret\n")
        shown.expect("logged in")
        goes_on(shown)


def test_ctrl_z_in_a_shell_stops_the_whole_job(backend: str, tmp_path: Path) -> None:
    with started(tmp_path, "sh", "-i") as shown:
        shown.type(
            " ".join((TRUE, *script(backend, "console")[1:])) + "\n"
        )  # the shell has to know the process
        shown.expect("Key: ")
        shown.type(CTRL_Z)
        shown.expect("Stopped")
        shown.type("bg; echo b''g\n")  # it wants the terminal, and waits for it
        shown.expect(r"\nbg\r")
        shown.type("fg\n")
        shown.expect("log_in.py")
        shown.type("secret\n")
        shown.expect("logged in")
        goes_on(shown)
        shown.type("exit\n")


def test_without_a_terminal_it_says_what_to_type(backend: str, tmp_path: Path) -> None:
    said = subprocess.run(
        script(backend, "console"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={**os.environ, "LOGIN_TOKEN": str(tmp_path / "token")},
        timeout=60,
        check=True,
    ).stdout
    line = (
        "env 'LOGIN_KIND=by hand' LOGIN_BASE=overlaid "
        f"{sys.executable} {PROGRAMS / 'login_agent.py'} console login 'a b'"
    )
    assert (
        "needs a terminal in the foreground, and standard input is not one. It offers:\n- console: Console "
        f'(asks for a key): `await thinkwell.login(…, "console")` in a terminal, or type there: {line}'
    ) in said


def test_a_login_that_cannot_be_started(backend: str, tmp_path: Path) -> None:
    with started(tmp_path, *script(backend, "broken")) as shown:
        shown.expect("LoginFailed: .* its command cannot be started: embedded null byte")
        goes_on(shown)
