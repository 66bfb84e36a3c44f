"""What is said where the extra is not installed."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from cli.typing_in import home
from login.terminal import terminal

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ("home",)

COMMAND = "import runpy, sys; sys.argv[1:] = {!r}; runpy.run_module('thinkwell', run_name='__main__')"


def without(name: str, program: str) -> list[str]:
    """Return the command line of a program for which a module is not installed."""
    return [sys.executable, "-W", "error", "-c", f"import sys; sys.modules[{name!r}] = None\n{program}"]


def run(name: str, program: str) -> subprocess.CompletedProcess[str]:
    """Run a program without a module."""
    return subprocess.run(
        without(name, program),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "THINKWELL_SERVE_REDIS": "redis://localhost"},
    )


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("name", "extra", "arguments"),
    [
        ("typer", "cli", []),
        ("rich", "cli", []),
        ("httpx", "telegram", ["telegram"]),
        ("starlette", "web", ["serve"]),
        pytest.param("uvicorn", "web", ["serve"], marks=pytest.mark.long),
        pytest.param("redis", "redis", ["serve", "--journal", "redis"], marks=pytest.mark.long),
    ],
)
def test_what_is_missing_is_named_with_what_to_type(name: str, extra: str, arguments: list[str]) -> None:
    ran = run(name, COMMAND.format(arguments))
    assert (ran.returncode, ran.stdout) == (2, "")
    assert f"needs {name}, which is not installed" in ran.stderr
    assert f"-m pip install 'thinkwell[{extra}]'" in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize(
    ("name", "program", "extra"),
    [
        ("starlette", "import thinkwell.web", "web"),
        (
            "sqlalchemy",
            "import thinkwell as t, thinkwell.sync as s; s.trials(t.think(), inputs=[1], agents=['builtin'])",
            "trials",
        ),
    ],
)
def test_in_a_program_too(name: str, program: str, extra: str) -> None:
    ran = run(name, program)
    assert (ran.returncode, ran.stdout) == (1, "")
    told = f"thinkwell.{extra} needs {name}, which is not installed; pip install 'thinkwell[{extra}]'"
    assert f"ImportError: {told}" in ran.stderr


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("inspect", []),
        pytest.param("tomllib", ["telegram"], marks=pytest.mark.long),
        pytest.param("sqlite3", ["serve"], marks=pytest.mark.long),
    ],
)
def test_what_else_is_missing_is_a_bug(name: str, arguments: list[str]) -> None:
    ran = run(name, COMMAND.format(arguments))
    assert ran.returncode == 1
    assert "ModuleNotFoundError" in ran.stderr


def test_a_chat_in_a_terminal_needs_its_prompt(tmp_path: Path) -> None:
    command = without("prompt_toolkit", COMMAND.format(["chat", "--agent", "builtin"]))
    with terminal(*command, env={"TERM": "xterm"}, cwd=tmp_path) as shown:
        shown.expect("`thinkwell chat` needs prompt_toolkit", 40.0)
        shown.expect(r"pip install 'thinkwell\[cli\]'")
    assert shown.process.returncode == 2
