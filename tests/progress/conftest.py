"""Agents of programs in terminals run on the warm Python, the programs on the real one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from progress.stage import Pty
from warm import warm_server

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ("warm_server",)


@pytest.fixture(autouse=True)
def agents(warm_server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tell programs which Python is to run their agents."""
    monkeypatch.setenv("AGENT_PYTHON", warm_server)


@pytest.fixture
def pty() -> Generator[Pty]:
    """A terminal with a person at its other end."""
    with Pty() as pty:
        yield pty
