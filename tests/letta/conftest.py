"""All cases on one worker: the client whose types they are read by takes a second to import."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)  # before a case's group becomes a part of its name
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put them into one group."""
    for item in items:
        if item.path.parent == HERE:
            item.add_marker(pytest.mark.xdist_group("letta"))
