"""Rules that can fit nothing are refused, and rules that deny reach what they are meant for."""

from __future__ import annotations

from typing import Any

import pytest

from thinkwell import PermissionPolicy, PermissionQuestion, PolicyError, Rule


@pytest.mark.parametrize(
    ("criterion", "pattern"),
    [
        *(("path", pattern) for pattern in ("!x", "$HOME/.ssh/**", "*.{py,md}")),
        *(("command", pattern) for pattern in ("cd x && rm *", "ls | rm *", "rm '*'", 'ls "x', "FOO=1 ls")),
        *(("command", pattern) for pattern in ("echo x > y", "rm `x`", "a ; b")),
    ],
)
def test_a_pattern_that_fits_nothing_is_refused(criterion: str, pattern: str) -> None:
    criteria: dict[str, Any] = {criterion: pattern}
    with pytest.raises(ValueError, match="matches nothing"):
        Rule("deny", **criteria)
    text = f"[[rules]]\nverdict = 'deny'\n{criterion} = {pattern!r}\n".replace("\\'", "'")
    if pattern.count("'") == 0:
        with pytest.raises(PolicyError, match=r"rules\[0\].*matches nothing"):
            PermissionPolicy.from_toml(text)


def verdict(policy: PermissionPolicy, **fields: Any) -> str:
    question = PermissionQuestion(id="q", title="", agent="a", options=(), **fields)
    return policy.decide(question, cwd="/project").verdict


@pytest.mark.parametrize(
    "command",
    [
        "git push",
        "git push --force origin main",
        "git -C . push --force origin main",
        "git --no-pager push",
        "git -c a.b=c --git-dir x -p push origin",
        "sudo git -C /x push",
    ],
)
def test_options_before_a_subcommand_hide_it_from_no_rule(command: str) -> None:
    policy = PermissionPolicy(rules=(Rule("deny", command="git push *"),), otherwise="allow")
    asked: dict[str, Any] = {"kind": "execute", "command": command, "input": {"command": command}}
    assert verdict(policy, **asked) == "deny"
    status: dict[str, Any] = {"kind": "execute", "command": "git status", "input": {"command": "git status"}}
    assert verdict(policy, **status) == "allow"


@pytest.mark.parametrize("pattern", ["secrets", "secrets/", "/project/secrets", "secrets/**", "sec*"])
def test_what_is_denied_of_a_folder_is_denied_of_all_that_is_in_it(pattern: str) -> None:
    policy = PermissionPolicy(rules=(Rule("deny", path=pattern),), otherwise="allow")
    for path in ("/project/secrets", "/project/secrets/key", "/project/secrets/a/b", "/project/Secrets/key"):
        assert verdict(policy, kind="read", paths=(path,)) == "deny"
    assert verdict(policy, kind="read", paths=("/project/src/key",)) == "allow"


def test_what_is_allowed_of_a_folder_is_not_allowed_of_what_is_in_it() -> None:
    policy = PermissionPolicy(rules=(Rule("allow", path="src"),))
    assert verdict(policy, kind="read", paths=("/project/src",)) == "allow"
    assert verdict(policy, kind="read", paths=("/project/src/x",)) == "deny"
