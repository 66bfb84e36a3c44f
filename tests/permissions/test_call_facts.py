"""Facts about a call, from the forms in which agents show it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from asking import permission
from msgspec.structs import replace
from scripted import Turn, scripted

from thinkwell import PermissionQuestion
from thinkwell import events as ev
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Sequence

CWD = str(Path(__file__).resolve().parent)

MOST_PATHS = 200
"""So many files of one question are looked at."""


def all_facts(
    calls: Sequence[dict[str, Any]], known: s.ToolCallStart | None = None
) -> list[PermissionQuestion]:
    """Return the questions about calls; of the first one the agent may have told before."""
    questions: list[PermissionQuestion] = []

    def note(question: Any) -> bool:
        questions.append(question)
        return True

    async def asks(turn: Turn) -> None:
        if known is not None:
            turn.update(known)
        for number, fields in enumerate(calls):
            call = s.ToolCallUpdate(tool_call_id=f"t{number}", **fields)
            await turn.client.request_permission(permission(turn.session_id, call))

    async def run() -> None:
        async with (
            scripted(asks, permissions="ask", on_question=note) as agent,
            agent.session(cwd=CWD) as session,
        ):
            await session.think().text("Go").run()

    anyio.run(run)
    return questions


def facts(known: s.ToolCallStart | None = None, **fields: Any) -> PermissionQuestion:
    (question,) = all_facts([fields], known)
    return question


def view(title: str = "Known", **fields: Any) -> s.ToolCallStart:
    return s.ToolCallStart(tool_call_id="t0", title=title, **fields)


CODEX: dict[str, Any] = {"server": "rr", "tool": "add", "arguments": {"x": 1}}


def test_claude_names_tool_and_server_in_its_own_field() -> None:
    found = facts(
        title="mcp__rr__return_result",
        name="mcp__rr__return_result",
        kind="other",
        raw_input={"answer": "4"},
        content=(),
        meta={"claudeCode": {"toolName": "mcp__rr__return_result", "mcpServer": {"name": "rr"}}},
    )
    assert (found.name, found.server) == ("return_result", "rr")
    assert (found.title, found.kind, found.input) == ("mcp__rr__return_result", "other", {"answer": "4"})
    assert (found.content, found.command, found.paths) == ((), None, ())


def test_codex_says_in_the_request_nothing_but_the_id() -> None:
    known = view(title="mcp.rr.add", kind="execute", status="in_progress", raw_input=CODEX)
    found = facts(known, kind="execute", status="pending")
    assert (found.name, found.server, found.title, found.input) == ("add", "rr", "mcp.rr.add", CODEX)


def test_gemini_and_opencode_say_it_in_the_title_only() -> None:
    text = s.Content(content=s.TextContent(text='{"answer":"4"}'))
    gemini = facts(title="return_result (rr MCP Server)", content=(text,), locations=(), kind="other")
    assert (gemini.name, gemini.server) == (None, None)
    assert gemini.content == (ev.BlockContent(content=ev.TextContent(text='{"answer":"4"}')),)
    opencode = facts(title="rr_return_result", kind="other", raw_input={}, locations=())
    assert (opencode.name, opencode.server, opencode.input) == (None, None, {})


NAMES: list[tuple[str | None, dict[str, Any] | None, tuple[str | None, str | None]]] = [
    ("Bash", None, ("Bash", None)),
    (None, {"toolName": "Bash"}, ("Bash", None)),
    ("Bash", {"toolName": "Read"}, (None, None)),
    ("mcp__a__b", None, ("b", "a")),
    ("mcp__a__b__c", None, ("mcp__a__b__c", None)),
    ("mcp__a__b__c", {"mcpServer": {"name": "a"}}, ("b__c", "a")),
    ("mcp__my_server__x", {"mcpServer": {"name": "my server"}}, ("x", "my server")),
    ("x", {"mcpServer": {"name": "web"}}, ("x", "web")),
    ("mcp____b", None, ("mcp____b", None)),
    (None, {"toolName": 3, "mcpServer": "x"}, (None, None)),
    ("b", {"mcpServer": {"name": ""}}, ("b", None)),
]


def test_names() -> None:
    calls = [{"name": name, "meta": meta and {"claudeCode": meta}} for name, meta, _ in NAMES]
    for (name, meta, expected), found in zip(NAMES, all_facts(calls), strict=True):
        assert (found.name, found.server) == expected, (name, meta)


def test_names_in_the_meta_of_any_agent() -> None:
    for key in ("toolName", "tool_name"):
        found = facts(title='{"x": 1}', meta={key: "mcp__rr__add"})
        assert (found.name, found.server) == ("add", "rr")
    assert facts(meta={"toolName": "bash", "tool_name": "read"}).name is None
    assert facts(title="Tool: rr/add", raw_input=CODEX).server == "rr"


def test_a_name_that_was_known_holds_until_another_one_comes() -> None:
    known = view(name="mcp__a__b")
    assert facts(known).name == "b"
    assert facts(known, name="Bash").name == "Bash"


def test_arguments_that_look_like_codex_are_no_server() -> None:
    calls: list[dict[str, Any]] = [
        {"title": "mcp.rr.add", "raw_input": {**CODEX, "command": "rm"}},
        {"title": "mcp.rr.other", "raw_input": CODEX},
        {"title": "fetch", "raw_input": CODEX},
        {"raw_input": CODEX},
        {"title": "mcp.rr.add"},
        {"title": "mcp.rr.add", "raw_input": [CODEX]},
    ]
    assert [found.server for found in all_facts(calls)] == [None] * len(calls)


def test_the_request_wins_over_what_was_known() -> None:
    known = view(
        title="old",
        kind="read",
        raw_input={"command": "ls"},
        content=(s.Diff(path="/a", new_text=""),),
        locations=(s.ToolCallLocation(path="/b"),),
    )
    found = facts(known)
    assert (found.title, found.kind, found.command, found.paths) == ("old", "read", "ls", ("/b", "/a"))
    found = facts(
        known,
        title="",
        kind="edit",
        raw_input={"command": "rm"},
        content=(s.Diff(path="/c", new_text=""),),
        locations=(s.ToolCallLocation(path="d", line=3),),
    )
    assert (found.title, found.kind, found.command, found.paths) == ("", "edit", "rm", (f"{CWD}/d", "/c"))
    assert facts(known, raw_input={}).command == "ls", "an empty object says nothing"
    assert facts(view(), raw_input={}).input == {}
    others: list[Any] = [False, 0, []]
    for raw in others:
        assert facts(known, raw_input=raw).command is None, "no object, but said all the same"


def test_a_call_that_has_ended_is_another_one() -> None:
    known = view(title="mcp.rr.add", name="x", kind="execute", raw_input=CODEX, status="completed")
    assert replace(facts(known), run_id=None) == replace(facts(), run_id=None)


# Commands


COMMANDS: list[tuple[Any, str | None]] = [
    ({"command": "git status", "description": "Show"}, "git status"),
    ({"cmd": "git status"}, "git status"),
    ({"command": ["bash", "-lc", "git status"]}, "bash -lc 'git status'"),
    ({"argv": ["git", "a b", "c;d"]}, "git 'a b' 'c;d'"),
    ({"command": "git", "args": ["a b", "-x"]}, "git 'a b' -x"),
    ({"command": "git status", "args": []}, "git status"),
    ({"command": "git", "cmd": "git"}, "git"),
    ({"command": "git status", "cmd": "rm x"}, "git status\nrm x"),
    ({"command": "git", "env": {"PAGER": "rm x"}}, "PAGER='rm x'\ngit"),
    ({"command": "git", "env": [{"name": "A", "value": 1}, 3]}, "A=1\ngit"),
    ({"command": "git", "env": {}}, "git"),
    ({"command": ""}, ""),
    ({"command": []}, None),
    ({"command": 3}, None),
    ({"text": "rm"}, None),
    ({"command": "view", "path": "x"}, None),
    ({"command": "create", "path": None}, "create"),
    ("rm x", None),
    (None, None),
]


def test_commands() -> None:
    calls = [{"kind": "execute", "raw_input": raw, "title": "rm x"} for raw, _ in COMMANDS]
    for (raw, command), found in zip(COMMANDS, all_facts(calls), strict=True):
        assert found.command == command, raw


def test_a_list_is_read_back_as_it_was() -> None:
    words = ["git", "it's", 'a "b"', "$X", "a\nb", "", "\\"]
    command = facts(raw_input={"command": words}).command
    assert command is not None
    assert shlex.split(command) == words


def test_an_mcp_server_runs_no_command_of_ours() -> None:
    assert facts(name="mcp__a__b", raw_input={"command": "git status"}).command is None


# Paths


PATHS: list[tuple[Any, list[str] | None]] = [
    ({"file_path": "/a/b", "old_string": "/x", "new_string": "/y", "content": "/z"}, ["/a/b"]),
    ({"filePath": "a/../b"}, [f"{CWD}/a/../b"]),
    ({"absolute_path": "/a"}, ["/a"]),
    ({"notebook_path": "x"}, [f"{CWD}/x"]),
    ({"paths": ["a", "b", {"name": "c"}]}, [f"{CWD}/b", f"{CWD}/a"]),
    ({"edits": [{"path": "a"}, {"oldPath": "b"}]}, [f"{CWD}/b", f"{CWD}/a"]),
    ({"path": "a", "edits": {"/etc/passwd": 0, "b": False}}, ["/etc/passwd", f"{CWD}/a"]),
    ({"changes": {"/a": {"type": "add"}, "b": {"move_path": "c"}}}, None),
    ({"source": "a", "destination": "b"}, [f"{CWD}/b", f"{CWD}/a"]),
    ({"pattern": "**/*.py"}, []),
    ({"pattern": "/etc/*"}, ["/etc/*"]),
    ({"pattern": "a/../../x"}, [f"{CWD}/a/../../x"]),
    ({"whatever": "/etc/passwd"}, ["/etc/passwd"]),
    ({"whatever": "C:\\x"}, [f"{CWD}/C:\\x"]),
    ({"url": "https://example.com/path"}, []),
    ({"uri": "https://example.com/path"}, []),
    ({"uri": "file:///a%20b"}, ["/a b"]),
    ({"uri": "FILE://localhost/a"}, ["/a"]),
    ({"path": "a\nb"}, [f"{CWD}/a\nb"]),
    ({"path": "x" * 5000}, [f"{CWD}/{'x' * 5000}"]),
    ({"path": "https://example.com"}, []),
    ({"path": "x://../../etc/passwd"}, [f"{CWD}/x:/../../etc/passwd"]),
    ({"uri": "file:///a/../b"}, ["/a/../b"]),
    ({"path": ""}, []),
    ({"path": 3}, []),
    ({"command": "/bin/ls"}, []),
    ({"patchText": "*** Begin Patch\n*** Update File: a b\n*** Move to: /c\n+x"}, [f"{CWD}/a b", "/c"]),
    ({"diff": "--- a/x\n+++ b/y\n"}, [f"{CWD}/x", f"{CWD}/y"]),
    ({"diff": "--- /dev/null\n+++ b/y\t2026\n"}, [f"{CWD}/y"]),
    ({"path": "x", "cwd": "/etc"}, None),
    ({"path": "x", "workingDir": "/etc", "cwd": "/etc"}, None),
    (["/a"], ["/a"]),
    ("/a", ["/a"]),
]


def test_paths() -> None:
    for (raw, paths), question in zip(
        PATHS, all_facts([{"raw_input": raw} for raw, _ in PATHS]), strict=True
    ):
        found = question.paths
        if paths is not None:
            assert list(found) == paths, raw
        elif "cwd" in raw:
            assert set(found) >= {f"{CWD}/x", "/etc/x", "/etc"}
        else:
            assert set(found) == {"/a", f"{CWD}/b", f"{CWD}/c"}


def test_home_folders() -> None:
    home = str(Path.home())
    assert facts(raw_input={"path": "~/x", "glob": "~/y"}).paths == (f"{home}/y", f"{home}/x")
    assert facts(raw_input={"path": "~nobody-of-that-name/x"}).paths == (f"{CWD}/~nobody-of-that-name/x",)


def test_there_is_an_end_to_looking() -> None:
    paths = facts(raw_input={"paths": [f"/{number}" for number in range(MOST_PATHS + 1)]}).paths
    assert len(paths) == MOST_PATHS + 1
    assert paths[-1] == "/"
    deep: Any = "/a"
    for _ in range(500):
        deep = [deep]
    assert facts(raw_input=deep).paths == ("/a",)
