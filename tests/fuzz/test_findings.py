"""What fuzzing has found, each with the smallest input that showed it."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from acp_support import Recorder, talk
from fuzz.bounds import bounded

from thinkwell import PermissionPolicy, PermissionQuestion, Rule
from thinkwell._call_facts import facts_of
from thinkwell._output import JsonSchema, OutputInvalid, output_of
from thinkwell._policy.globs import name_glob, path_glob, words_glob
from thinkwell._skills.front_matter import FrontMatter, FrontMatterError
from thinkwell.events import event_from_json
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from thinkwell._call_facts import CallFacts

CWD = "/code/project"
MANY = 50_000


def asked(**call: Any) -> CallFacts:
    """The facts of a call, as they are on the wire."""
    body = json.dumps({"toolCallId": "t", **call}).encode()
    with bounded(len(body)):
        return facts_of(s.decode(s.ToolCallUpdate, body), None, CWD)


def decided(rule: Rule, **facts: Any) -> str:
    """What is decided where a rule is all there is, and all else is allowed."""
    known: dict[str, Any] = {"id": "q", "title": "", "agent": "a", "options": (), **facts}
    question = PermissionQuestion(**known)
    with bounded(len(msgspec.json.encode(question))):
        return PermissionPolicy(rules=(rule,), otherwise="allow").decide(question, cwd=CWD).verdict


# Events


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b'{"type":"message","text":"\xff"}',
        b'{"type":"unknown","kind":"k","raw":NaN}',
        b'{"type":"unknown","kind":"k","raw":' + b"[" * 100_000,
        '{"type":"message","text":"\ud800"}',
    ],
    ids=["nothing", "cut", "no UTF-8", "NaN", "depth", "surrogate"],
)
def test_what_is_no_event_is_told_in_one_way(line: bytes | str) -> None:
    with pytest.raises(msgspec.ValidationError):
        event_from_json(line)


# Connections


@pytest.mark.parametrize("method", ["elicitation/complete", "mcp/message"])
async def test_a_notification_that_cannot_be_read_is_reported(method: str) -> None:
    async with talk(Recorder()) as conversation:
        await conversation.wire.send({"jsonrpc": "2.0", "method": method, "params": {}})
        await conversation.handler.wait_until(lambda: bool(conversation.handler.reports))
        (report,) = conversation.handler.reports
        assert method in report.reason


# What a call is about


def test_a_file_url_that_is_none_is_a_path_like_any_other() -> None:
    assert asked(rawInput={"path": "file://["}).paths == (f"{CWD}/file:/[",)


def test_a_null_character_names_no_users_folder() -> None:
    assert asked(rawInput={"path": "~a\0b"}).paths == (f"{CWD}/~a\0b",)


def test_paths_without_text_cost_nothing() -> None:
    folders = {f"a{number}_dir": "x" for number in range(20_000)}
    facts = asked(rawInput=folders, locations=[{"path": ""}] * 20_000)
    assert facts.paths


@pytest.mark.parametrize("key", ["command", "args", "env"])
def test_arguments_beyond_all_depth_are_no_error(key: str) -> None:
    def nested(depth: int) -> CallFacts:
        deep = b"[" * depth + b"]" * depth
        raw = b'{"toolCallId":"t","rawInput":{"cmd":"x","%b":[%b,{"name":"n","value":%b}]}}'
        return facts_of(s.decode(s.ToolCallUpdate, raw % (key.encode(), deep, deep)), None, CWD)

    for depth in range(900, 1000):
        try:
            nested(depth)
        except s.DecodeError:
            return


def test_the_name_of_an_argument_is_not_read_again_for_each_text_in_it() -> None:
    assert asked(rawInput={"adira" * (MANY // 5): [""] * MANY}).paths == ()


# Rules


def test_names_of_servers_are_not_tried_in_a_name_of_underscores() -> None:
    assert decided(Rule("deny", server="web"), title="_" * MANY) == "deny"
    assert decided(Rule("deny", tool="get"), title="_" * MANY) == "deny"


def test_names_of_servers_are_not_tried_in_a_name_of_dots() -> None:
    assert decided(Rule("deny", server="web"), name="mcp." + "." * MANY) == "deny"


def test_options_without_end_are_not_tried_one_by_one() -> None:
    command = "a " + "- " * (MANY // 3)
    assert decided(Rule("deny", command="git push *"), kind="execute", command=command) == "deny"


def test_a_path_of_many_steps_is_not_looked_up() -> None:
    paths = tuple(f"/{number}" + "/a" * 20_000 for number in range(20))
    assert decided(Rule("deny", path="/code/**"), kind="edit", paths=paths) == "allow"
    with bounded(sum(map(len, paths))):
        policy = PermissionPolicy(rules=(Rule("allow", path="/**"),))
        question = PermissionQuestion(id="q", title="", agent="a", options=(), kind="edit", paths=paths)
        assert policy.decide(question, cwd=CWD).verdict == "deny"


@pytest.mark.parametrize("number", [1, 2, 3])
def test_globs_take_time_in_proportion(number: int) -> None:
    with bounded(MANY):
        assert name_glob("*a" * number + "*b").fullmatch("a" * MANY) is None
        assert name_glob("*a" * number + "*b").fullmatch("a" * MANY + "b")
        assert path_glob("/**/a" * number + "/**/b").fullmatch("/a" * (MANY // 2)) is None
        assert path_glob("/**/a" * number + "/**/b").fullmatch("/a" * (MANY // 2) + "/b")
        assert words_glob("a" + " * b" * number + " * c").fullmatch("\0a" + "\0b" * (MANY // 2)) is None
        assert words_glob("a" + " * b" * number + " * c").fullmatch("\0a" + "\0b" * (MANY // 2) + "\0c")


# Results


def test_what_is_wrong_with_a_result_is_said_in_few_words() -> None:
    output = output_of(JsonSchema({"type": "array", "items": {"type": "integer"}}))
    for value in ("\\" * MANY, ["x" * 500] * 1000):
        with pytest.raises(OutputInvalid) as caught:
            output.accept({"result": value}, wrapped=True)
        assert sum(map(len, caught.value.errors)) < 100_000


# Skills


@pytest.mark.parametrize(
    "text",
    ["name" + " " * 4 * MANY + "x", "name: x" + " " * 4 * MANY + "x", "name: [a" + " " * 4 * MANY + "{]"],
    ids=["key", "comment", "list"],
)
def test_blanks_in_a_skill_cost_no_more_than_other_characters(text: str) -> None:
    with bounded(len(text)), suppress(FrontMatterError):
        FrontMatter(f"---\n{text}\n---\n").texts("name")
