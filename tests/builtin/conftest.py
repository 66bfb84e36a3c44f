"""The built-in agent, connected by memory and speaking without pauses."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from thinkwell import Agent, open_agent
from thinkwell.builtin._agent import BuiltinAgent
from thinkwell_acp import memory_transport_pair, serve_agent

if TYPE_CHECKING:
    from pathlib import Path

OpenBuiltin: TypeAlias = Callable[..., AbstractAsyncContextManager[Agent]]

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
def builtin(project: Path, monkeypatch: pytest.MonkeyPatch) -> OpenBuiltin:
    """Opens the agent on the project."""
    monkeypatch.setenv("THINKWELL_BUILTIN_PACE", "0")

    @asynccontextmanager
    async def opened(**options: Any) -> AsyncGenerator[Agent]:
        ours, theirs = memory_transport_pair()
        async with (
            BuiltinAgent() as handler,
            serve_agent(theirs, handler),
            open_agent("builtin", transport=ours, cwd=project, **options) as agent,
        ):
            yield agent

    return opened
