"""The suite is for every journal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from journals import PLACES

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from journals import Place

    from thinkwell.journal import Journal


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest) -> Place:
    """Where the runs of the test are kept."""
    name: str = request.param
    return PLACES[name](request)


@pytest.fixture
async def journal(place: Place) -> AsyncGenerator[Journal]:
    """An open journal without any run."""
    async with place.journal() as opened:
        yield opened
