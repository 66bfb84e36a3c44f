"""Whatever comes in: no exception escapes, nothing hangs, memory is in proportion."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from fuzz import (
    asking_targets,
    channel_targets,
    line_targets,
    parser_targets,
    run_targets,
    tool_targets,
    wire_targets,
)

if TYPE_CHECKING:
    from fuzz.target import Target

TARGETS = (
    *parser_targets.TARGETS,
    *wire_targets.TARGETS,
    *run_targets.TARGETS,
    *asking_targets.TARGETS,
    *tool_targets.TARGETS,
    *line_targets.TARGETS,
    *channel_targets.TARGETS,
)


@pytest.mark.long
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_nothing_that_comes_in_does_harm(target: Target) -> None:
    assert target.run(target.weight) > 0
