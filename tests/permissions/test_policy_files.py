"""Policies as TOML files."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinkwell import PermissionPolicy, PolicyError, Rule, ThinkwellError

if TYPE_CHECKING:
    from pathlib import Path

TEXT = """
# What the agent may do in this repository.
otherwise = "ask"

[[rules]]
verdict = "allow"
kind = ["read", "search"]
path = "**"

[[rules]]
verdict = "deny"
command = 'rm *'
why = "files are not \\"deleted\\""
"""

POLICY = PermissionPolicy(
    rules=(
        Rule("allow", kind=("read", "search"), path="**"),
        Rule("deny", command="rm *", why='files are not \\"deleted\\"'),
    ),
    otherwise="ask",
)


def test_a_file_is_a_policy(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(TEXT, "utf-8")
    expected = PermissionPolicy(
        rules=(POLICY.rules[0], Rule("deny", command="rm *", why='files are not "deleted"')), otherwise="ask"
    )
    assert PermissionPolicy.load(file) == PermissionPolicy.load(str(file)) == expected
    file.write_text(TEXT, "utf-8-sig")
    assert PermissionPolicy.load(file) == expected
    assert PermissionPolicy.from_toml("") == PermissionPolicy()


def test_what_is_written_is_short() -> None:
    assert POLICY.to_toml() == (
        'otherwise = "ask"\n'
        "\n"
        "[[rules]]\n"
        'verdict = "allow"\n'
        'kind = ["read", "search"]\n'
        'path = "**"\n'
        "\n"
        "[[rules]]\n"
        'verdict = "deny"\n'
        'command = "rm *"\n'
        'why = "files are not \\u005c\\u0022deleted\\u005c\\u0022"\n'
    )


TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
PATTERNS = st.lists(TEXTS.filter(str.strip), min_size=1, max_size=3)
PLAIN = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="!${&|;<>\\\"'`="))
POSSIBLE = st.lists(PLAIN.filter(str.strip), min_size=1, max_size=3)
"""Without what no path or command can fit."""

RULES = st.builds(
    Rule,
    st.sampled_from(["allow", "deny", "ask"]),
    kind=st.lists(st.sampled_from(["read", "edit", "execute", "other"]), max_size=2),
    tool=PATTERNS,
    path=POSSIBLE | st.just(()),
    command=POSSIBLE | st.just(()),
    server=PATTERNS | st.just(()),
    why=TEXTS,
)
POLICIES = st.builds(
    PermissionPolicy,
    rules=st.lists(RULES, max_size=4).map(tuple),
    otherwise=st.sampled_from(["allow", "deny", "ask"]),
)


@given(POLICIES)
def test_what_is_written_is_read(policy: PermissionPolicy) -> None:
    assert PermissionPolicy.from_toml(policy.to_toml()) == policy


RULE = "[[rules]]\nverdict = 'allow'\n"


@pytest.mark.parametrize(
    ("text", "where", "problem"),
    [
        ("otherwise = ", "", "it is not TOML: Invalid value (at"),
        ("otherwise = 'never'", "otherwise", "'never' is not one of allow, deny, ask"),
        ("otherwise = 3", "otherwise", "3 is not one of allow, deny, ask"),
        ("otherwise = ['ask']", "otherwise", "['ask'] is not one of"),
        ("default = 'deny'", "default", "there is no such key; there are otherwise, rules"),
        ("[[rule]]\nverdict = 'allow'", "rule", "there is no such key; do you mean 'rules'?"),
        ("[rules]\nverdict = 'allow'", "rules", "write each rule under a line [[rules]]"),
        ("rules = ['allow']", "rules[0]", "write each rule under a line [[rules]]"),
        (RULE, "rules[0]", "a rule needs a criterion"),
        (RULE + "kind = 'reed'", "rules[0].kind", "'reed' is not one of read, edit, delete"),
        (RULE + "kind = 'reed'", "rules[0].kind", "do you mean 'read'?"),
        (RULE + "kind = ['read', 1]", "rules[0].kind[1]", "1 is not one of read"),
        (RULE + "paths = 'a'", "rules[0].paths", "there is no such key; do you mean 'path'?"),
        (RULE + "path = 3", "rules[0].path", "3 is not a text or a list of texts"),
        (RULE + "path = ['a', {}]", "rules[0].path[1]", "{} is not a text"),
        (RULE + "path = ''", "rules[0]", "path: an empty pattern matches nothing"),
        (RULE + "path = 'a'\nwhy = ['b']", "rules[0].why", "['b'] is not a text"),
        (RULE + "path = 'a'\n[[rules]]\npath = 'b'", "rules[1].verdict", "it is missing; give one of allow"),
        ("[[rules]]\nverdict = 'alow'\npath = 'b'", "rules[0].verdict", "do you mean 'allow'?"),
    ],
)
def test_errors_say_where_and_what(text: str, where: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(PolicyError) as caught:
        PermissionPolicy.from_toml(text)
    assert (caught.value.where, caught.value.source) == (where, None)
    assert problem in caught.value.problem
    file = tmp_path / "policy.toml"
    file.write_text(text, "utf-8")
    with pytest.raises(PolicyError) as caught:
        PermissionPolicy.load(file)
    assert str(caught.value) == ": ".join(filter(None, (str(file), where, caught.value.problem)))
    assert isinstance(caught.value, ThinkwellError)
    assert isinstance(caught.value, ValueError)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.source, copy.where) == (str(caught.value), str(file), where)


def test_an_error_in_the_text_has_a_line() -> None:
    with pytest.raises(PolicyError, match=r"at line 2, column"):
        PermissionPolicy.from_toml("\nx = [}")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        PermissionPolicy.load(tmp_path / "none.toml")
    file = tmp_path / "policy.toml"
    file.write_bytes(b"\xff")
    with pytest.raises(PolicyError, match="it is not UTF-8"):
        PermissionPolicy.load(file)
