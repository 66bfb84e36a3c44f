"""The skill for coding agents loads, is short, and tells the truth about mistakes."""

from __future__ import annotations

import ast
import builtins
import inspect
import re
from types import FunctionType
from typing import TYPE_CHECKING

import anyio
import pytest
from builtin_stage import open_builtin
from docs.pages import DOCS, snippets
from pydantic import BaseModel

import thinkwell
from thinkwell import load_skill, open_agent

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = DOCS / "skills" / "thinkwell"
ROW = re.compile(r"^\| `(.+?)` \| `(\w+)` \| ", re.MULTILINE)


class Review(BaseModel):
    """As in the skill."""

    summary: str
    files: list[str]


def mistakes() -> list[tuple[str, str]]:
    """What the skill says is wrong, and the error that it names."""
    return ROW.findall((FOLDER / "SKILL.md").read_text("utf-8"))


def test_it_loads_and_is_worth_its_tokens() -> None:
    skill = load_skill(FOLDER)
    assert skill.name == "thinkwell"
    assert "thinkwell" in skill.description
    assert len(skill.body.split()) < 1_200
    assert len(mistakes()) >= 8


def test_what_it_refers_to_is_there() -> None:
    text = (FOLDER / "SKILL.md").read_text("utf-8")
    for name in re.findall(r"`(references/[^`]+)`", text):
        assert (FOLDER / name).is_file()
    for page in FOLDER.rglob("*.md"):
        assert "](" not in page.read_text("utf-8"), "its folder is copied elsewhere: links would lead nowhere"


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
@pytest.mark.parametrize(("code", "error"), mistakes())
async def test_a_mistake_fails_as_it_says(code: str, error: str, tmp_path: Path) -> None:
    expected: type[Exception] = getattr(builtins, error, None) or getattr(thinkwell, error)
    with anyio.fail_after(30):
        async with open_builtin(cwd=tmp_path) as agent:
            names: dict[str, object] = {"agent": agent, "open_agent": open_agent, "Review": Review}
            flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
            if code.startswith("open_agent"):
                code = f"async with {code}: pass"
            compiled = compile(code, "mistake", "exec", flags=flags, dont_inherit=True)
            with pytest.raises(expected):
                await _finished(FunctionType(compiled, names)())


async def _finished(result: object) -> None:
    if inspect.iscoroutine(result):
        await result


def test_every_snippet_of_it_is_run_with_the_others() -> None:
    assert len(snippets(FOLDER / "SKILL.md")) >= 6
