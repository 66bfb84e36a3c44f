"""The static types of results: mypy and basedpyright agree with what is written in `cases`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
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


@pytest.mark.parametrize("package", ["thinkwell", "thinkwell_acp"])
def test_each_public_name_says_its_type(package: str, tmp_path: Path) -> None:
    """Packages that are installed: of others, `--verifytypes` does not find the mark."""
    environment = tmp_path / "environment"
    venv.create(environment, symlinks=True)
    site = next(environment.glob("lib/python*/site-packages"))
    (site / "others.pth").write_text(sysconfig.get_path("purelib"))
    (site / "thinkwell").symlink_to(ROOT / "thinkwell" / "thinkwell")
    (site / "thinkwell_acp").symlink_to(ROOT / "acp" / "thinkwell_acp")
    ran = subprocess.run(
        [sys.executable, "-m", "basedpyright", "--ignoreexternal", "--verifytypes", package],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{environment / 'bin'}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Type completeness score: 100%" in ran.stdout, ran.stdout
