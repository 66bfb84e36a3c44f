"""Which option says an answer, and which answers are remembered."""

from __future__ import annotations

from itertools import permutations
from typing import Any, get_args

import pytest

from thinkwell import PermissionQuestion
from thinkwell.permissions import Remembered, choose
from thinkwell.questions import Verdict
from thinkwell_acp import schema as s

OPTIONS = (
    s.PermissionOption(option_id="a", name="Always", kind="allow_always"),
    s.PermissionOption(option_id="n", name="Never", kind="reject_always"),
    s.PermissionOption(option_id="y", name="Yes", kind="allow_once"),
    s.PermissionOption(option_id="x", name="No", kind="reject_once"),
    s.PermissionOption(option_id="o", name="Perhaps", kind="_other"),
)


def chosen(options: tuple[s.PermissionOption, ...], verdict: Verdict, **settings: Any) -> str | None:
    option = choose(options, verdict, **settings)
    return None if option is None else option.option_id


@pytest.mark.parametrize(
    ("verdict", "expected", "instead"),
    [
        ("allow", "y", None),
        ("accept", "y", None),
        ("allow_session", "y", None),
        ("allow_always", "a", "y"),
        ("deny", "x", "n"),
        ("decline", "x", "n"),
        ("deny_session", "x", "n"),
        ("deny_always", "n", "x"),
    ],
)
def test_options_are_chosen_by_kind_wherever_they_stand(
    verdict: Verdict, expected: str, instead: str | None
) -> None:
    for options in permutations(OPTIONS):
        assert chosen(options, verdict) == expected
        rest = tuple(option for option in options if option.option_id != expected)
        assert chosen(rest, verdict) == instead
    assert chosen((), verdict) is None


def test_every_verdict_can_be_said() -> None:
    assert all(choose(OPTIONS, verdict) for verdict in get_args(Verdict))


@pytest.mark.parametrize("verdict", ["allow", "accept", "allow_session"])
def test_once_is_said_by_always_only_if_that_is_meant(verdict: Verdict) -> None:
    assert chosen(OPTIONS, verdict, widen=True) == "y"
    assert chosen(OPTIONS[:2], verdict) is None
    assert chosen(OPTIONS[:2], verdict, widen=True) == "a"
    assert chosen(OPTIONS[1:2], verdict, widen=True) is None
    assert chosen(OPTIONS[:1], "deny", widen=True) is None


def test_options_that_switch_the_mode_are_avoided() -> None:
    mode = s.PermissionOption(option_id="acceptEdits", name="Yes, and accept edits", kind="allow_once")
    for options in ((mode, *OPTIONS), (*OPTIONS, mode)):
        assert chosen(options, "allow", avoid={"acceptEdits", "plan"}) == "y"
    assert chosen((mode, OPTIONS[0]), "allow", avoid={"acceptEdits"}) == "acceptEdits"
    assert chosen((mode, *OPTIONS), "allow") == "acceptEdits"


def question(**facts: Any) -> PermissionQuestion:
    known: dict[str, Any] = {"id": "q1", "title": "t", "agent": "a", "options": ()}
    return PermissionQuestion(**{**known, **facts})


SHELL: dict[str, Any] = {"kind": "execute", "command": "git status", "input": {"command": "git status"}}
EDIT: dict[str, Any] = {"kind": "edit", "paths": ("/a", "/b"), "input": {"text": "x"}}
FETCH: dict[str, Any] = {"kind": "fetch", "name": "Fetch", "input": {"url": "x", "n": 1}}


@pytest.mark.parametrize("verdict", ["allow", "deny"])
def test_an_answer_for_the_session_is_remembered(verdict: str) -> None:
    remembered = Remembered()
    said: Any = f"{verdict}_session"
    assert remembered.recall(question(**SHELL)) is None
    remembered.remember(question(**SHELL), said)
    assert remembered.recall(question(**SHELL)) == verdict


@pytest.mark.parametrize("verdict", ["allow", "deny", "allow_always", "deny_always", "accept", "decline"])
def test_other_answers_are_not(verdict: Verdict) -> None:
    remembered = Remembered()
    remembered.remember(question(**SHELL), verdict)
    assert remembered.recall(question(**SHELL)) is None


@pytest.mark.parametrize(
    ("facts", "other", "equal"),
    [
        (SHELL, {"id": "q2", "title": "u", "tool_id": "t2", "run_id": "r2"}, True),
        (SHELL, {"input": {"command": "git status", "description": "Show"}}, True),
        (SHELL, {"input": {"command": "git status", "timeout": 5, "run_in_background": True}}, True),
        (SHELL, {"input": {"command": "git status", "runInBackground": None, "x": None}}, True),
        (SHELL, {"input": {"command": "git status", "dangerouslyDisableSandbox": True}}, False),
        (SHELL, {"input": {"command": "git status", "sandbox": False}}, False),
        (SHELL, {"input": {"command": "git status", "description": {"sandbox": False}}}, False),
        (SHELL, {"input": {"command": "git status", "stdin": "x"}}, False),
        (SHELL, {"input": {"command": "git status", "workdir": "x"}}, False),
        ({**SHELL, "input": None}, {"title": "u"}, True),
        (SHELL, {"command": "git push"}, False),
        (SHELL, {"kind": "read"}, False),
        (EDIT, {"paths": ("/b", "/a", "/a"), "input": {"text": "y"}}, True),
        (EDIT, {"paths": ("/a",)}, False),
        (EDIT, {"kind": "delete"}, False),
        (EDIT, {"name": "Write"}, False),
        (FETCH, {"title": "u", "input": {"n": 1, "url": "x"}}, True),
        (FETCH, {"input": {"url": "y", "n": 1}}, False),
        (FETCH, {"server": "web"}, False),
        ({**FETCH, "name": None}, {"title": "u"}, False),
        ({**FETCH, "name": None}, {"id": "q2"}, True),
        ({"kind": "execute", "name": "run", "paths": ("/a",), "input": {"code": "1"}}, {"input": {}}, False),
    ],
)
def test_questions_are_equal_if_the_same_is_asked(
    facts: dict[str, Any], other: dict[str, Any], equal: bool
) -> None:
    remembered = Remembered()
    remembered.remember(question(**facts), "allow_session")
    assert (remembered.recall(question(**{**facts, **other})) == "allow") is equal


def test_the_last_answer_counts() -> None:
    remembered = Remembered()
    remembered.remember(question(**SHELL), "allow_session")
    remembered.remember(question(**SHELL), "deny_session")
    assert remembered.recall(question(**SHELL)) == "deny"


def test_a_denial_holds_for_the_same_command_with_other_arguments() -> None:
    remembered = Remembered()
    more = {**SHELL, "input": {**SHELL["input"], "stdin": "x"}}
    remembered.remember(question(**SHELL), "deny_session")
    assert remembered.recall(question(**more)) == "deny"
    remembered.remember(question(**more), "allow_session")
    assert remembered.recall(question(**more)) == "allow"
    assert remembered.recall(question(**SHELL)) == "deny"


def test_a_question_about_too_many_files_is_not_remembered_as_allowed() -> None:
    remembered = Remembered()
    many = {**EDIT, "paths": tuple(f"/{number}" for number in range(201))}
    remembered.remember(question(**many), "allow_session")
    assert remembered.recall(question(**many)) is None
    remembered.remember(question(**many), "deny_session")
    assert remembered.recall(question(**many)) == "deny"
