"""The program that stands between an agent and the MCP servers that it starts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from thinkwell_acp.mcp import shim

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there, a job does what it is for")

GUARD = [sys.executable, "-I", "-S", str(Path(shim.__file__).with_name("guard.py")), "0.1"]
"""Run as a program of its own, as agents run it."""

LIMIT = 20


def python(code: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", code]


@pytest.mark.parametrize(
    ("code", "ended"), [("raise SystemExit(7)", 7), ("import os; os.abort()", 128 + signal.SIGABRT)]
)
def test_it_ends_as_its_server_does(code: str, ended: int) -> None:
    with subprocess.Popen([*GUARD, *python(code)], stdin=subprocess.PIPE, start_new_session=True) as guard:
        assert guard.wait(LIMIT) == ended


def test_a_server_speaks_for_itself() -> None:
    code = "import sys; print(sys.stdin.readline(), end=''); print('oops', file=sys.stderr)"
    with subprocess.Popen(
        [*GUARD, *python(code)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as guard:
        assert guard.stdin is not None
        guard.stdin.write(b"hello\n")
        guard.stdin.flush()
        assert guard.stdout is not None
        assert guard.stdout.read() == b"hello\n"
        assert guard.stderr is not None
        assert guard.stderr.read() == b"oops\n"
        assert guard.wait(LIMIT) == 0


@pytest.mark.parametrize("code", ["input()", "import time; time.sleep(3600)"])
def test_everything_ends_when_the_writers_have_gone(code: str) -> None:
    start = f"import os, time; os.fork() or time.sleep(3600); print(1, flush=True); {code}"
    with subprocess.Popen(
        [*GUARD, *python(start)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as guard:
        assert guard.stdout is not None
        assert guard.stdout.readline() == b"1\n"
        assert guard.stdin is not None
        guard.stdin.close()
        assert guard.stdout.read() == b""  # the fork has it open too, as long as it runs
        assert guard.wait(LIMIT) == -signal.SIGKILL


def test_sigterm_is_for_the_server() -> None:
    code = "import sys, time\nprint(1, flush=True)\ntime.sleep(3600)"
    with subprocess.Popen(
        [*GUARD, *python(code)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as guard:
        assert guard.stdout is not None
        assert guard.stdout.readline() == b"1\n"
        os.killpg(guard.pid, signal.SIGTERM)
        assert guard.wait(LIMIT) == 128 + signal.SIGTERM


def test_what_is_no_program_is_said(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("no program")
    text.chmod(0o755)
    ran = subprocess.run([*GUARD, str(text)], input=b"", capture_output=True, check=False)
    assert ran.returncode == 1
    assert b"cannot be started" in ran.stderr
