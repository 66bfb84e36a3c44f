"""Programs are run by a Python that is warm."""

from __future__ import annotations

import pytest
from warm import warm_python, warm_server

__all__ = ("warm_python", "warm_server")


@pytest.fixture(autouse=True)
def warm(warm_python: str) -> str:
    """The path of that Python."""
    return warm_python
