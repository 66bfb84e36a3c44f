"""Policies: which rule decides, and what each criterion goes by."""

from __future__ import annotations

import os
import pickle
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from thinkwell import PermissionQuestion
from thinkwell.permissions import PermissionPolicy, Rule, RuleVerdict

CWD = "/code/project"

MOST_PATHS = 200
"""So many files of one question are looked at."""


def asks(kind: Any = "other", title: str = "", **facts: Any) -> PermissionQuestion:
    return PermissionQuestion(id="q1", title=title, agent="a", options=(), kind=kind, **facts)


def shell(command: str | None, **facts: Any) -> PermissionQuestion:
    known: dict[str, Any] = {"kind": "execute", "title": command or "", "command": command}
    return asks(**{**known, **facts})


def edit(*paths: str, **facts: Any) -> PermissionQuestion:
    known: dict[str, Any] = {"kind": "edit", "paths": paths}
    return asks(**{**known, **facts})


def fits(rule: Rule, question: PermissionQuestion, cwd: str = CWD) -> bool:
    return PermissionPolicy(rules=(rule,)).decide(question, cwd=cwd).verdict == "allow"


def hits(rule: Rule, question: PermissionQuestion, cwd: str = CWD) -> bool:
    policy = PermissionPolicy(rules=(rule,), otherwise="allow")
    return policy.decide(question, cwd=cwd).verdict == "deny"


# The order


GIT = Rule("allow", command="git *")
PUSH = Rule("ask", command="git push *", why="it leaves the machine")
FORCE = Rule("deny", command="git push * --force *", why="it rewrites history")


@pytest.mark.parametrize("rules", [(GIT, PUSH, FORCE), (FORCE, PUSH, GIT), (PUSH, GIT, FORCE)])
def test_deny_comes_before_ask_and_ask_before_allow_wherever_they_stand(rules: tuple[Rule, ...]) -> None:
    policy = PermissionPolicy(rules=rules, otherwise="allow")
    for command, rule, verdict in [
        ("git status", GIT, "allow"),
        ("git push", PUSH, "ask"),
        ("git push origin --force", FORCE, "deny"),
    ]:
        decision = policy.decide(shell(command), cwd=CWD)
        assert (decision.verdict, decision.rule) == (verdict, rules.index(rule))
        assert decision.why == f"rules[{rules.index(rule)}]: {rule}"
    assert policy.decide(shell("ls"), cwd=CWD).verdict == "allow"


def test_why_names_the_rule_and_its_reason() -> None:
    policy = PermissionPolicy(rules=(Rule("deny", kind=("edit", "delete"), path="a/*", why="mine"),))
    decision = policy.decide(edit("a/b"), cwd=CWD)
    assert decision.why == "rules[0]: deny kind edit or delete, path a/*: mine"
    decision = policy.decide(edit("b"), cwd=CWD)
    assert (decision.why, decision.rule) == ("no rule matches; otherwise: deny", None)


@pytest.mark.parametrize(("otherwise", "verdict"), [("deny", "deny"), ("ask", "ask"), ("allow", "ask")])
def test_an_ask_rule_that_may_be_meant_only_narrows(otherwise: RuleVerdict, verdict: str) -> None:
    policy = PermissionPolicy(rules=(PUSH,), otherwise=otherwise)
    assert policy.decide(shell("ls; git push"), cwd=CWD).verdict == "ask" if otherwise != "deny" else "deny"
    assert policy.decide(shell("sudo git push"), cwd=CWD).verdict == verdict
    assert policy.decide(shell("git push"), cwd=CWD).verdict == "ask"


def test_an_ask_rule_takes_back_what_another_allows() -> None:
    policy = PermissionPolicy(rules=(Rule("allow", kind="read"), Rule("ask", path="**/.env")))
    assert policy.decide(edit("a", kind="read"), cwd=CWD).verdict == "allow"
    decision = policy.decide(edit("a", "b/.env", kind="read"), cwd=CWD)
    assert (decision.verdict, decision.rule) == ("ask", 1)


ORDER = ["deny", "ask", "allow"]
VERDICTS: tuple[RuleVerdict, ...] = ("allow", "ask", "deny")
SOME_RULES = st.sampled_from(
    [
        rule
        for verdict in VERDICTS
        for rule in (
            Rule(verdict, kind="execute"),
            Rule(verdict, command="git *"),
            Rule(verdict, command="git push *"),
            Rule(verdict, path="src/**"),
            Rule(verdict, tool="Bash"),
            Rule(verdict, server="web"),
        )
    ]
)
SOME_QUESTIONS = st.sampled_from(
    [
        shell("git status"),
        shell("git push"),
        shell("git status; git push"),
        shell("sudo git push", name="Bash"),
        edit("src/a"),
        edit("src/a", "b"),
        asks(name="get", server="web"),
    ]
)


@given(
    st.lists(SOME_RULES, max_size=4), SOME_RULES, SOME_QUESTIONS, st.sampled_from(["deny", "ask", "allow"])
)
def test_another_rule_to_deny_or_ask_never_makes_an_allow(
    rules: list[Rule], another: Rule, question: PermissionQuestion, otherwise: RuleVerdict
) -> None:
    before = PermissionPolicy(rules=tuple(rules), otherwise=otherwise).decide(question, cwd=CWD).verdict
    after = PermissionPolicy(rules=(*rules, another), otherwise=otherwise).decide(question, cwd=CWD).verdict
    if another.verdict == "deny":
        assert ORDER.index(after) <= ORDER.index(before)
    elif another.verdict == "ask":
        assert after != "allow" or before == "allow"
    else:
        assert ORDER.index(after) >= ORDER.index(before)


# Kinds


def test_kinds() -> None:
    rule = Rule("allow", kind=("read", "search"))
    assert fits(rule, asks("search"))
    assert not fits(rule, asks("edit"))


# Paths


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("src/**", "/code/project/src/a/b.py", True),
        ("src/**", "/code/project/src", True),
        ("src/**", "/code/project/srcs", False),
        ("src/**", "/code/project/src/../secret", False),
        ("src/**", "/code/project/x/../src/a", True),
        ("src/**", "/code/other/src/a", False),
        ("src/*", "/code/project/src/a", True),
        ("src/*", "/code/project/src/a/b", False),
        ("src/?.py", "/code/project/src/a.py", True),
        ("**/*.py", "/code/project/a.py", True),
        ("**/*.py", "/code/project/a/b/.c.py", True),
        ("**/*.py", "/code/a.py", False),
        ("**", "/code/project/.git/config", True),
        ("../other/**", "/code/other/x", True),
        ("/etc/**/passwd", "/etc/passwd", True),
        ("/etc/**/passwd", "/etc/a/b/passwd", True),
        ("/**", "/etc/passwd", True),
        ("~/x", "~/x", True),
        ("[ab]", "/code/project/a", True),
        ("[!ab]", "/code/project/a", False),
        ("[!ab]", "/code/project/c", True),
        ("[]x]", "/code/project/]", True),
        ("a[", "/code/project/a[", True),
        ("[^]", "/code/project/^", True),
        ("[a-c]", "/code/project/b", True),
        ("[c-a]", "/code/project/-", True),
        ("[a-]", "/code/project/-", True),
        ("[a]", "/code/project/a", True),
    ],
)
def test_path_globs(pattern: str, path: str, matches: bool) -> None:
    assert fits(Rule("allow", path=pattern), edit(path)) is matches
    inside = pattern == "src/*" and path.endswith("/a/b")  # of a folder that the pattern fits
    assert hits(Rule("deny", path=pattern), edit(path)) is (matches or inside)


def test_all_paths_must_fit_and_any_path_hits() -> None:
    question = edit("/code/project/src/a", "/etc/passwd")
    assert not fits(Rule("allow", path="src/**"), question)
    assert fits(Rule("allow", path=("src/**", "/etc/*")), question)
    assert hits(Rule("deny", path="/etc/**"), question)
    assert hits(Rule("deny", path="/ETC/PASSWD"), question), "some file systems ignore case"
    assert not fits(Rule("allow", path="SRC/**"), edit("/code/project/src/a"))


def test_without_a_path_nothing_is_allowed_and_changes_are_denied() -> None:
    assert not fits(Rule("allow", path="src/**"), edit())
    assert hits(Rule("deny", path="src/**"), edit())
    assert not hits(Rule("deny", path="src/**"), asks("search"))


def test_links_are_followed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key").touch()
    (root / "link").symlink_to(tmp_path / "secret")
    (root / "deep").symlink_to(tmp_path / "secret" / "key")
    cwd = str(root)
    allow, deny = Rule("allow", path="**"), Rule("deny", path=f"{tmp_path}/secret/**")
    for path in ("link/key", "link/new", "link", "deep", "link/../secret/key"):
        assert not fits(allow, edit(path), cwd)
        assert hits(deny, edit(path), cwd)
    assert hits(Rule("deny", path="link/**"), edit(f"{tmp_path}/secret/key"), cwd)
    assert fits(allow, edit("new/file"), cwd)
    (tmp_path / "alias").symlink_to(root)
    assert fits(allow, edit(f"{tmp_path}/alias/file"), f"{tmp_path}/alias")
    assert fits(allow, edit(f"{root}/file"), f"{tmp_path}/alias")


def test_a_folder_around_a_denied_file_is_not_deleted_or_moved() -> None:
    rule = Rule("deny", path="/code/project/keys/*.pem")
    for folder in ("/code/project/keys", "/code", "/"):
        assert hits(rule, edit(folder, kind="delete"))
        assert hits(rule, edit(folder, kind="move"))
        assert not hits(rule, edit(folder, kind="read"))
    assert not hits(rule, edit("/code/project/key", kind="delete"))


def test_paths_say_nothing_of_what_a_command_does() -> None:
    rule = Rule("allow", path="**")
    assert not fits(rule, shell("rm x", paths=("/code/project/x",)))
    assert not fits(rule, edit("x", kind="execute"))
    assert not fits(rule, edit("x", kind="read", command="rm x"))
    assert not fits(rule, edit("x", kind="other"))
    assert fits(Rule("allow", path="**", kind="other"), edit("x", kind="other"))
    assert fits(Rule("allow", path="**", command="cat *"), edit("x", kind="read", command="cat x"))


@pytest.mark.parametrize(
    "command", ["cat .env", "cat ./a/../.env", "grep x --file=.env", "ls > .env", "bash -c 'cat .env'"]
)
def test_a_path_in_a_command_hits(command: str) -> None:
    assert hits(Rule("deny", path="**/.env"), shell(command))
    assert not hits(Rule("deny", path="build/**"), shell("npm run build"))


def test_paths_that_no_file_can_have() -> None:
    assert not fits(Rule("allow", path="**"), edit("a\0b"))
    assert hits(Rule("deny", path="**"), edit("a\0b"))


# Commands


def test_commands_are_not_taken_from_titles_to_allow_them() -> None:
    rule = Rule("allow", command="git *")
    assert fits(rule, shell("git status"))
    assert fits(rule, shell("git status", input={"command": "git status"}))
    assert fits(rule, shell("git status", kind="read")), "codex has kinds for commands"
    assert not fits(rule, shell(None, title="git status"))
    assert not fits(rule, shell("git status", kind="other")), "an argument of some tool"
    assert not fits(rule, shell("git status", server="web"))


@pytest.mark.parametrize(
    ("question", "hit"),
    [
        (shell("sudo rm x"), True),
        (shell("unclosed '"), True),
        (shell("ls", title="rm x"), False),
        (shell(None, title="rm x"), True),
        (shell(None, title="`rm x`"), True),
        (shell(None, title="ls"), False),
        (shell(None, title="don't"), True),
        (shell(None), True),
        (shell(None, server="web"), False),
        (asks(title="rm x"), True),
        (asks(title="don't"), False),
        (asks("read", title="rm x"), False),
        (asks(command="rm x"), True),
    ],
)
def test_what_a_rule_on_commands_denies(question: PermissionQuestion, hit: bool) -> None:
    assert hits(Rule("deny", command="rm *"), question) is hit


@pytest.mark.parametrize(
    ("more", "fit"),
    [
        ({"description": "Show", "timeout": 1000, "run_in_background": True}, True),
        ({"yield_time_ms": 5, "max_output_tokens": 10, "justification": "because"}, True),
        ({"dangerouslyDisableSandbox": False, "stdin": None, "x": "", "cwd": "", "timeout": 0}, True),
        ({"args": ["-s"], "env": {}}, True),
        ({"dangerouslyDisableSandbox": True}, False),
        ({"sandbox_permissions": "require_escalated"}, False),
        ({"with_escalated_permissions": True}, False),
        ({"stdin": "rm x"}, False),
        ({"additionalPermissions": {"network": True}}, False),
        ({"shell": "evil"}, False),
        ({"cwd": CWD, "directory": ".", "dir_path": "x/.."}, True),
        ({"cwd": "/tmp"}, False),
        ({"workdir": "x"}, False),
        ({"workdir": ["x"]}, False),
        ({"workdir": False}, False),
        ({"dangerouslyDisableSandbox": 0}, False),
        ({"cmd": 0}, False),
        ({"script": {"run": "rm x"}}, False),
        ({"args": ["-s", {"then": "rm x"}]}, False),
        ({"env": "PAGER=rm"}, False),
        ({"env": ["PAGER=rm"]}, False),
        ({"description": {"sandbox": False}}, False),
    ],
)
def test_arguments_beside_a_command_are_harmless_or_allow_nothing(more: dict[str, Any], fit: bool) -> None:
    question = shell("git status", input={"command": "git status", **more})
    assert fits(Rule("allow", command="git *"), question) is fit
    assert hits(Rule("deny", command="git *"), question)


ABSENT = st.none() | st.just("")
VALUES = st.recursive(
    st.booleans() | st.integers() | st.floats() | st.text(min_size=1),
    lambda inner: (
        st.lists(inner | ABSENT, max_size=2) | st.dictionaries(st.text(), inner | ABSENT, max_size=2)
    ),
    max_leaves=4,
)
UNKNOWN = st.sampled_from(
    ("sandbox", "requires_approval", "restricted", "safe", "options", "env_file", "")
) | (st.text("qxz_", min_size=1))


@given(st.sampled_from(("command", "cmd", "script")), UNKNOWN, VALUES, ABSENT)
@example("command", "sandbox", False, None)
@example("command", "restricted", 0, "")
@example("command", "options", {}, None)
@example("command", "safe", [], None)
def test_an_unknown_argument_counts_unless_it_is_absent(key: str, name: str, value: Any, absent: Any) -> None:
    rule = Rule("allow", command="make test")
    for said, allowed in ((absent, True), (value, False)):
        assert fits(rule, shell("make test", input={key: "make test", name: said})) is allowed


def test_a_command_in_another_folder_takes_a_rule_that_says_where() -> None:
    rule = Rule("allow", kind="execute", command="git *", path="**")
    known = {"command": "git status", "workdir": "x"}
    assert fits(rule, shell("git status", input=known, paths=(f"{CWD}/x",)))
    assert not fits(rule, shell("git status", input={**known, "workdir": "/x"}, paths=("/x",)))
    assert not fits(rule, shell("git status", input={**known, "stdin": "x"}, paths=(f"{CWD}/x",)))
    assert not fits(rule, shell("git status", input=["git status"], paths=(f"{CWD}/x",)))


# Questions of which there is little to read, or too much


@pytest.mark.parametrize(
    "rule",
    [
        Rule("deny", command="rm *"),
        Rule("deny", path="x"),
        Rule("deny", kind="execute"),
        Rule("deny", tool="Bash"),
        Rule("deny", server="web"),
    ],
)
def test_a_question_that_says_nothing_is_hit_by_every_rule(rule: Rule) -> None:
    assert hits(rule, asks())
    assert hits(rule, asks(input={}))
    assert not hits(rule, asks(title="hello there"))


def test_more_paths_than_are_looked_at_are_denied_and_never_allowed() -> None:
    paths = [f"/code/project/{number}" for number in range(MOST_PATHS)]
    allow, deny = Rule("allow", path="**"), Rule("deny", path="/etc/**")
    assert fits(allow, edit(*paths))
    assert not hits(deny, edit(*paths))
    assert not fits(allow, edit(*paths, "/code/project/x"))
    assert hits(deny, edit(*paths, "/code/project/x"))
    words = " ".join(f"{number}.txt" for number in range(MOST_PATHS))
    assert not hits(deny, shell(f"wc {words}"))
    assert hits(deny, shell(f"wc {words} x.txt"))


def test_links_are_looked_up_once_per_question(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up: list[str] = []
    realpath = os.path.realpath

    def counted(path: str) -> str:
        looked_up.append(path)
        return realpath(path)

    monkeypatch.setattr(os.path, "realpath", counted)
    rules = (*(Rule("deny", path=f"/x{number}/**") for number in range(20)), Rule("allow", path="**"))
    paths = tuple(f"/code/project/{number}" for number in range(50))
    assert PermissionPolicy(rules=rules).decide(edit(*paths), cwd=CWD).verdict == "allow"
    assert len(looked_up) <= len(paths) + len(rules)


# Tools and servers


def test_tools_and_servers_are_never_taken_from_titles_to_allow_them() -> None:
    tool, server = Rule("allow", tool="get*"), Rule("allow", server="web")
    both = Rule("allow", tool="get", server=("web", "w[ei]b*"))
    question = asks(name="get", server="web")
    assert fits(server, question)
    assert fits(both, question)
    assert not fits(tool, question), "it might be anybody's server"
    assert fits(tool, asks(name="get_all"))
    assert not fits(tool, asks(name="GET"))
    assert not fits(server, asks(name="web"))
    for title in ("get", "mcp__web__get", "get (web MCP Server)", "web_get", "mcp.web.get"):
        assert not any(fits(rule, asks(title=title)) for rule in (tool, server, both))


@pytest.mark.parametrize(
    "question",
    [
        asks(name="get", server="web"),
        asks(name="GET", server="WEB"),
        asks(name="mcp__web__get"),
        asks(title="mcp__web__get"),
        asks(title="get (web MCP Server)"),
        asks(title="web_get"),
        asks("execute", title="mcp.web.get"),
    ],
)
def test_whatever_may_be_the_tool_or_the_server_hits(question: PermissionQuestion) -> None:
    for rule in (Rule("deny", tool="get"), Rule("deny", server="w*"), Rule("deny", server="web", tool="g?t")):
        assert hits(rule, question)
    assert not hits(Rule("deny", tool="put"), question)
    assert not hits(Rule("deny", server="mail"), question)


def test_full_names_of_tools_hit_too() -> None:
    assert hits(Rule("deny", tool="mcp__web__*"), asks(name="get", server="web"))
    assert hits(Rule("deny", tool="Bash"), asks(name="Bash"))
    assert hits(Rule("deny", tool="Bash"), asks(title="Bash"))
    assert not hits(Rule("deny", tool="Bash"), asks(title="Bash", name="Read"))
    assert not hits(Rule("deny", server="*"), asks(title="cat my_file.txt now"))


# Values


def test_rules_are_values() -> None:
    rule = Rule("allow", kind="read", path=["a", "b"])
    assert rule == Rule("allow", kind=("read",), path=("a", "b"))
    assert hash(rule) == hash(Rule("allow", kind=["read"], path=("a", "b")))
    assert pickle.loads(pickle.dumps(rule)) == rule
    assert replace(rule, verdict="deny") == Rule("deny", kind="read", path=("a", "b"))
    with pytest.raises(FrozenInstanceError):
        rule.why = "x"  # type: ignore[misc]
    policy = PermissionPolicy(rules=(rule,))
    assert pickle.loads(pickle.dumps(policy)) == policy
    assert policy.otherwise == "deny"


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"verdict": "yes", "kind": "read"}, ValueError, "verdict: 'yes' is not one of allow, deny, ask"),
        ({"verdict": "allow"}, ValueError, "a rule needs a criterion: kind, tool, path"),
        ({"verdict": "allow", "kind": "shell"}, ValueError, "kind: 'shell' is not one of read, edit"),
        ({"verdict": "allow", "path": ""}, ValueError, "path: an empty pattern"),
        ({"verdict": "allow", "path": (" ", "a")}, ValueError, "path: an empty pattern"),
        ({"verdict": "allow", "tool": (3,)}, TypeError, "tool: 3 is not a text"),
        ({"verdict": "allow", "tool": "x", "why": 3}, TypeError, "why: 3 is not a text"),
    ],
)
def test_wrong_rules_are_refused(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Rule(**arguments)


def test_wrong_policies_are_refused() -> None:
    rules: Any = ["allow"]
    with pytest.raises(TypeError, match=r"rules\[0\]: 'allow' is not a Rule"):
        PermissionPolicy(rules=rules)
    otherwise: Any = "never"
    with pytest.raises(ValueError, match="otherwise: 'never' is not one of allow, deny, ask"):
        PermissionPolicy(otherwise=otherwise)


def test_relative_patterns_start_from_the_sessions_folder() -> None:
    rule = Rule("allow", path="src/**")
    assert fits(rule, edit("/a/src/x"), "/a")
    assert not fits(rule, edit("/a/src/x"), "/b")
    assert fits(Rule("allow", path="~/**"), edit(str(Path("~/x").expanduser())), "/b")
