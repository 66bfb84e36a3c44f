"""The command's programs, and the agents that they start, are run by a Python that is warm."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def warm(warm_python: str) -> str:
    """The path of that Python."""
    return warm_python
