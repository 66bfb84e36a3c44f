"""One browser for all cases of the page, each in a profile of its own; most of them take long."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from page.browsing import Browser, browsing

if TYPE_CHECKING:
    from collections.abc import Generator


@pytest.hookimpl(tryfirst=True)  # before a case's group becomes a part of its name
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put what needs the browser on one worker, and what is not marked as quick off to the long tests."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("browser"))
            if item.get_closest_marker("quick") is None:
                item.add_marker(pytest.mark.long)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Generator[Browser]:
    """A real browser."""
    with browsing(tmp_path_factory.mktemp("browser")) as started:
        yield started
