"""The line to fix, where it is known."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripted import scripted

from thinkwell._where import where


class Here: ...


def test_functions_and_classes_have_lines() -> None:
    line = Path(__file__).read_text("utf-8").split("class Here")[0].count("\n") + 1
    assert where(Here) == f" ({__file__}:{line})"
    assert where(test_functions_and_classes_have_lines).startswith(f" ({__file__}:")


@pytest.mark.parametrize("thing", [int, print, 5, type("Made", (), {"__module__": "nowhere"})])
def test_nothing_is_said_where_it_is_not_known(thing: object) -> None:
    assert where(thing) == ""


async def test_a_builtin_that_is_no_output_type() -> None:
    async with scripted() as agent:
        with pytest.raises(TypeError, match=r"^think\(slice\): pydantic"):
            agent.think(slice)
