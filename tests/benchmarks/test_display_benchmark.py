"""The benchmark of displays runs to its end and shows that something was drawn. No test looks at a time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]


def report(target: Path, *asked: str) -> dict[str, Any]:
    """Run the benchmark and return what it wrote."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.display", "--rounds", "1", "--json", str(target), *asked],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    written: dict[str, Any] = json.loads(target.read_text(encoding="utf-8"))
    return written


def test_a_run_is_drawn_while_it_pours_and_while_it_does_not(tmp_path: Path) -> None:
    asked = ("--only", "runs", "--count", "400", "--seconds", "0.2")
    lines = report(tmp_path / "report.json", *asked)["lines"]
    assert [line["samples"][0]["updates"] for line in lines] == [400] * len(lines)
    for line in lines:
        style, figures = line["show"]["style"], line["samples"][0]
        assert (figures["drawn_bytes"] > 0) == (style != "none")
        assert (figures["frames"] > 0) == (style == "live")


def test_the_command_is_timed_in_a_terminal(tmp_path: Path) -> None:
    commands = report(tmp_path / "report.json", "--only", "commands")["commands"]
    assert {"thinkwell --help", "thinkwell version", "thinkwell run"} <= commands.keys()
    assert all(samples[0]["bytes"] > 0 for samples in commands.values())
