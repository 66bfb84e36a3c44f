"""The static types of results: mypy and basedpyright agree with what is written in `cases`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
CASES = Path(__file__).parent / "cases"


def test_mypy() -> None:
    command = [sys.executable, "-m", "mypy", "--strict", str(CASES)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout


def test_basedpyright(tmp_path: Path) -> None:
    settings = {
        "include": [str(CASES)],
        "extraPaths": [str(ROOT / "thinkwell"), str(ROOT / "acp")],
        "typeCheckingMode": "strict",
        "pythonVersion": "3.11",
        "reportUnnecessaryTypeIgnoreComment": "error",
        "enableTypeIgnoreComments": False,
    }
    project = tmp_path / "pyrightconfig.json"
    project.write_text(json.dumps(settings))
    command = [
        sys.executable,
        "-m",
        "basedpyright",
        "--project",
        str(project),
        "--pythonpath",
        sys.executable,
    ]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout
