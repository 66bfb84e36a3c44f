"""The example of a plan runs with the built-in agent."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from cli.command import run_command
from examples.test_examples import EXAMPLES

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.usefixtures("warm_python")
def test_the_plan_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THINKWELL_BUILTIN_PACE", "0")
    monkeypatch.chdir(shutil.copytree(EXAMPLES / "trials", tmp_path / "trials"))
    done = run_command("trials", "plan.toml", "--report", "report.html")
    assert done.code == 0, done.err
    assert done.out.splitlines()[1].split()[:2] == ["builtin", "6/6"]
    assert "the answer is" in (tmp_path / "trials" / "report.html").read_text("utf-8")
