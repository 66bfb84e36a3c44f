"""Facts about texts, and which files they are read from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from thinkwell.builtin import _files
from thinkwell.builtin._facts import examine, looks_like_python
from thinkwell.builtin._files import Folder, UnreadError, path_of_uri
from thinkwell.builtin._findings import Findings
from thinkwell.builtin._subjects import issues_of, quality_of
from thinkwell.builtin._turn import told
from thinkwell.builtin._words import first_line, listed, number

if TYPE_CHECKING:
    from pathlib import Path

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


def test_facts_of_a_program() -> None:
    facts = examine("a/b.py", PROGRAM)
    assert (facts.language, facts.lines, facts.title) == ("Python", PROGRAM.count("\n"), "Does things.")
    assert [(function.name, function.public, function.documented) for function in facts.functions] == [
        ("twice", True, True),
        ("inner", False, False),
        ("open", False, False),
        ("go", True, False),
    ]
    assert facts.classes == ("_Hidden", "Shown")
    assert facts.imports == ("os", "typing")
    assert [(mark.line, mark.word, mark.text) for mark in facts.marks] == [(24, "FIXME", "mind the gap")]
    assert facts.broken is None


def test_facts_of_texts() -> None:
    markdown = examine("x.md", "# One #\n\n```\n# no heading\n```\n## Two\n")
    assert (markdown.headings, markdown.title) == (("One", "Two"), "One")
    assert examine("x.toml", "[a]\n[[b.c]] # d\nx = [1]\n").headings == ("a", "b.c")
    assert examine("x.unknown", "no end").lines == 1
    assert examine("x.txt", "").lines == 0


@pytest.mark.parametrize(
    "text", ["def f(:\n", "x = 1\0", "(" * 1000, "-" * 100_000 + "1", "x" + ".a" * 2000 + "\n@"]
)
def test_a_program_that_does_not_parse_is_said_to(text: str) -> None:
    facts = examine("x.py", text)
    assert facts.broken
    assert not looks_like_python(text)
    assert quality_of([facts]) == 0.5
    assert issues_of(facts)[0].severity == "high"
    assert any(sentence.startswith("It does not parse") for sentence in told(facts))


def test_a_program_that_nests_deeply_costs_nothing_but_its_facts() -> None:
    facts = examine("x.py", "x" + ".a" * 2000)
    assert facts.broken is None or "recursion" in facts.broken


def test_prose_does_not_look_like_a_program() -> None:
    assert not looks_like_python("hello")
    assert looks_like_python("import os")


def test_long_functions_are_issues() -> None:
    facts = examine("x.py", "def f():\n" + "    pass\n" * 60)
    assert [(issue.severity, issue.advice) for issue in issues_of(facts)] == [
        ("medium", "Split f in x.py."),
        ("low", "Document f in x.py."),
    ]


def test_public_functions_of_tests_need_no_docstring() -> None:
    assert issues_of(examine("test_x.py", "def test_it():\n    pass\n")) == ()


def test_findings_of_nothing() -> None:
    nothing = Findings("empty", ())
    assert nothing.project.text == "There is nothing to read in empty."
    assert nothing.project.language == "none"
    assert nothing.all("project", nothing.project) == (nothing.project,)


def test_findings_of_one_file_are_named_after_it() -> None:
    findings = Findings("p", (examine("x.py", "def f():\n    '''F.'''\n"),))
    assert findings.project.name == "x.py"
    assert findings.project.advice == "Begin with f in x.py: it is the longest function."


def test_words() -> None:
    assert number(1, "class") == "1 class"
    assert number(2, "class") == "2 classes"
    assert number(1, "todo") == "1 TODO"
    assert listed(["a"]) == "a"
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert first_line("a\n  b") == "a b"
    assert len(first_line("x" * 500)) == 200


def make(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{name}\n")


def test_what_describes_the_project_comes_first_and_other_peoples_things_never(tmp_path: Path) -> None:
    make(
        tmp_path,
        "README.md",
        "pyproject.toml",
        "src/a.py",
        "test_a.py",
        "docs/README.md",
        "data.json",
        "app.lock",
    )
    make(tmp_path, ".git/config.py", ".venv/b.py", "node_modules/c.js", "__pycache__/d.py")
    (tmp_path / "src" / "big.py").write_text("x = 1\n" * 50)
    (tmp_path / "linked.py").symlink_to(tmp_path / "src" / "a.py")
    folder = Folder(str(tmp_path))
    assert [folder.shown(path) for path in folder.files_in(folder.root)] == [
        "README.md",
        "pyproject.toml",
        "src/big.py",
        "src/a.py",
        "docs/README.md",
        "test_a.py",
        "data.json",
    ]
    assert folder.files_in(folder.root / "missing") == []


def test_a_search_is_bounded(tmp_path: Path) -> None:
    make(tmp_path, *(f"f{index}.py" for index in range(_files.MAX_FILES + 2)))
    folder = Folder(str(tmp_path))
    assert len(folder.files_in(folder.root)) == _files.MAX_FILES
    crowd = tmp_path / "crowd"
    crowd.mkdir()
    for index in range(_files.MAX_SEEN):
        (crowd / f"{index:05}.x").touch()
    make(tmp_path, "crowd/z.py")
    assert folder.files_in(crowd) == []


def test_a_long_file_is_read_in_part(tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("0123456789\n" * 30_000)
    folder = Folder(str(tmp_path))
    source = folder.read(folder.inside("long.txt"))
    assert source.cut
    assert source.facts.size <= _files.MAX_BYTES


def test_nothing_outside_of_the_folder_is_reached(tmp_path: Path) -> None:
    make(tmp_path, "in/a.py", "out.py", "in/.git/config")
    (tmp_path / "in" / "up").symlink_to(tmp_path)
    (tmp_path / "in" / "loop").symlink_to(tmp_path / "in" / "loop")
    folder = Folder(str(tmp_path / "in"))
    for path in (
        "../out.py",
        str(tmp_path / "out.py"),
        "up/out.py",
        "loop",
        "missing",
        "a\0b",
        ".git/config",
    ):
        with pytest.raises(UnreadError):
            folder.inside(path)
    (tmp_path / "in" / "a.d").mkdir()
    assert folder.named_in("a.d") == []
    assert folder.inside("a.py") == tmp_path / "in" / "a.py"
    assert folder.named_in("see ../out.py, `a.py`, up/out.py or . and /") == [tmp_path / "in" / "a.py"]


def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "zero").write_bytes(b"a\0b")
    folder = Folder(str(tmp_path))
    with pytest.raises(UnreadError, match="no text"):
        folder.read(tmp_path / "zero")
    with pytest.raises(UnreadError, match="directory"):
        folder.read(tmp_path)


def test_uris() -> None:
    assert path_of_uri("file:///a%20b/c.py") == "/a b/c.py"
    assert path_of_uri("a/b.py") == "a/b.py"
    assert path_of_uri("https://example.org/a") is None
