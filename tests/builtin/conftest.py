"""The built-in agent, connected by memory and speaking without pauses."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
from builtin_stage import open_builtin

if TYPE_CHECKING:
    from pathlib import Path

    from builtin.tool_box import OpenBuiltin

SHAPES = '''"""Areas of shapes."""

import math


class Circle:
    """A round thing."""

    def area(self) -> float:
        """Return the area."""
        return math.pi  # TODO: times the radius


def square(side: float) -> float:
    return side * side
'''


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a few files."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "README.md").write_text("# Shapes\n\n## Use\n\nCompute areas.\n")
    (folder / "shapes.py").write_text(SHAPES)
    return folder


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the agent speak without pauses."""
    monkeypatch.setenv("THINKWELL_BUILTIN_PACE", "0")


@pytest.fixture
def builtin(project: Path, quick: None) -> OpenBuiltin:
    """Opens the agent on the project."""
    return partial(open_builtin, cwd=project)
