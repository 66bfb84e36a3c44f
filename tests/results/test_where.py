"""The line to fix, where it is known."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from thinkwell import tool
from thinkwell.testing import ScriptedAgent, script

if TYPE_CHECKING:
    from collections.abc import Generator


class Here: ...


def generate() -> Generator[int]:
    yield 1


def line_of(code: str) -> int:
    return Path(__file__).read_text("utf-8").split(f"\n{code}")[0].count("\n") + 2


async def test_functions_and_classes_have_lines() -> None:
    async with ScriptedAgent(script).open() as agent:
        with pytest.raises(TypeError, match=re.escape(f"think(Here) ({__file__}:{line_of('class Here')}): ")):
            agent.think(Here)
    with pytest.raises(TypeError, match=re.escape(f"tool generate() ({__file__}:{line_of('def generate')})")):
        tool(generate)


async def test_nothing_is_said_where_it_is_not_known() -> None:
    made = type("Made", (), {"__module__": "nowhere"})
    async with ScriptedAgent(script).open() as agent:
        with pytest.raises(TypeError, match=r"^think\(Made\): "):
            agent.think(made)
    unnamed: Any = print
    with pytest.raises(TypeError, match=r"^tool print\(\): "):
        tool(unnamed)


async def test_a_builtin_that_is_no_output_type() -> None:
    async with ScriptedAgent(script).open() as agent:
        with pytest.raises(TypeError, match=r"^think\(slice\): pydantic"):
            agent.think(slice)
