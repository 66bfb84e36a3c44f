"""Each scene is played by an agent that speaks ACP, and by one that speaks lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

if TYPE_CHECKING:
    from listen.talkers import Protocol


@pytest.fixture(params=["acp", "ndjson"])
def protocol(request: pytest.FixtureRequest) -> Protocol:
    """What the agent speaks."""
    return cast("Protocol", request.param)
