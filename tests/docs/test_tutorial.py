"""The script that the tutorial ends in is of use: it tells what is wrong, and keeps it from a commit."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import pytest
from builtin_stage import run_here
from docs.pages import DOCS, snippets

from thinkwell.testing import ScriptedAgent, script

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from thinkwell.testing import Script

Review: TypeAlias = "Callable[[Script], Reviewed]"

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


class Reviewed(NamedTuple):
    """What the script came to."""

    code: int
    out: str
    errors: str
    played: ScriptedAgent


@pytest.fixture
def review(project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Review:
    """Runs the script with an agent that does as it is told."""

    def reviewed(told: Script) -> Reviewed:
        played = ScriptedAgent(told, complete=False)
        with pytest.raises(SystemExit) as ended:
            run_here(project / "review.py", project, monkeypatch, agent=played)
        assert isinstance(ended.value.code, int)
        out, errors = capsys.readouterr()
        return Reviewed(ended.value.code, out, errors, played)

    return reviewed


@pytest.mark.parametrize(("severity", "code"), [("note", 0), ("mistake", 1)])
def test_it_says_what_it_found(review: Review, severity: str, code: int) -> None:
    done = review(
        script.calls("changes").returns({"summary": "It takes one.", "findings": [finding(severity)]})
    )
    line = f"parser.py:2: {severity}: An empty text has no first word."
    assert done.out.splitlines() == ["It takes one.", line]
    assert done.code == code, done.errors
    assert "+    return text.split()[0]" in done.played.sent.results[0].text


def test_it_lets_the_agent_read_and_nothing_else(project: Path, review: Review) -> None:
    inside = str(project / "parser.py")
    done = review(
        script.asks("Read parser.py", kind="read", path=inside, expect="allow_once")
        .asks("Read a key", kind="read", path="/etc/key", expect="reject_once")
        .asks("Change parser.py", kind="edit", path=inside, expect="reject_once")
        .returns({"summary": "Fine.", "findings": []})
    )
    assert (done.code, done.out) == (0, "Fine.\n"), done.errors
    assert len(done.played.sent.answers) == 3


def test_what_goes_wrong_has_an_exit_code_of_its_own(review: Review) -> None:
    done = review(script.fails(message="out of order"))
    assert (done.code, done.out) == (2, "")
    assert "out of order" in done.errors


def test_without_git_the_agent_is_told(project: Path, review: Review) -> None:
    (project / ".git").rename(project / "elsewhere")
    done = review(
        script.calls("changes", expect_error="Not a git repository").returns(
            {"summary": "Nothing to see.", "findings": []}
        )
    )
    assert (done.code, done.out) == (0, "Nothing to see.\n"), done.errors


@pytest.mark.usefixtures("warm_python")
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
