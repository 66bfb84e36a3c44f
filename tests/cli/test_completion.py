"""What the shell completes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cli.command import run_command
from cli.typing_in import home, thinkwell

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ("home",)


def completed(line: str, shell: str = "bash", program: Sequence[str] | None = None) -> list[str]:
    """Return what a shell is told when a person presses the tab at the end of a line."""
    words = line.split(" ")
    env = {
        **os.environ,
        "_THINKWELL_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
        "_TYPER_COMPLETE_ARGS": line,
    }
    ran = subprocess.run(
        program or thinkwell(), env=env, capture_output=True, text=True, timeout=60, check=False
    )
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


def test_names_of_agents_load_little_of_ours(home: Path) -> None:
    watching = (
        "import builtins, json, runpy, sys\n"
        "importers, really = {}, builtins.__import__\n"
        "def noted(name, globals=None, *rest, **named):\n"
        "    importers.setdefault(name.partition('.')[0], set()).add((globals or {}).get('__name__', ''))\n"
        "    return really(name, globals, *rest, **named)\n"
        "builtins.__import__ = noted\n"
        "try:\n"
        "    runpy.run_module('thinkwell', run_name='__main__')\n"
        "finally:\n"
        "    who = {name: sorted(found) for name, found in importers.items()}\n"
        "    json.dump([sorted(sys.modules), who], open('imports.json', 'w'))"
    )
    assert completed("thinkwell run --agent cla", program=[sys.executable, "-c", watching]) == ["claude"]
    loaded, importers = json.loads(Path("imports.json").read_text("utf-8"))
    assert not {"asyncio", "rich.console", "rich.text"} & {*loaded}
    assert "thinkwell" in importers, "what is imported is seen"
    for by in importers.get("pydantic", ()):  # typer looks for it, when it reads arguments
        assert by.partition(".")[0] in ("typer", "pydantic")


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
