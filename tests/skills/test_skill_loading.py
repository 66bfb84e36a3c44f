"""What a SKILL.md may look like, and what is said of one that cannot be used."""

from __future__ import annotations

import os
import pickle
from typing import TYPE_CHECKING

import pytest
from skills.folders import FRONT, write_skill

from thinkwell.errors import SkillError, ThinkwellError
from thinkwell.skills import Skill, load_skill
from thinkwell.tools import tool

if TYPE_CHECKING:
    from pathlib import Path


def described(folder: Path, value: str) -> str:
    """Load a skill with this value as its description."""
    front = f"---\nname: notes\ndescription: {value}\n---\n"
    return load_skill(write_skill(folder, front)).description


def refused(folder: Path, front: str) -> str:
    """Load a skill that cannot be used, and return why."""
    with pytest.raises(SkillError) as caught:
        load_skill(write_skill(folder, front))
    assert caught.value.skill == str(folder.resolve() / "SKILL.md")
    return caught.value.reason


def test_a_folder_and_its_file_are_the_same_skill(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / "anything")
    for given in (folder, folder / "SKILL.md", str(folder), os.path.relpath(folder)):
        skill = load_skill(given)
        assert (skill.name, skill.description, skill.body) == ("notes", "Writes release notes.", "Be brief.")
        assert skill.folder == folder.resolve()
        assert repr(skill) == f"<Skill 'notes' from {folder.resolve()}>"


def test_the_file_may_have_a_small_name_and_the_folder_be_a_link(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / "one")
    (folder / "SKILL.md").rename(folder / "skill.md")
    (tmp_path / "link").symlink_to(folder)
    assert load_skill(tmp_path / "link").folder == folder.resolve()
    assert load_skill(tmp_path / "link" / "skill.md").name == "notes"


def test_everything_that_the_format_knows(tmp_path: Path) -> None:
    front = """---
# of the usual kind
name: 'notes'   # quoted
description: >-
  Writes release notes.

  Use it for   changelogs
license: "MIT"
compatibility: Needs git, say: 2.40
allowed-tools: Bash(git log:*), Read
metadata:
  author: me   # alone
  version: "1.0"
  nested:
    a: b
  listed: [1]
  none:
unknown: {"a": [1,
  2]
}
other:
- x: 1
  y: [2
- |
  text
---
"""
    skill = load_skill(write_skill(tmp_path / "notes", front, "\n\n# Title\n\n---\n\nText\n\n"))
    assert skill.name == "notes"
    assert skill.description == "Writes release notes.\nUse it for   changelogs"
    assert skill.license == "MIT"
    assert skill.compatibility == "Needs git, say: 2.40"
    assert skill.allowed_tools == ("Bash(git log:*)", "Read")
    assert skill.metadata == {"author": "me", "version": "1.0", "none": ""}
    assert skill.body == "# Title\n\n---\n\nText"
    assert skill.tools == ()


TOOLS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Read Grep", ("Read", "Grep")),
    ("", ()),
    ("\n  - Read\n  # or so\n  - 'Bash(git add:*)'  # quoted", ("Read", "Bash(git add:*)")),
    ("\n- Read\n- Grep", ("Read", "Grep")),
    ("[]", ()),
    ("[ Read, 'a, b', \"c\\n\" ]  # in a line", ("Read", "a, b", "c\n")),
    ("[Read,]", ("Read",)),
)


def test_allowed_tools(tmp_path: Path) -> None:
    for value, tools in TOOLS:
        front = FRONT.replace("---\n", f"---\nallowed-tools: {value}\n", 1)
        assert load_skill(write_skill(tmp_path, front)).allowed_tools == tools, value


def test_metadata_without_texts(tmp_path: Path) -> None:
    for value in ("", "text", "{a: b}", "\n  # nothing"):
        front = FRONT.replace("---\n", f"---\nmetadata: {value}\n", 1)
        assert load_skill(write_skill(tmp_path, front)).metadata == {}, value


TEXTS: tuple[tuple[str, str], ...] = (
    ("plain # comment", "plain"),
    ("a#b", "a#b"),
    ("Use it when: always", "Use it when: always"),
    ("12.0", "12.0"),
    ("over\n  two lines\n\n  # not this\n  and a third", "over two lines\nand a third"),
    ("\n  on the next line", "on the next line"),
    ("\n  'quoted there'", "quoted there"),
    ("'it''s'", "it's"),
    ("'over\n  two'", "over two"),
    ('"a\\tb\\x41\\u00e9\\U0001F600\\\\ \\"x\\""', 'a\tbA\u00e9\U0001f600\\ "x"'),
    ('"c"  # comment', "c"),
    ("|\n  a\n   b\n\n  c\n", "a\n b\n\nc"),
    ("|+  # keep\n  a\n\n", "a"),
    (">\n\n  a\n  b\n\n  c\n    d\n  e\n", "a b\nc\n  d\ne"),
    ("|2-\n   a\n  b", "a\nb"),
    (">+1\n  a", "a"),
    ("-x", "-x"),
    ("|\n  # a heading\n# no comment is part of it\n  b", "# a heading\n\nb"),
)


def test_texts(tmp_path: Path) -> None:
    for value, expected in TEXTS:
        assert described(tmp_path, value) == expected, value


def test_line_ends_and_a_byte_order_mark_of_windows(tmp_path: Path) -> None:
    folder = write_skill(tmp_path)
    path = folder / "SKILL.md"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    skill = load_skill(folder)
    assert (skill.description, skill.body) == ("Writes release notes.", "Be brief.")


UNREADABLE: tuple[tuple[str, str], ...] = (
    ("name: notes\n---\n", "line 1: the file has to begin with a line ---"),
    ("---\nname: notes\n", "line 1: the front matter has no end"),
    ("---\n---\n", "line 1: it has no name; add `name: …`"),
    ("---\nname: notes\n---\n", "line 1: it has no description"),
    ("---\nname: notes\ndescription: ''\n---\n", "line 3: it has no description"),
    ("---\nname: notes\ndescription: null\n---\n", "line 3: it has no description"),
    ("---\nname: Notes\ndescription: x\n---\n", "line 2: 'Notes' is not a valid name; use up to 64"),
    ("---\nname: notes\nnonsense\n---\n", "line 3: 'nonsense' is not `key: value`"),
    ("---\n  name: notes\n---\n", "line 2: 'name: notes' is not `key: value`"),
    ("---\n\tname: notes\n---\n", "line 2: it begins with a tab"),
    ("---\nname: a\n# x\nname: b\n---\n", "line 4: 'name' was given before, in line 2"),
    (
        "---\nname: a\ndescription: [a]\n---\n",
        "line 3: '[a]' is not plain text; put it between quotation",
    ),
    ("---\nname: a\ndescription:\n  - a\n---\n", "line 4: '- a' is not plain text"),
    ('---\nname: a\ndescription: "a\n---\n', "line 3: the quotation marks of '\"a' do not match"),
    ("---\nname: a\ndescription: 'a' b\n---\n", "line 3: the quotation marks"),
    ('---\nname: a\ndescription: "\\q"\n---\n', "line 3: \\q is not known between double quotes"),
    ('---\nname: a\ndescription: "\\ud800"\n---\n', "line 3: \\ud800 is not known"),
    ('---\nname: a\ndescription: "\\UFFFFFFFF"\n---\n', "line 3: \\UFFFFFFFF is not known"),
    ('---\nname: a\ndescription: "a\\\n  b"\n---\n', "line 3: a \\ at the end of a line"),
    ("---\nname: a\ndescription: |x\n---\n", "line 3: '|x' does not begin a block"),
    (
        "---\nname: a\ndescription: |\n    a\n  b\n---\n",
        "line 5: it is indented less than the first line",
    ),
    (FRONT.replace("---\n", "---\nallowed-tools: [a\n", 1), "line 2: '[a' is not a list of texts"),
    (FRONT.replace("---\n", "---\nallowed-tools: [a, {b}]\n", 1), "line 2: '[a, {b}]' is not a list"),
    (FRONT.replace("---\n", "---\nallowed-tools: [b, 'a]\n", 1), 'line 2: "[b, \'a]" is no'),
    (
        FRONT.replace("---\n", "---\nallowed-tools:\n- a\n  b\n", 1),
        "line 4: 'b' is not an item of a list",
    ),
    (f"---\nname: a\ndescription: {'x' * 1025}\n---\n", "line 3: its description has 1,025 characters"),
)


def test_what_cannot_be_read_says_where(tmp_path: Path) -> None:
    for front, reason in UNREADABLE:
        assert refused(tmp_path, front).startswith(reason), front


def test_names(tmp_path: Path) -> None:
    for name in ("a", "7z", "pdf-forms", "größe", "a" * 64):
        assert Skill(name, "Does it.").name == name
    for name in ("A", "a b", "-a", "a-", "a--b", "a_b", "a" * 65, "../a", "a/b", "a.b"):
        with pytest.raises(SkillError, match="is not a valid name"):
            Skill(name, "Does it.")
        assert "is not a valid name" in refused(tmp_path, f"---\nname: {name}\ndescription: x\n---\n")


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (write_skill(tmp_path) / "SKILL.md").write_bytes(b"---\nname: a\ndescription: caf\xe9\n---\n")
    with pytest.raises(SkillError, match=r"line 3: byte 28 is not UTF-8; save it as UTF-8"):
        load_skill(tmp_path)


def test_what_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "README.md").write_text("# No\n")
    (tmp_path / "folder" / "SKILL.md").mkdir(parents=True)
    for given, reason in (
        ("empty", "there is no SKILL.md in this folder"),
        ("nothing", "there is no such folder or file"),
        ("README.md", "give the folder of the skill, or the SKILL.md in it"),
        ("folder", "'SKILL.md' is a folder"),
        ("folder/SKILL.md", "there is no SKILL.md in this folder"),
    ):
        with pytest.raises(SkillError) as caught:
            load_skill(tmp_path / given)
        assert reason in caught.value.reason


def test_a_skill_md_that_leads_elsewhere_or_is_huge(tmp_path: Path) -> None:
    elsewhere = write_skill(tmp_path / "one") / "SKILL.md"
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "SKILL.md").symlink_to(elsewhere)
    for given in (tmp_path / "two", tmp_path / "two" / "SKILL.md"):
        with pytest.raises(SkillError, match="links are not followed"):
            load_skill(given)
    with elsewhere.open("ab") as file:
        file.truncate(2_000_000)
    with pytest.raises(SkillError, match=r"'SKILL\.md' is too large: 2,000,000 bytes"):
        load_skill(tmp_path / "one")


def test_a_path_that_cannot_be_looked_at(tmp_path: Path) -> None:
    with pytest.raises(SkillError, match="File name too long"):
        load_skill(tmp_path / ("x" * 5000))


def test_a_skill_error_says_what_it_knows() -> None:
    error = SkillError("notes", "it is gone")
    assert isinstance(error, ThinkwellError)
    assert str(error) == "Skill 'notes' cannot be used: it is gone"
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.skill, copy.reason) == ("notes", "it is gone")


# Skills without a folder


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def test_a_skill_of_texts_and_functions() -> None:
    skill = Skill("sums", " Adds. ", "Call add.", tools=[add], files={"a/b.txt": "x", "c.bin": b"\0"})
    assert (skill.name, skill.description, skill.body) == ("sums", "Adds.", "Call add.")
    assert [tool.name for tool in skill.tools] == ["add"]
    assert skill.folder is None
    assert repr(skill) == "<Skill 'sums' without a folder>"
    with pytest.raises(AttributeError):
        skill.name = "other"  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]


def test_a_folder_can_have_functions_too(tmp_path: Path) -> None:
    assert [tool.name for tool in load_skill(write_skill(tmp_path), tools=[add]).tools] == ["add"]


def test_what_no_skill_can_be_made_of() -> None:
    with pytest.raises(SkillError, match="it has no description"):
        Skill("sums", " ")
    with pytest.raises(TypeError, match=r"Skill\('sums', body=…\): give a str, not bytes"):
        Skill("sums", "Adds.", b"x")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="lone surrogate"):
        Skill("sums", "\ud800")
    with pytest.raises(TypeError, match="a path is a str, not int"):
        Skill("sums", "Adds.", files={1: "x"})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match=r"files=\{'a': …\}\): give a str, not int"):
        Skill("sums", "Adds.", files={"a": 1})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]
    with pytest.raises(SkillError, match=r"files=: '\\udcff' is not a path of a file"):
        Skill("sums", "Adds.", files={"\udcff": "x"})
    with pytest.raises(SkillError, match=r"files=: '\.\./a' points out of the skill"):
        Skill("sums", "Adds.", files={"../a": "x"})
    with pytest.raises(
        ValueError, match=r"skill 'sums': tool add\(\) .* and tool .*<lambda>.* are both called"
    ):
        Skill("sums", "Adds.", tools=[add, tool(lambda: 1, name="add")])
