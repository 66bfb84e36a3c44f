"""What the shell completes."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from cli.command import run_command
from cli.typing_in import home, thinkwell

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ("home",)


def completed(line: str, shell: str = "bash") -> list[str]:
    """Return what a shell is told when a person presses the tab at the end of a line."""
    words = line.split(" ")
    env = {
        **os.environ,
        "_THINKWELL_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
        "_TYPER_COMPLETE_ARGS": line,
    }
    ran = subprocess.run(thinkwell(), env=env, capture_output=True, text=True, timeout=60, check=False)
    assert ran.stderr == ""
    return ran.stdout.split()


def test_names_of_agents(home: Path) -> None:
    assert completed("thinkwell run --agent cla") == ["claude"]
    assert completed("thinkwell doctor bui") == ["builtin"]
    assert {"claude", "codex"} <= set(completed("thinkwell agents show c"))


def test_commands_and_options(home: Path) -> None:
    assert completed("thinkwell rep") == ["replay"]
    assert completed("thinkwell tel") == ["telegram"]
    assert completed("thinkwell ser") == ["serve"]
    assert completed("thinkwell serve --agent cla") == ["claude"]
    assert completed("thinkwell run --sch") == ["--schema"]


def test_own_agents_are_completed_and_what_is_broken_is_not_told(home: Path) -> None:
    file = home / "pyproject.toml"
    file.write_text('[tool.thinkwell.agents.mine.program]\ncommand = ["x"]\n', "utf-8")
    assert completed("thinkwell run -a mi") == ["mine", "minimax", "minion-code"]
    file.write_text("[tool.thinkwell.agents", "utf-8")
    assert completed("thinkwell run -a bui") == ["builtin"]


def test_of_agents_of_their_own_completion_loads_only_names(home: Path) -> None:
    code = (
        "import sys; from thinkwell.cli._completing import agent_names; assert 'claude' in agent_names('')\n"
        "assert not {'asyncio', 'pydantic', 'rich'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_a_shell(shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    env = {**os.environ, "SHELL": f"/bin/{shell}"}
    ran = subprocess.run(
        thinkwell("--show-completion", shell),
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "_THINKWELL_COMPLETE" in ran.stdout
    assert run_command("--version").code == 0
