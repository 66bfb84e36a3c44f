"""A browser for the tests of a module."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from page.browsing import Browser, browsing

if TYPE_CHECKING:
    from collections.abc import Generator


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    """A real browser."""
    with browsing() as started:
        yield started
