"""What fuzzing has found, each with the smallest input that showed it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import msgspec
import pytest
from acp_support import Recorder, talk
from fuzz import talking
from fuzz.bounds import bounded
from fuzz.talking import CWD

from thinkwell import (
    AgentReported,
    JsonSchema,
    PermissionPolicy,
    PermissionQuestion,
    Rule,
    SkillError,
    load_skill,
    open_agent,
)
from thinkwell.events import event_from_json
from thinkwell.testing import ScriptedAgent, script, virtual_backend

if TYPE_CHECKING:
    from thinkwell import Question

MANY = 50_000

SIZES = pytest.mark.parametrize("many", [MANY // 5, pytest.param(MANY, marks=pytest.mark.long)])

INTERNAL_ERROR = -32603


def asked(**call: Any) -> PermissionQuestion:
    """What is asked about a call, as it is on the wire."""
    (question,) = asks(json.dumps({"toolCallId": "t", **call}).encode(), waits_for="0")
    return question


def asks(*calls: bytes, waits_for: str = "healthy") -> list[PermissionQuestion]:
    """What is asked by an agent that asks about calls, then a healthy one, and waits for one of them."""
    questions: list[PermissionQuestion] = []

    def allow(question: Question) -> bool:
        assert isinstance(question, PermissionQuestion)
        questions.append(question)
        return True

    def request(id_: str, call: bytes) -> bytes:
        params = b'{"sessionId":"%b","toolCall":%b,"options":[]}' % (talking.SESSION.encode(), call)
        return talking.request(id_, "session/request_permission", params)

    async def talk() -> talking.Talk:
        return await talking.talk(*lines, waits_for=[waits_for], permissions="ask", on_question=allow)

    lines = [request(str(number), call) for number, call in enumerate(calls)]
    lines.append(request("healthy", b'{"toolCallId":"healthy"}'))
    with bounded(sum(map(len, calls))):
        backend, options = virtual_backend("asyncio")
        talked = anyio.run(talk, backend=backend, backend_options=options)
    assert not [answer for answer in talked.answers.values() if answer.get("code") == INTERNAL_ERROR]
    return [question for question in questions if question.tool_id != "healthy"]


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


@pytest.mark.long
@SIZES
def test_paths_without_text_cost_nothing(many: int) -> None:
    folders = {f"a{number}_dir": "x" for number in range(many // 2)}
    facts = asked(rawInput=folders, locations=[{"path": ""}] * (many // 2))
    assert facts.paths


@pytest.mark.long
def test_arguments_beyond_all_depth_are_no_error() -> None:
    raw = b'{"toolCallId":"t","rawInput":{"cmd":"x","%b":[%b,{"name":"n","value":%b}]}}'
    for depth in range(940, 1010, 10):
        deep = b"[" * depth + b"]" * depth
        if not asks(*(raw % (key, deep, deep) for key in (b"command", b"args", b"env"))):
            return  # it is beyond what is read at all


@SIZES
def test_the_name_of_an_argument_is_not_read_again_for_each_text_in_it(many: int) -> None:
    assert asked(rawInput={"adira" * (many // 5): [""] * many}).paths == ()


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


@pytest.mark.long
@SIZES
@pytest.mark.parametrize("number", [1, 2, 3])
def test_globs_take_time_in_proportion(number: int, many: int) -> None:
    names = Rule("deny", tool="*a" * number + "*b")
    assert decided(names, name="a" * many) == "allow"
    assert decided(names, name="a" * many + "b") == "deny"
    # What is longer than this is not read: it is denied for that.
    words = Rule("deny", command="a" + " * b" * number + " * c")
    assert decided(words, kind="execute", command="a" + " b" * (many // 3)) == "allow"
    assert decided(words, kind="execute", command="a" + " b" * (many // 3) + " c") == "deny"
    paths = Rule("deny", path="/**/a" * number + "/**/b")
    assert decided(paths, kind="edit", paths=("/a" * 2_000,)) == "allow"
    assert decided(paths, kind="edit", paths=("/a" * 2_000 + "/b",)) == "deny"


# Results


async def test_what_is_wrong_with_a_result_is_said_in_few_words() -> None:
    returned = script
    for value in ("\\" * MANY, ["x" * 500] * 1000):
        returned = returned.calls("return_result", {"result": value}, expect_error=None)
    played = ScriptedAgent(returned, complete=False)
    async with played.connect() as transport, open_agent(transport=transport) as agent:
        schema = JsonSchema({"type": "array", "items": {"type": "integer"}})
        with pytest.raises(AgentReported, match="the script has 1 turn"):
            await agent.think(schema).text("Go").run()
    assert [result.is_error for result in played.sent.results] == [True, True]
    assert sum(len(result.text) for result in played.sent.results) < 200_000


# Skills


@pytest.mark.parametrize(
    "text",
    ["name" + " " * 4 * MANY + "x", "name: x" + " " * 4 * MANY + "x", "name: [a" + " " * 4 * MANY + "{]"],
    ids=["key", "comment", "list"],
)
def test_blanks_in_a_skill_cost_no_more_than_other_characters(text: str, tmp_path: Path) -> None:
    Path(tmp_path, "SKILL.md").write_text(f"---\n{text}\n---\n", "utf-8")
    with bounded(len(text)), pytest.raises(SkillError):
        load_skill(tmp_path)
