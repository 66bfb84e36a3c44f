"""The page on how it works says what is so: which states follow which, and which files each way passes."""

from __future__ import annotations

import ast
import re
import sys
from contextvars import ContextVar
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import anyio
import pytest
from anyio import wait_all_tasks_blocked
from docs.pages import DOCS, ROOT
from opentelemetry import metrics
from pydantic import BaseModel
from scripted import Played, Turn

import thinkwell
import thinkwell_acp
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from types import FrameType

    from thinkwell.questions import Question
    from thinkwell_acp import Transport

TEXT: Final = "".join(
    (DOCS / "topics" / f"{page}.md").read_text("utf-8") for page in ("how-it-works", "paths")
)
CORE: Final = Path(thinkwell.__file__).parent / "_core"
PROTOCOL: Final = Path(thinkwell_acp.__file__).parent


def section_of(text: str, title: str) -> str:
    """Return what stands below a heading."""
    return text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def sections(title: str) -> dict[str, str]:
    """Return the sections below a heading of the page, by their own."""
    parts = re.split(r"^### (.*)$", section_of(TEXT, title), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def rows(section: str) -> list[list[list[str]]]:
    """Return what stands in backticks in each cell of the first table, the head left out."""
    found = re.search(r"^\|.*\n\|[-|]+\n((?:\|.*\n)+)", section, re.MULTILINE)
    assert found
    return [
        [re.findall(r"`([^`]+)`", cell) for cell in line.strip("|").split("|")]
        for line in found[1].splitlines()
    ]


def names_of(text: str) -> list[str]:
    """Return the files and folders that a text names."""
    return [
        name for name in re.findall(r"`([\w/]+/(?:\w+\.py)?)`", text) if not name.startswith("thinkwell/")
    ]


def where(name: str) -> Path:
    """Return the path of a file that the page names."""
    return PROTOCOL.parent / name if name.startswith("thinkwell_acp/") else CORE / name


def test_each_file_on_the_page_is_there() -> None:
    assert [name for name in names_of(TEXT) if not where(name).exists()] == []


def test_what_lives_is_where_the_page_says() -> None:
    for (name,), (file,), *_ in rows(section_of(TEXT, "What lives")):
        assert re.search(rf"^class {name}\b", where(file).read_text("utf-8"), re.MULTILINE), name


# The map of the house


def test_the_map_has_each_room_and_each_file_on_it_is_there() -> None:
    house = section_of((ROOT / "CONTRIBUTING.md").read_text("utf-8"), "Where things are")
    package = CORE.parent
    there = {path.name for path in package.iterdir()} | {f"_core/{path.name}" for path in CORE.iterdir()}
    rooms = {name for name in there if not re.search(r"(^|/)__(init__|pycache__)|^py\.typed$|^_core$", name)}
    told = {name for *_, room, _what in rows(house) for name in room}
    assert rooms - told == set()
    files = {name for name in re.findall(r"`([\w/.]+\.\w+)`", house) if "NAME" not in name}
    roots = (package, PROTOCOL.parent, ROOT)
    assert [name for name in files if not any((root / name).exists() for root in roots)] == []


# Lives


class Life:
    """An enum of states, and the table of those that follow each, as they stand in a file."""

    def __init__(self, tree: ast.Module) -> None:
        self._values = {
            ast.unparse(node.target if isinstance(node, ast.AnnAssign) else node.targets[0]): node.value
            for node in tree.body
            if isinstance(node, ast.Assign | ast.AnnAssign)
        }
        (life,) = [
            node for node in tree.body if isinstance(node, ast.ClassDef) and node.name.endswith("Life")
        ]
        self.name = life.name
        self.states = {ast.unparse(node.targets[0]) for node in life.body if isinstance(node, ast.Assign)}
        table = self._values["_NEXT"]
        assert isinstance(table, ast.Dict)
        self.transitions = {
            (before, after)
            for key, value in zip(table.keys, table.values, strict=True)
            for before in self._named(key)
            for after in self._named(value)
        }

    def _named(self, node: ast.expr | None) -> Iterator[str]:
        for part in () if node is None else ast.walk(node):
            if isinstance(part, ast.Attribute):
                yield part.attr
            elif isinstance(part, ast.Name):
                yield from self._named(self._values.get(part.id))


LIVES: Final = sections("The lives")


def test_each_life_is_on_the_page() -> None:
    files = {
        path for path in CORE.rglob("*.py") if re.search(r"^_NEXT\b", path.read_text("utf-8"), re.MULTILINE)
    }
    assert {where(names_of(section)[0]) for section in LIVES.values()} == files


@pytest.mark.parametrize("title", LIVES)
def test_a_life_is_as_in_the_code(title: str) -> None:
    section = LIVES[title]
    life = Life(ast.parse(where(names_of(section)[0]).read_text("utf-8")))
    assert f"`{life.name}`" in section
    told = [
        (before, after) for befores, *_, afters in rows(section) for before in befores for after in afters
    ]
    assert sorted(told) == sorted(life.transitions)
    assert {state for pair in told for state in pair} == life.states
    usual = re.findall(r"`([A-Z_]+)`", section.partition("Usually:")[2].partition("\n")[0])
    assert len(usual) > 1
    assert set(pairwise(usual)) <= life.transitions


# Ways

_in_agent: Final[ContextVar[bool]] = ContextVar("_in_agent", default=False)


class Scripted(Played):
    """An agent in memory whose own steps are not noted, though they run through files of ours."""

    async def serve(self, transport: Transport) -> None:
        _in_agent.set(True)  # and so in every task that it starts
        await super().serve(transport)


@pytest.fixture(autouse=True)
def measures_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let runs pass what they pass in a program without metrics; other tests have set some up."""
    monkeypatch.setattr(metrics, "get_meter_provider", metrics.NoOpMeterProvider)


@cache
def name_of(file: str) -> str | None:
    """Return the page's name for a file, where it is one of the core's or of the protocol's."""
    path = Path(file)
    for root, below in ((CORE, CORE), (PROTOCOL, PROTOCOL.parent)):
        if path.is_relative_to(root):
            return path.relative_to(below).as_posix()
    return None


class Passed:
    """The files that a way enters, in the order in which it enters each for the first time."""

    def __init__(self) -> None:
        self.files: dict[str, None] = {}
        self._before: Any = None

    async def begin(self) -> None:
        """Note what happens from now on, once nothing else goes on."""
        await wait_all_tasks_blocked()
        self._before = sys.getprofile()
        sys.setprofile(self._note)

    def end(self) -> None:
        """Note nothing more."""
        sys.setprofile(self._before)

    def _note(self, frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        # Modules are imported, and objects are collected, in the middle of anything.
        if event == "call" and not _in_agent.get() and code.co_name not in ("<module>", "__del__"):
            name = name_of(code.co_filename)
            if name is not None:
                self.files[name] = None


class Sum(BaseModel):
    """A typed result."""

    total: int


async def greets(turn: Turn) -> None:
    turn.say("Hello")


async def a_prompt(passed: Passed, folder: Path) -> None:
    async def sees_it(_turn: Turn) -> None:
        passed.end()

    async with Scripted([greets, sees_it]).open(cwd=folder) as agent, agent.session() as session:
        await session.think().text("First").run()
        await passed.begin()
        await session.think().text("Second").run()


async def a_line(passed: Passed, folder: Path) -> None:
    heard = anyio.Event()

    async def speaks(turn: Turn) -> None:
        await passed.begin()
        turn.say("Hello")
        await heard.wait()

    async with Scripted([speaks]).open(cwd=folder) as agent:
        stream = agent.think().text("Speak").stream()
        async for _ in stream.events(include={"message"}):
            passed.end()
            heard.set()
        await stream.wait()


async def a_result(passed: Passed, folder: Path) -> None:
    async def returns(turn: Turn) -> None:
        await passed.begin()
        await turn.returns(total=3)

    async with Scripted([returns]).open(cwd=folder) as agent:
        stream = agent.think(Sum).text("Add").stream()
        assert await stream.result == Sum(total=3)
        passed.end()
        await stream.wait()


async def a_question(passed: Passed, folder: Path) -> None:
    async def allow(_question: Question) -> bool:
        return True

    async def asks(turn: Turn) -> None:
        await passed.begin()
        answer = await turn.client.request_permission(
            s.RequestPermissionRequest(
                session_id=turn.session_id,
                tool_call=s.ToolCallUpdate(tool_call_id="call", title="ls", kind="execute"),
                options=(s.PermissionOption(option_id="yes", name="Yes", kind="allow_once"),),
            )
        )
        passed.end()
        assert answer.outcome == s.SelectedPermissionOutcome(option_id="yes")

    async with Scripted([asks]).open(cwd=folder, permissions="ask", on_question=allow) as agent:
        await agent.think().text("Ask").run()


async def a_cancellation(passed: Passed, folder: Path) -> None:
    async def goes_on(turn: Turn) -> None:
        turn.say("Hello")
        await anyio.sleep_forever()

    async with Scripted([goes_on]).open(cwd=folder) as agent:
        stream = agent.think().text("Go on").stream()
        await anext(stream.events(include={"message"}))
        await passed.begin()
        stream.cancel()
        await stream.wait()
        passed.end()


Way: TypeAlias = "Callable[[Passed, Path], Awaitable[None]]"

PLAYED: Final[dict[str, Way]] = {
    "A prompt to the wire": a_prompt,
    "A line to the iterator": a_line,
    "A result": a_result,
    "A question": a_question,
    "A cancellation": a_cancellation,
}


async def passed_on(way: Way, folder: Path) -> list[str]:
    """Return the files that a way passes."""
    passed = Passed()
    try:
        with anyio.fail_after(30):
            await way(passed, folder)
    finally:
        passed.end()
    return list(passed.files)


def is_helper(file: str) -> bool:
    return any(file == name or (name.endswith("/") and file.startswith(name)) for name in HELPERS)


WAYS: Final = sections("The ways")
HELPERS: Final = names_of(WAYS.pop("Helpers"))


def test_each_way_is_played() -> None:
    assert list(WAYS) == list(PLAYED)


@pytest.mark.parametrize("title", WAYS)
async def test_a_way_passes_the_files_on_the_page(title: str, tmp_path: Path) -> None:
    passed = await passed_on(PLAYED[title], tmp_path)
    listed = [name for first, *_ in rows(WAYS[title]) for name in first]
    assert [name for name in passed if not is_helper(name)] == listed


async def test_each_helper_is_passed(tmp_path: Path) -> None:
    passed = [name for way in PLAYED.values() for name in await passed_on(way, tmp_path)]
    assert [name for name in HELPERS if not any(file.startswith(name) for file in passed)] == []
