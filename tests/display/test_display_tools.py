"""Tool calls in a few words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from thinkwell import ToolView
from thinkwell import events as ev
from thinkwell._display.paths import relative
from thinkwell._display.tools import OUTPUT, describe, exit_code, fold, folds, output_of, tool_name

if TYPE_CHECKING:
    from thinkwell.events import JsonValue

CWD = "/home/ada/shop"


def tool(kind: ev.ToolKind = "other", title: str = "", **more: Any) -> ToolView:
    return ToolView(id="t", kind=kind, title=title, **more)


def said(kind: ev.ToolKind, title: str = "", **more: Any) -> str:
    call = describe(tool(kind, title, **more), CWD)
    return f"{call.verb} {call.target}".rstrip()


def at(*paths: str, line: int | None = None) -> tuple[ev.Location, ...]:
    return tuple(ev.Location(path=path, line=line) for path in paths)


@pytest.mark.parametrize(
    ("kind", "title", "more", "words"),
    [
        ("read", "Read x", {"locations": at(f"{CWD}/a.py")}, "read a.py"),
        ("read", "Read x", {"locations": at(f"{CWD}/a.py", line=7)}, "read a.py:7"),
        ("read", "Read x", {"locations": at(f"{CWD}/a.py", line=1)}, "read a.py"),
        ("read", "", {"locations": at(*(f"{CWD}/{n}" for n in "aabcdef"))}, "read a, b (+4)"),
        ("read", "Read x", {"input": {"file_path": f"{CWD}/b.py"}}, "read b.py"),
        ("read", "", {"input": {"paths": ["/etc/passwd", "x"]}}, "read /etc/passwd"),
        ("read", "Read something", {}, "read something"),
        ("read", "Reading", {}, "read Reading"),
        ("edit", "", {"content": (ev.DiffContent(path=f"{CWD}/c.py", new_text=""),)}, "edit c.py"),
        ("delete", "", {"locations": at(f"{CWD}-other/x")}, "delete /home/ada/shop-other/x"),
        ("move", "", {"input": {"source": f"{CWD}/a", "destination": f"{CWD}/b"}}, "move a → b"),
        ("move", "", {"locations": at(f"{CWD}/a")}, "move a"),
        ("search", "", {"input": {"pattern": "x y", "path": f"{CWD}/src"}}, 'search "x y" in src'),
        ("search", "", {"input": {"query": "x", "path": CWD}}, 'search "x"'),
        ("search", "Search for it", {"input": {"n": 1}}, "search for it"),
        ("execute", "Run it", {"input": {"command": ["ls", "-l", "a b"]}}, "run ls -l 'a b'"),
        ("execute", "`ls -l`", {}, "run ls -l"),
        ("execute", "`ls` and `pwd`", {}, "run `ls` and `pwd`"),
        ("execute", "", {"input": {"command": "a\n\x1b[2J\tb"}}, "run a b"),
        ("fetch", "Fetch", {"input": {"url": "https://x.example"}}, "fetch https://x.example"),
        ("fetch", "", {"input": {"urls": [["deep"]]}}, "fetch"),
        ("think", "Look", {"name": "Task"}, "Task Look"),
        ("think", "Think hard", {}, "think hard"),
        ("switch_mode", "Plan mode", {}, "mode Plan mode"),
        ("other", "Do", {"name": "mcp__git__create_issue"}, "create_issue Do"),
        ("other", "create", {"name": "create"}, "create"),
        ("other", "mcp__a__b", {"name": "mcp__a__b"}, "b"),
        ("other", "Do", {"input": "text"}, "tool Do"),
        ("other", "", {}, "tool"),
    ],
)
def test_what_was_done_to_what(kind: ev.ToolKind, title: str, more: dict[str, Any], words: str) -> None:
    assert said(kind, title, **more) == words


@pytest.mark.parametrize(
    ("kind", "title", "doing"),
    [
        ("execute", "`pytest -q`", "running pytest -q"),
        ("think", "", "thinking"),
        ("think", "it over", "thinking about it over"),
        ("search", "", "searching"),
        ("switch_mode", "", "switching the mode"),
    ],
)
def test_what_is_being_done(kind: ev.ToolKind, title: str, doing: str) -> None:
    assert describe(tool(kind, title), CWD).doing == doing


def test_doing_something_with_a_tool_of_its_own_name() -> None:
    assert describe(tool("other", "x", name="deploy"), CWD).doing == "using deploy: x"


@pytest.mark.parametrize(
    ("status", "shown", "icon"),
    [
        ("pending", "pending", "·"),
        ("in_progress", "running", "▸"),
        ("completed", "done", "✔"),
        ("failed", "failed", "✘"),
        ("cancelled", "cancelled", "⊘"),
    ],
)
def test_how_far_it_is(status: Any, shown: str, icon: str) -> None:
    call = describe(tool(status=status, started_at=2, ended_at=5.5), CWD)
    assert (call.status, call.icon, call.seconds) == (shown, icon, 3.5)
    assert describe(tool(status=status, started_at=2), CWD).seconds is None
    assert describe(tool(status=status, started_at=2, ended_at=1), CWD).seconds == 0


@pytest.mark.parametrize(
    ("old", "new", "detail"),
    [("a\n", "b\nc\n", "+2 −1"), (None, "a\n", "+1"), ("a\n", "", "−1"), ("a\n", "a\n", "±0")],
)
def test_what_came_of_an_edit(old: str | None, new: str, detail: str) -> None:
    content = (ev.DiffContent(path="x", old_text=old, new_text=new),)
    assert describe(tool("edit", content=content), CWD).detail == detail


@pytest.mark.parametrize(
    ("output", "code", "detail"),
    [
        ({"exit_code": 1}, 1, "exit 1"),
        ({"exitCode": 0}, 0, ""),
        ({"exit_code": True}, None, ""),
        ({"exit_code": 10**100}, None, ""),
        ("text", None, ""),
        ({}, None, ""),
    ],
)
def test_exit_codes(output: JsonValue, code: int | None, detail: str) -> None:
    assert exit_code(tool("execute", output=output)) == code
    assert describe(tool("execute", output=output), CWD).detail == detail


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        (f"{CWD}/a/b", "a/b"),
        (CWD, "."),
        (f"{CWD}/", "."),
        (f"{CWD}/../x", "../x"),
        (f"file://{CWD}/a%20b", "a b"),
        ("/other", "/other"),
        ("rel", "rel"),
    ],
)
def test_paths(path: str, shown: str) -> None:
    assert relative(path, CWD) == relative(path, f"{CWD}/") == shown


def test_paths_of_windows() -> None:
    assert relative(r"C:\shop\a.py", r"C:\shop") == "a.py"
    assert relative("/etc", "") == relative("/etc", "/") == "/etc"


def test_names() -> None:
    assert tool_name(tool(name="x" * 50)) == "x" * 31 + "…"
    assert tool_name(tool(name="mcp____x")) == "mcp____x"
    assert tool_name(tool()) == ""


def look(kind: ev.ToolKind, target: str, begin: float, end: float | None = None) -> ToolView:
    given: dict[str, Any] = {"input": {"pattern": target}} if kind == "search" else {"locations": at(target)}
    return tool(kind, status="completed", started_at=begin, ended_at=end, **given)


def test_folding() -> None:
    reads = [look("read", name, n, n + 0.5) for n, name in enumerate("abcdb")]
    call = fold([*reads, look("search", "x", 5, 7.5), look("search", "y", 5, 6)], CWD)
    assert (call.verb, call.target, call.seconds) == ("read", "a, b (+2, 2 searches)", 7.5)
    assert fold(reads[:2], CWD).target == "a, b"
    assert fold(reads[:1], CWD) == describe(reads[0], CWD)
    searches = fold([look("search", name, 0) for name in "xyz"], CWD)
    assert (searches.verb, searches.target, searches.seconds) == ("search", '"x", "y" (+1)', None)


def test_what_folds() -> None:
    assert folds(tool("read", status="completed"))
    assert folds(tool("search", status="completed"))
    assert not folds(tool("read", status="failed"))
    assert not folds(tool("edit", status="completed"))


def text(*blocks: ev.ContentBlock) -> tuple[ev.ToolContent, ...]:
    return tuple(ev.BlockContent(content=block) for block in blocks)


IMAGE = ev.ImageContent(data="", mime_type="image/png")
LINK = ev.ResourceLink(uri="file:///x", name="x")


@pytest.mark.parametrize(
    ("content", "output", "shown"),
    [
        (text(ev.TextContent(text="a\x1b[2J\n"), ev.TextContent(text="b\n\n")), "raw", "a\n\nb"),
        (text(ev.TextContent(text="```console\n  $ ls\na ` b\n```\n")), None, "  $ ls\na ` b"),
        (text(ev.TextContent(text="```\na\n```\nmore\n```\nb\n```")), None, "a\n```\nmore\n```\nb"),
        (text(ev.TextContent(text="1%\r50%\r100%\r\ndone\r\n")), None, "100%\ndone"),
        (text(IMAGE, LINK), None, "[image/png]\n[file:///x]"),
        (text(ev.EmbeddedResource(uri="u", text="inside")), None, "inside"),
        (text(ev.EmbeddedResource(uri="u", blob="")), None, "[data: u]"),
        ((ev.TerminalContent(terminal_id="t"),), "raw", "raw"),
        ((), None, ""),
        ((), {"stdout": "out", "stderr": "err"}, "out\nerr"),
        ((), {"stdout": "", "stderr": "err"}, "err"),
        ((), {"stdout": "out", "stderr": ""}, "out"),
        ((), {"output": "one", "text": "two", "result": "three"}, "one\ntwo"),
        ((), {"rows": [1, "é"]}, '{"rows": [1, "é"]}'),
        ((), [1], "[1]"),
    ],
)
def test_output(content: tuple[ev.ToolContent, ...], output: JsonValue, shown: str) -> None:
    assert output_of(tool(content=content, output=output)) == shown


def test_output_is_bounded_and_ends_with_its_end() -> None:
    shown = output_of(tool(output="".join(f"line {n}\n" for n in range(100_000))))
    assert len(shown) <= OUTPUT + 1
    assert shown.startswith("…\nline ")
    assert shown.endswith("line 99999")
    assert output_of(tool(output="x" * 100), limit=10) == "…" + "x" * 10
    assert output_of(tool(output="```\n" + "x" * 2_000_000 + "\n```"), limit=5) == "…xxxxx"


def test_output_that_is_nested_too_deep() -> None:
    deep: JsonValue = []
    for _ in range(100_000):
        deep = [deep]
    assert output_of(tool(output=deep)) == "…"
    while deep:
        deep = deep.pop()
