"""Agents of programs in terminals are run by a Python that is warm, the programs by the true one."""

from __future__ import annotations

import pytest
from warm import warm_server

__all__ = ("warm_server",)


@pytest.fixture(autouse=True)
def agents(warm_server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tell programs which Python is to run their agents."""
    monkeypatch.setenv("AGENT_PYTHON", warm_server)
