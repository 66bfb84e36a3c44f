"""Examples, run in the process of their test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from builtin_stage import run_here

EXAMPLES = Path(__file__).parents[2] / "examples"

Run: TypeAlias = Callable[..., str]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder for the examples to work on."""
    (tmp_path / "README.md").write_text("# Sample\n\nA small project.\n", "utf-8")
    (tmp_path / "parser.py").write_text("def parse(text):\n    return text.split()\n", "utf-8")
    return tmp_path


@pytest.fixture
def run(project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs an example, by its path from the folder of the examples, and returns what it prints."""

    def ran(name: str, *arguments: str, **options: Any) -> str:
        run_here(EXAMPLES / name, project, monkeypatch, *arguments, **options)
        said, errors = capsys.readouterr()
        assert errors == ""
        return said

    return ran
