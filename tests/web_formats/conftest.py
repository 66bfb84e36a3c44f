"""Most cases that talk by way of an official client, which Node.js runs, take long."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

HERE: Final = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put those that are not marked as quick off to the long tests."""
    for item in items:
        served = item.path.parent == HERE and "kind" in getattr(item, "fixturenames", ())
        if served and item.get_closest_marker("quick") is None:
            item.add_marker(pytest.mark.long)


@pytest.fixture(params=["uvicorn", pytest.param("hypercorn-trio", marks=pytest.mark.long)])
def kind(request: pytest.FixtureRequest) -> Any:
    """Which server serves."""
    return request.param
