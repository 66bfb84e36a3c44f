"""The script that the tutorial ends in is of use: it tells what is wrong, and keeps it from a commit."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from docs.pages import DOCS, snippets

from thinkwell.testing import ScriptedAgent, script

if TYPE_CHECKING:
    from pathlib import Path

    from thinkwell.testing import Script

PAGE = DOCS / "tutorial.md"


def finding(severity: str) -> dict[str, str | int]:
    return {"file": "parser.py", "line": 2, "severity": severity, "what": "An empty text has no first word."}


def git(folder: Path, *arguments: str, path: str = "") -> subprocess.CompletedProcess[str]:
    """Run git, as nobody in particular, on a folder."""
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main")
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    if path:
        environment["THINKWELL_AGENT_CMD"] = path
    return subprocess.run(
        ["git", *who, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder under git with a change in it, and the script."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "review.py").write_text(snippets(PAGE)[-1][1], "utf-8")
    (folder / "parser.py").write_text("def first(text):\n    return text.split()\n", "utf-8")
    assert git(folder, "init").returncode == 0
    assert git(folder, "add", ".").returncode == 0
    assert git(folder, "commit", "-m", "first").returncode == 0
    (folder / "parser.py").write_text("def first(text):\n    return text.split()[0]\n", "utf-8")
    return folder


def review(folder: Path, told: Script) -> tuple[subprocess.CompletedProcess[str], ScriptedAgent]:
    """Run the script with an agent that does as it is told."""
    played = ScriptedAgent(told, complete=False)
    command = shlex.join(played.program(folder.parent))
    finished = subprocess.run(
        [sys.executable, "-W", "error", "review.py"],
        cwd=folder,
        env={**os.environ, "THINKWELL_AGENT_CMD": command},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return finished, played


@pytest.mark.parametrize(("severity", "code"), [("note", 0), ("mistake", 1)])
def test_it_says_what_it_found(project: Path, severity: str, code: int) -> None:
    told = script.calls("changes").returns({"summary": "It takes one.", "findings": [finding(severity)]})
    finished, played = review(project, told)
    line = f"parser.py:2: {severity}: An empty text has no first word."
    assert finished.stdout.splitlines() == ["It takes one.", line]
    assert finished.returncode == code, finished.stderr
    assert "+    return text.split()[0]" in played.sent.results[0].text


def test_it_lets_the_agent_read_and_nothing_else(project: Path) -> None:
    inside = str(project / "parser.py")
    told = (
        script.asks("Read parser.py", kind="read", path=inside, expect="allow_once")
        .asks("Read a key", kind="read", path="/etc/key", expect="reject_once")
        .asks("Change parser.py", kind="edit", path=inside, expect="reject_once")
        .returns({"summary": "Fine.", "findings": []})
    )
    finished, played = review(project, told)
    assert (finished.returncode, finished.stdout) == (0, "Fine.\n"), finished.stderr
    assert len(played.sent.answers) == 3


def test_what_goes_wrong_has_an_exit_code_of_its_own(project: Path) -> None:
    finished, _ = review(project, script.crashes(3))
    assert (finished.returncode, finished.stdout) == (2, "")
    assert "exited with code 3" in finished.stderr


def test_without_git_the_agent_is_told(project: Path) -> None:
    (project / ".git").rename(project / "elsewhere")
    told = script.calls("changes", expect_error="Not a git repository").returns(
        {"summary": "Nothing to see.", "findings": []}
    )
    finished, _ = review(project, told)
    assert (finished.returncode, finished.stdout) == (0, "Nothing to see.\n"), finished.stderr


def test_a_mistake_keeps_a_commit_from_being_made(project: Path) -> None:
    hook = project / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\nexec {shlex.quote(sys.executable)} review.py\n", "utf-8")
    hook.chmod(0o755)
    found = script.returns({"summary": "It takes one.", "findings": [finding("mistake")]})
    played = ScriptedAgent(found.stops().returns({"summary": "Fine.", "findings": []}), complete=False)
    command = shlex.join(played.program(project.parent))
    assert git(project, "commit", "-a", "-m", "second", path=command).returncode == 1
    assert git(project, "commit", "-a", "-m", "second", path=command).returncode == 0
