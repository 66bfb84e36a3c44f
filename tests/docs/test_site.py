"""The site builds without a warning, where its tools are installed."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.skipif(find_spec("mkdocs") is None, reason="mkdocs is not installed; `make docs` installs it")
def test_the_site_builds_without_warnings(tmp_path: Path) -> None:
    result = subprocess.run(
        [
            sys.executable,
            "-m",
            "mkdocs",
            "build",
            "--strict",
            "--quiet",
            "--site-dir",
            str(tmp_path / "site"),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    reference = (tmp_path / "site" / "reference" / "thinkwell" / "index.html").read_text("utf-8")
    assert "open_agent" in reference
