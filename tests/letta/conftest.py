"""All cases on one worker: the client whose types they are read by takes a second to import."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from real_servers import SERVERS

if TYPE_CHECKING:
    from real_servers import ServerKind

HERE = Path(__file__).parent

FIRST, *OTHERS = SERVERS


@pytest.fixture(params=[FIRST, *(pytest.param(kind, marks=pytest.mark.long) for kind in OTHERS)])
def kind(request: pytest.FixtureRequest) -> ServerKind:
    """Which server serves."""
    served: ServerKind = request.param
    return served


@pytest.hookimpl(tryfirst=True)  # before a case's group becomes a part of its name
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put them into one group."""
    for item in items:
        if item.path.parent == HERE:
            item.add_marker(pytest.mark.xdist_group("letta"))
