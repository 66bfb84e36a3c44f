"""What the agent finds in files, and which files it reads."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import pytest
from builtin.tool_box import ToolBox, answer, asked, filled, new_session, talking, text_prompt

from thinkwell_acp import ClientHandler
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("quick")

PROGRAM = '''"""Does things.

More of it.
"""
from __future__ import annotations
import os.path
from typing import overload
from . import sibling

@overload
def twice(x: int) -> int: ...
def twice(x):
    """Return it twice."""
    def inner():
        pass
    return x * 2

class _Hidden:
    def open(self):
        pass

class Shown:
    async def go(self):
        pass  # FIXME mind the gap
'''
TEXT = {"type": "string"}
TEXTS = {"type": "array", "items": TEXT}
FUNCTIONS = {
    "type": "array",
    "items": {"properties": {"name": TEXT, "line": {"type": "integer"}, "documented": {"type": "boolean"}}},
}
ISSUES = {"type": "array", "items": {"properties": {"severity": TEXT, "advice": TEXT}}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder."""
    folder = tmp_path / "folder"
    folder.mkdir()
    return folder


def make(folder: Path, *names: str, text: str = "") -> None:
    """Write files."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text or f"{name}\n")


async def found(folder: Path, **properties: Any) -> dict[str, Any]:
    """Return what the agent finds for some properties."""
    schema = {"type": "object", "properties": properties, "required": [*properties]}
    (result,) = (await filled(folder, schema, "What is here?")).results()
    return dict(result)


def links(*uris: str) -> list[s.ResourceLink]:
    """Links of a prompt."""
    return [s.ResourceLink(uri=uri, name="it") for uri in uris]


# Facts


async def test_facts_of_a_program(folder: Path) -> None:
    make(folder, "a/b.py", text=PROGRAM)
    lines = PROGRAM.count("\n")
    thoughts = (await asked(folder)).thoughts
    counted = f"{lines} lines, 4 functions, 2 classes and 1 TODO"
    assert f"a/b.py is Python: {counted}. It says of itself: Does things.\n" in thoughts
    assert "Its longest function is twice at line 12 with 5 lines; no docstring has go.\n" in thoughts
    assert "It imports os and typing.\n" in thoughts
    assert "Line 24 is left open: FIXME mind the gap\n" in thoughts
    assert "does not parse" not in thoughts
    wanted = {"functions": FUNCTIONS, "classes": TEXTS, "imports": TEXTS, "lines": {"type": "integer"}}
    assert await found(folder, **wanted) == {
        "functions": [
            {"name": "twice", "line": 12, "documented": True},
            {"name": "inner", "line": 14, "documented": False},
            {"name": "open", "line": 19, "documented": False},
            {"name": "go", "line": 23, "documented": False},
        ],
        "classes": ["_Hidden", "Shown"],
        "imports": ["os", "typing"],
        "lines": lines,
    }


async def test_facts_of_texts(folder: Path) -> None:
    make(folder, "x.md", text="# One #\n\n```\n# no heading\n```\n## Two\n")
    make(folder, "x.toml", text="[a]\n[[b.c]] # d\nx = [1]\n")
    make(folder, "x.unknown", text="no end")
    (folder / "x.txt").touch()
    thoughts = (await asked(folder, "Look at x.md, x.toml, x.unknown and x.txt")).thoughts
    assert "x.md is Markdown: 6 lines, 2 headings. It says of itself: One\n" in thoughts
    assert "Its parts are One and Two.\n" in thoughts
    assert "Its parts are a and b.c.\n" in thoughts
    assert "x.unknown is text: 1 line.\n" in thoughts
    assert "x.txt is text: 0 lines.\n" in thoughts


@pytest.mark.parametrize(
    "text",
    ["def f(:\n", "x = 1\0", "(" * 1000, "-" * 100_000 + "1", "x" + ".a" * 2000 + "\n@"],
    ids=["wrong", "zero", "open", "deep", "wrong behind deep"],
)
async def test_a_program_that_does_not_parse_is_said_to(folder: Path, text: str) -> None:
    schema = {
        "type": "object",
        "properties": {"score": {"type": "number"}, "issues": ISSUES},
        "required": ["score", "issues"],
    }
    box = await filled(folder, schema, f"<x.py>\n{text}\n</x.py>\n<source>\n{text}\n</source>")
    assert "x.py is Python" in box.thoughts
    assert "It does not parse; at line " in box.thoughts
    assert "source is text" in box.thoughts  # it does not look like a program
    (result,) = box.results()
    assert result["score"] == 5.0
    assert result["issues"][0]["severity"] == "high"


async def test_the_line_that_does_not_parse_is_told(folder: Path) -> None:
    make(folder, "x.py", text="x = 1\ndef f(:\n")
    assert "It does not parse; at line 2: " in (await asked(folder)).thoughts
    assert await found(folder, next_step=TEXT) == {"next_step": "Correct line 2 of x.py."}


async def test_a_program_that_nests_deeply_costs_nothing_but_its_facts(folder: Path) -> None:
    make(folder, "x.py", text="x" + ".a" * 2000)
    thoughts = (await asked(folder)).thoughts
    assert "x.py is Python" in thoughts
    assert "It does not parse" not in thoughts or "recursion" in thoughts


async def test_prose_does_not_look_like_a_program(folder: Path) -> None:
    thoughts = (await asked(folder, "<one>\nhello\n</one>\n<two>\nimport os\n</two>")).thoughts
    assert "one is text: 1 line." in thoughts
    assert "two.py is Python: 1 line." in thoughts


async def test_long_functions_are_issues(folder: Path) -> None:
    make(folder, "x.py", text="def f():\n" + "    pass\n" * 60)
    assert await found(folder, issues=ISSUES) == {
        "issues": [
            {"severity": "medium", "advice": "Split f in x.py."},
            {"severity": "low", "advice": "Document f in x.py."},
        ]
    }


async def test_public_functions_of_tests_need_no_docstring(folder: Path) -> None:
    make(folder, "test_x.py", text="def test_it():\n    pass\n")
    assert await found(folder, issues=ISSUES) == {"issues": []}


async def test_findings_of_nothing(folder: Path) -> None:
    box = await asked(folder)
    assert "There is nothing to read in folder." in box.messages
    projects = {"type": "array", "items": {"properties": {"name": TEXT, "summary": TEXT}}}
    nothing = {"name": "folder", "summary": "There is nothing to read in folder."}
    assert await found(folder, language=TEXT, projects=projects) == {
        "language": "none",
        "projects": [nothing],
    }


async def test_findings_of_one_file_are_named_after_it(folder: Path) -> None:
    make(folder, "x.py", text="def f():\n    '''F.'''\n")
    advice = "Begin with f in x.py: it is the longest function."
    assert await found(folder, title=TEXT, next_step=TEXT) == {"title": "x.py", "next_step": advice}


async def test_words(folder: Path) -> None:
    make(folder, "x.py", text="class A:\n    pass\n")
    make(folder, "y.py", text="import a, b, c\nclass B:\n    pass\nclass C:\n    pass\n# TODO: more\n")
    box = ToolBox([["one", "two"]], answers={"one": [answer("a\n  b")], "two": [answer("x" * 500)]})
    thoughts = (await asked(folder, "What is in x.py and y.py?", box=box)).thoughts
    assert "x.py is Python: 2 lines, 1 class.\n" in thoughts
    assert "y.py is Python: 6 lines, 2 classes and 1 TODO.\n" in thoughts
    assert "It imports a, b and c.\n" in thoughts
    assert "one answers: a b\n" in thoughts
    assert f"two answers: {'x' * 199}…\n" in thoughts


# Files


async def test_what_describes_the_project_comes_first_and_other_peoples_things_never(folder: Path) -> None:
    make(folder, "README.md", "pyproject.toml", "src/a.py", "test_a.py", "docs/README.md", "data.json")
    make(folder, "app.lock", ".git/config.py", ".venv/b.py", "node_modules/c.js", "__pycache__/d.py")
    (folder / "src" / "big.py").write_text("x = 1\n" * 50)
    (folder / "linked.py").symlink_to(folder / "src" / "a.py")
    assert (await asked(folder)).titles == [
        "List the files of the project",
        "Read README.md",
        "Read pyproject.toml",
        "Read src/big.py",
        "Read src/a.py",
        "Read docs/README.md",
        "Read test_a.py",
        "Read data.json",
    ]
    inner = (await asked(folder, "Look into src/ please")).titles
    assert inner == ["List the files of src", "Read src/big.py", "Read src/a.py"]


async def test_a_folder_that_is_gone_has_nothing_to_read(folder: Path) -> None:
    box = ToolBox()
    async with talking(box) as client:
        session_id = await new_session(client, folder)
        folder.rmdir()
        await client.prompt(text_prompt(session_id, "Go"))
    assert box.titles == ["List the files of the project"]
    assert "There is nothing to read in folder." in box.messages


async def test_a_search_is_bounded(folder: Path) -> None:
    make(folder, *(f"f{index}.py" for index in range(10)))
    assert len((await asked(folder)).titles) == 1 + 8
    crowd = folder / "crowd"
    crowd.mkdir()
    for index in range(5000):
        (crowd / f"{index:05}.x").touch()
    make(folder, "crowd/z.py")
    assert (await asked(folder, "Look into crowd/ please")).titles == ["List the files of crowd"]


async def test_a_long_file_is_read_in_part(folder: Path) -> None:
    line = "0123456789\n"
    make(folder, "long.txt", text=line * 30_000)
    box = await asked(folder)
    seen = 256 * 1024 // len(line)
    told = f"{seen} lines, {seen * len(line) - 1} bytes. It is longer than the 262144 bytes that I read."
    assert told in contents(box)


def contents(box: ToolBox) -> list[str]:
    """Return what the calls have come to."""
    return [
        content.content.text
        for update in box.updates
        if isinstance(update, s.ToolCallProgress)
        for content in update.content or ()
        if isinstance(content, s.Content) and isinstance(content.content, s.TextContent)
    ]


async def test_nothing_outside_of_the_folder_is_reached(tmp_path: Path) -> None:
    make(tmp_path, "in/a.py", "in/README.md", "out.py", "in/.git/config")
    folder = tmp_path / "in"
    (folder / "up").symlink_to(tmp_path)
    (folder / "loop").symlink_to(folder / "loop")
    (folder / "a.d").mkdir()
    refused = {
        **dict.fromkeys(("../out.py", str(tmp_path / "out.py"), "up/out.py"), "it is outside of the folder"),
        **dict.fromkeys(("loop", "missing", "a\0b"), "there is no such file"),
        ".git/config": "it lies in a folder of tools",
    }
    box = await asked(folder, "Look", *links(*refused))
    for path, reason in refused.items():
        assert f"I do not read {path.replace(chr(0), chr(0xFFFD))}: {reason}" in box.thoughts
    assert box.titles == []
    assert (await asked(folder, "Look at a.d")).titles[0] == "List the files of the project"
    assert (await asked(folder, "Look", *links("a.py"))).titles == ["Read a.py"]
    named = "see ../out.py, `./a.py`, up/out.py, nothing.py, README or . and /"
    assert (await asked(folder, named)).titles == ["Read a.py"]


async def test_what_is_no_text_is_not_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "zero").write_bytes(b"a\0b")
    monkeypatch.chdir(folder)  # an address is short
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind("socket")
        box = await asked(folder, "Look", *links("zero", "socket"))
    assert box.titles == ["Read zero", "Read socket"]
    zero, opened = contents(box)
    assert zero == "I do not read it: it is no text."
    assert opened.startswith("I do not read it: No such device")
    assert [end.status for end in box.updates if isinstance(end, s.ToolCallProgress)] == ["failed"] * 2


async def test_links(folder: Path) -> None:
    make(folder, "b.py", "a b/c.py")
    inside = (folder / "a b" / "c.py").as_uri()
    assert "a%20b" in inside
    elsewhere = ("https://example.org/a", "xy:b.py")
    missing = {"file:///a%20b/c.py": "/a b/c.py", "c:/b.py": "c:/b.py"}  # one letter is a drive of Windows
    box = await asked(folder, "Look", *links(inside, "b.py", *missing, *elsewhere))
    assert box.titles == ["Read a b/c.py", "Read b.py"]
    for path in missing.values():
        assert f"I do not read {path}: there is no such file." in box.thoughts
    for name in elsewhere:
        assert f"I cannot look at {name}: I read files only." in box.thoughts


async def test_a_client_that_shows_nothing_is_served(folder: Path) -> None:
    async with talking(ClientHandler()) as client:
        session_id = await new_session(client, folder)
        assert (await client.prompt(text_prompt(session_id, "Go"))).stop_reason == "end_turn"
