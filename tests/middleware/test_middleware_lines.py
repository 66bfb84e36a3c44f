"""A host that knows only lines drives an agent: prompts, messages, answers."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import anyio
import pytest
from lines.program import played, started
from middleware.hosting import Host, Line, playing, served

from thinkwell import (
    AgentExited,
    AgentReported,
    JsonSchema,
    PermissionPolicy,
    SessionNotOpened,
    ThoughtTimeout,
    open_agent,
)
from thinkwell.listen import AgentApproval, Handlers, InitRefused, serve_lines
from thinkwell.testing import ScriptedAgent, script, simulate
from thinkwell_acp import RpcError
from thinkwell_acp.schema import AgentCapabilities, McpCapabilities, PromptCapabilities

if TYPE_CHECKING:
    from pathlib import Path

    from thinkwell.events import JsonValue
    from thinkwell.testing import Simulation

pytestmark = pytest.mark.anyio

TEXT: JsonValue = {"type": "string"}
ONE_FIELD: Line = {"type": "object", "properties": {"name": TEXT}, "required": ["name"]}
TWO_FIELDS: Line = {**ONE_FIELD, "properties": {"name": TEXT, "age": TEXT}}
SEES = AgentCapabilities(
    mcp_capabilities=McpCapabilities(acp=True), prompt_capabilities=PromptCapabilities(image=True)
)
DOT = b"GIF89a\x01\x00\x01\x00\x00\x00\x00;"
OVERLOADED = {"type": "error", "message": "overloaded", "code": -32001}


async def test_each_prompt_has_one_end_in_order() -> None:
    told = script.says("One.").stops().says("Two.").stops().says("Three.")
    async with playing(told) as host:
        await host.say("first", "second", "third")
        assert [await host.hear_end() for _ in range(3)] == [
            {"type": "result", "text": "One."},
            {"type": "result", "text": "Two."},
            {"type": "result", "text": "Three."},
        ]
    assert host.outcome == [None]
    assert host.types() == ["partial", "result"] * 3


async def test_what_an_agent_does_becomes_messages() -> None:
    told = script.plans("Read", "Write", done=1).uses("Read a.py", kind="read").thinks("Hm.").says("Done.")
    async with playing(told) as host:
        await host.say("go")
        await host.hear_end()
    plan, begun, done, said, result = host.heard
    assert (plan["type"], plan["message"], plan["percent"], plan["stage"]) == (
        *("progress", "Write", 50.0, "plan"),
    )
    assert (begun["message"], begun["stage"], done["status"]) == ("Read a.py", "read", "completed")
    assert (said["type"], said["text"], result["text"]) == ("partial", "Done.", "Done.")


async def test_a_text_has_its_line_ends_escaped() -> None:
    async with playing(script.expects("one\ntwo\r\nthree").says("Yes.")) as host:
        await host.say(r"one\ntwo\r\nthree")
        assert await host.hear_end() == {"type": "result", "text": "Yes."}


async def test_context_stands_behind_the_prompt_as_json() -> None:
    told = script.expects('<context>\n{\n  "branch": "größe"\n}\n</context>').says("Yes.")
    async with playing(told) as host:
        await host.say({"prompt": "Review\nit", "context": {"branch": "größe"}})
        assert await host.hear_end() == {"type": "result", "text": "Yes."}


@pytest.mark.parametrize(
    ("line", "prompt"),
    [
        ("{x} means what?", "{x} means what?"),
        ('{"type":"cancel"}', '{"type":"cancel"}'),
        ('"quoted"', '"quoted"'),
        ('{"prompt":"plain","context":null}', "plain"),
        ('{"type":"prompt","prompt":"plain"}', "plain"),
    ],
)
async def test_what_is_no_message_is_a_text(line: str, prompt: str) -> None:
    scripted = ScriptedAgent(script.says("Yes."))
    async with scripted.open(permissions="ask") as agent, served(agent, Host()) as host:
        await host.say("", "   ", line)
        await host.hear_end()
    (sent,) = scripted.sent.prompts
    assert sent.text == prompt


async def test_a_prompt_that_is_empty_fails_alone() -> None:
    async with playing(script.says("Yes.")) as host:
        await host.say({"prompt": " "}, "go")
        assert (await host.hear_end())["type"] == "error"
        assert await host.hear_end() == {"type": "result", "text": "Yes."}
    assert host.outcome == [None]


async def test_the_last_line_needs_no_end() -> None:
    async with playing(script.says("Yes.")) as host:
        await host.write(b"go")
        await host.end()
        assert await host.hear_end() == {"type": "result", "text": "Yes."}


# Questions


async def test_an_approval_waits_for_its_response() -> None:
    told = script.asks("Run ls", kind="execute", input={"command": "ls"}, expect="allow_once").says("Ran.")
    async with playing(told) as host:
        await host.say("go")
        asked = await host.hear("approval")
        assert (asked["description"], asked["command"], asked["kind"]) == ("Run ls", "ls", "execute")
        await host.respond(asked, value=True)
        assert await host.hear_end() == {"type": "result", "text": "Ran."}


@pytest.mark.parametrize(
    ("value", "choice"),
    [
        *((True, "allow_once"), ("yes", "allow_once"), ("Approve.", "allow_once")),
        *((False, "reject_once"), ("not today", "reject_once"), (None, "reject_once"), ({}, "reject_once")),
    ],
)
async def test_an_approval_takes_yes_and_everything_else_is_no(value: object, choice: str) -> None:
    async with playing(script.asks("Run ls", expect=choice).says("Fine.")) as host:
        await host.say("go")
        await host.respond(await host.hear("approval"), value)
        assert (await host.hear_end())["type"] == "result"


async def test_a_question_is_answered_by_a_text_or_a_form() -> None:
    told = script.asks_form("Who?", ONE_FIELD, expect={"name": "Ann"})
    told = told.asks_form("Who else?", ONE_FIELD, expect={"name": "Bob"}).says("Thanks.")
    async with playing(told) as host:
        await host.say("go")
        asked = await host.hear("question")
        assert (asked["question"], asked["fields"][0]["name"]) == ("Who?", "name")
        await host.respond(asked, "Ann")
        await host.respond(await host.hear("question"), {"name": "Bob"})
        assert await host.hear_end() == {"type": "result", "text": "Thanks."}


async def test_null_declines_a_question() -> None:
    async with playing(script.asks_form("Who?", ONE_FIELD, expect="decline").says("Well.")) as host:
        await host.say("go")
        await host.respond(await host.hear("question"), None)
        assert (await host.hear_end())["type"] == "result"


async def test_fields_without_anything_in_them_are_left_out() -> None:
    async with playing(script.asks("Think about it", kind="think").says("Ran.")) as host:
        await host.say("go")
        asked = await host.hear("approval")
        assert [] not in asked.values()
        assert asked["options"]
        await host.respond(asked, value=False)
        await host.hear_end()


@pytest.mark.parametrize(
    ("by_id", "response", "why"),
    [
        (True, {"in_reply_to": "question"}, "it has no `value`"),
        (False, {"in_reply_to": "question"}, "it has no `value`"),
        (True, {"in_reply_to": "question", "text": 'the "value": Ann'}, "it has no `value`"),
        (True, {"in_reply_to": "approval", "value": True}, "`in_reply_to` says 'approval', and this is a"),
    ],
)
async def test_an_answer_that_is_none_leaves_the_question_open(by_id: bool, response: Line, why: str) -> None:
    async with playing(script.asks_form("Who?", ONE_FIELD, expect={"name": "Ann"}).says("Thanks.")) as host:
        await host.say("go")
        asked = await host.hear("question")
        await host.say({"type": "response", **response, **({"id": asked["id"]} if by_id else {})})
        complaint = await host.hear()
        assert (complaint["type"], complaint["level"], complaint["id"]) == ("log", "error", asked["id"])
        assert why in complaint["message"]
        assert "still open" in complaint["message"]
        await host.respond(asked, "Ann")
        assert (await host.hear_end())["type"] == "result"


async def test_an_answer_with_an_id_need_not_say_to_what() -> None:
    async with playing(script.asks_form("Who?", ONE_FIELD, expect={"name": "Ann"}).says("Thanks.")) as host:
        await host.say("go")
        asked = await host.hear("question")
        await host.say({"type": "response", "value": "Ann", "id": asked["id"]})
        assert (await host.hear_end())["type"] == "result"


@pytest.mark.parametrize("wrong", [{"name": 7}, {"nome": "Ann"}, ["Ann"]])
async def test_an_answer_that_does_not_fit_leaves_the_question_open(wrong: object) -> None:
    told = script.asks_form("Who?", TWO_FIELDS, expect={"name": "Ann"}).says("Thanks.")
    async with playing(told) as host:
        await host.say("go")
        asked = await host.hear("question")
        await host.respond(asked, wrong)
        complaint = await host.hear()
        assert (complaint["type"], complaint["level"], complaint["id"]) == ("log", "error", asked["id"])
        assert "still open" in complaint["message"]
        await host.respond(asked, {"name": "Ann"})
        assert (await host.hear_end())["type"] == "result"


# The beginning


async def test_an_init_is_acknowledged_when_the_session_is_there() -> None:
    async with playing(script.says("Yes.")) as host:
        await host.say({"type": "init", "params": {}}, "go")
        assert await host.hear() == {"type": "init_ack", "name": "scripted", "version": "0.1.0"}
        assert await host.hear_end() == {"type": "result", "text": "Yes."}
    assert "log" not in host.types()


async def test_an_init_that_says_what_means_nothing_is_told_so() -> None:
    async with playing(script.says("Yes.")) as host:
        await host.say({"type": "init", "params": {"colour": "red", "shema": {}}}, "go")
        assert (await host.hear())["type"] == "init_ack"
        for name in ("colour", "shema"):
            told = await host.hear()
            assert (told["type"], told["level"]) == ("log", "warning")
            assert f"init: {name!r} means nothing here; there are cwd, schema, timeout" in told["message"]
        assert await host.hear_end() == {"type": "result", "text": "Yes."}


async def test_an_init_says_how_prompts_are_run(tmp_path: Path) -> None:
    scripted = ScriptedAgent(script.returns({"n": 1}).stops().pauses(60), complete=False)
    init = {"cwd": str(tmp_path), "schema": {"type": "object", "required": ["n"]}, "timeout": 0.2}
    async with scripted.open(permissions="ask") as agent, served(agent, Host()) as host:
        await host.say({"type": "init", "params": init}, "one", "two")
        assert [(await host.hear("init_ack", "result", "error"))["type"] for _ in range(3)] == [
            *("init_ack", "result", "error")
        ]
    assert scripted.sent.one("session/new").params["cwd"] == str(tmp_path)
    assert isinstance(host.outcome[0], ThoughtTimeout)


@pytest.mark.parametrize(
    ("params", "why"),
    [
        ([], "params: it is []; give an object"),
        ({"cwd": 1}, "cwd: it is 1; give the path of a folder"),
        ({"cwd": "no/such/folder"}, "there is no folder"),
        ({"schema": "x"}, "schema: it is 'x'; a JSON Schema is an object"),
        ({"schema": {"type": "nothing"}}, "schema: this is not a valid JSON Schema: 'nothing' is not valid"),
        ({"timeout": 0}, "timeout: timeout=0 must be positive"),
        ({"timeout": "soon"}, "must be a number of seconds"),
    ],
)
async def test_an_init_that_cannot_be_used_ends_it(params: Any, why: str) -> None:
    scripted = ScriptedAgent(script)
    async with scripted.open(permissions="ask") as agent, served(agent, Host()) as host:
        await host.say({"type": "init", "params": params}, "go")
        refused = await host.hear()
        assert refused["type"] == "error"
        assert why in refused["message"]
        assert "think(" not in refused["message"]
    assert isinstance(host.outcome[0], InitRefused)
    assert scripted.sent.sessions == ()


@pytest.mark.parametrize("init", [{"type": "init"}, {"type": "init", "params": None}])
async def test_an_init_may_ask_for_nothing(init: Any) -> None:
    async with playing(script) as host:
        await host.say(init)
        assert (await host.hear())["type"] == "init_ack"


async def test_an_init_that_is_not_the_first_line_is_ignored() -> None:
    async with playing(script.says("Yes.")) as host:
        await host.say("go", {"type": "init"})
        complaint = await host.hear("log")
        assert (complaint["level"], "first line" in complaint["message"]) == ("error", True)
    assert host.outcome == [None]


async def test_a_session_that_is_not_opened_ends_it() -> None:
    scripted = ScriptedAgent(script, fails_at={"session/new": RpcError(-32603, "no more sessions")})
    async with scripted.open(permissions="ask") as agent, served(agent, Host()) as host:
        await host.say({"type": "init"}, "go")
        assert await host.hear() == {"type": "error", "message": "no more sessions", "code": -32603}
    assert isinstance(host.outcome[0], SessionNotOpened)


async def test_a_host_that_says_nothing_is_served_well() -> None:
    async with playing(script) as host:
        pass
    assert (host.outcome, host.heard) == ([None], [])


# Results and errors


@dataclass
class Review:
    score: int
    words: str


@pytest.mark.parametrize(
    ("output", "value", "fields"),
    [
        (Review, {"score": 7, "words": "Good."}, {"score": 7, "words": "Good."}),
        (int, 7, {"result": 7}),
        (list[str], ["a"], {"result": ["a"]}),
        (JsonSchema({"type": "object"}), {"type": "bug"}, {"result": {"type": "bug"}}),
        (JsonSchema({"type": ["string", "null"]}), None, {"result": None}),
        (str, None, {"text": "Done."}),
    ],
    ids=repr,
)
async def test_a_typed_result_is_its_fields(output: Any, value: Any, fields: Any) -> None:
    told = script.says("Done.") if output is str else script.returns(value).says("Done.")
    async with playing(told, output=output) as host:
        await host.say("go")
        assert await host.hear_end() == {"type": "result", **fields}
    assert host.types()[-1] == "result"


async def test_an_error_ends_its_prompt_alone() -> None:
    told = script.fails(-32001, "overloaded", data={"wait": 3}).refuses().says("Now.")
    async with playing(told) as host:
        await host.say("one", "two", "three")
        assert await host.hear_end() == OVERLOADED | {"data": {"wait": 3}}
        assert (await host.hear_end())["type"] == "error"
        assert await host.hear_end() == {"type": "result", "text": "Now."}
    assert host.outcome == [None]


async def test_an_error_without_more_says_no_more() -> None:
    async with playing(script.fails(-32001, "overloaded")) as host:
        await host.say("one")
        assert await host.hear_end() == OVERLOADED
    assert isinstance(host.outcome[0], AgentReported)


async def test_a_login_that_is_wanted_is_an_error_and_can_be_tried_again() -> None:
    async with playing(script.fails(-32000, "log in").says("Welcome.")) as host:
        await host.say("one", "two")
        assert (await host.hear_end())["type"] == "error"
        assert await host.hear_end() == {"type": "result", "text": "Welcome."}
    assert host.outcome == [None]


async def test_a_prompt_that_takes_too_long() -> None:
    async with playing(script.hangs(), timeout=0.2) as host:
        await host.say("go")
        assert "0.2" in (await host.hear_end())["message"]
    assert isinstance(host.outcome[0], ThoughtTimeout)


async def test_the_call_that_returns_a_result_is_no_progress() -> None:
    async with open_agent("builtin", permissions="ask") as agent, served(agent, Host(), output=int) as host:
        await host.say("How many files are there?")
        await host.hear_end()
    told = [message for message in host.heard if message["type"] == "progress"]
    assert [message for message in told if message["stage"] != "plan"]
    assert "return_result" not in [message["message"] for message in told]


def test_an_agent_that_does_not_end_its_turn_ends_it() -> None:
    async def world(simulation: Simulation) -> None:
        async with playing(script.hangs(deaf=True), complete=False, timeout=1) as host:
            await host.say("one")
            assert "1 second" in (await host.hear_end())["message"]
            await host.served.wait()  # the host would have its next prompt fail
        simulation.count(type(host.outcome[0]).__name__)

    report = simulate(world, seeds=1)
    assert set(report.noted) == {"ThoughtTimeout"}


async def test_an_agent_that_is_gone_ends_it() -> None:
    async with playing(script.says("Let me").hangs_up(), complete=False) as host:
        await host.say("one")
        assert (await host.hear_end())["type"] == "error"
        await host.served.wait()  # though the host has not ended its output
    assert isinstance(host.outcome[0], AgentExited)
    assert host.types() == ["partial", "error"]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"output": object()}, TypeError),
        ({"cwd": "no/such/folder"}, NotADirectoryError),
        ({"timeout": 0}, ValueError),
        ({"timeout": "1"}, TypeError),
    ],
)
async def test_what_serve_lines_cannot_use_is_told_at_once(options: Any, error: type[Exception]) -> None:
    async with ScriptedAgent(script).open() as agent:
        with pytest.raises(error):
            await serve_lines(agent, Host().transport, **options)


async def test_the_folder_of_the_session(tmp_path: Path) -> None:
    scripted = ScriptedAgent(script.says("Yes."))
    async with scripted.open() as agent, served(agent, Host(), cwd=tmp_path) as host:
        await host.say("go")
        await host.hear_end()
    assert scripted.sent.one("session/new").params["cwd"] == str(tmp_path)


# The ends


async def test_what_is_asked_after_the_hosts_end_is_declined() -> None:
    told = script.asks("Run ls", expect="reject_once").asks_form("Who?", ONE_FIELD, expect="decline")
    async with playing(told.says("Well.")) as host:
        await host.say("go")
        await host.end()
        assert await host.hear_end() == {"type": "result", "text": "Well."}
    assert set(host.types()) == {"progress", "partial", "result"}


async def test_what_is_open_at_the_hosts_end_is_declined() -> None:
    async with playing(script.asks("Run ls", expect="reject_once").says("Well.")) as host:
        await host.say("go")
        await host.hear("approval")
        await host.end()
        assert await host.hear_end() == {"type": "result", "text": "Well."}


async def test_a_host_that_reads_no_more_cancels_what_runs() -> None:
    told = script.says("Let me").hangs().says("see")
    scripted = ScriptedAgent(told, complete=False)
    host = Host()
    async with scripted.open(permissions="ask") as agent, anyio.create_task_group() as tasks:
        tasks.start_soon(_go_and_leave, host)
        with pytest.raises(anyio.BrokenResourceError):
            await serve_lines(agent, host.transport)
    assert len(scripted.sent.cancelled) == 1


async def _go_and_leave(host: Host) -> None:
    await host.say("go")
    await host.hear("partial")
    await host.leave()
    await host.say({"type": "init"})  # a complaint is written, and nobody reads it


@pytest.mark.long
async def test_a_line_that_is_too_long_ends_it() -> None:
    async with playing(script.says("Yes.")) as host:
        await host.say("go")
        await host.hear_end()
        piece = b"x" * (8 * 1024 * 1024)
        for _ in range(9):
            await host.write(piece)
        assert "67108864" in (await host.hear_end())["message"]
    assert host.outcome[0] is not None


async def test_policies_decide_before_the_host_does() -> None:
    told = script.asks("Run ls", expect="reject_once").says("Well.")
    for permissions in ("deny", PermissionPolicy(otherwise="deny")):
        async with playing(told, opening={"permissions": permissions}) as host:
            await host.say("go")
            await host.hear_end()
        assert "approval" not in host.types()


# What a host gives along with a prompt


async def test_a_schema_in_the_context_types_that_prompt() -> None:
    told = script.returns({"n": 3}).stops().says("Text.").stops().returns(4)
    async with playing(told) as host:
        await host.say({"prompt": "one", "context": {"schema": {"type": "object", "required": ["n"]}}})
        assert await host.hear_end() == {"type": "result", "n": 3}
        await host.say({"prompt": "two", "context": {"schema": "CREATE TABLE x"}})
        assert await host.hear_end() == {"type": "result", "text": "Text."}
        await host.say({"prompt": "three", "context": {"schema": {"type": "integer"}}})
        assert await host.hear_end() == {"type": "result", "result": 4}


async def test_images_in_the_context_are_shown_to_the_agent() -> None:
    scripted = ScriptedAgent(script.says("A dot."), capabilities=SEES)
    image = {"mimeType": "image/gif", "data": b64encode(DOT).decode()}
    async with scripted.open(permissions="ask") as agent, served(agent, Host()) as host:
        await host.say({"prompt": "What is it?", "context": {"images": [image], "schema": None}})
        await host.hear_end()
    text, shown = scripted.sent.prompts[0].blocks
    assert (shown["type"], shown["data"]) == ("image", image["data"])
    assert '"schema": null' in text["text"]


@pytest.mark.parametrize(
    ("context", "why"),
    [
        ({"schema": {"type": "nothing"}}, "context: schema: this is not a valid JSON Schema: 'nothing'"),
        ({"images": [{"data": "!"}]}, "base64"),
        ({"images": [{"data": "AAAA"}]}, "image"),
        ({"images": ["dot.gif"]}, "needs its `data` in base64"),
        ({"images": [{"data": b64encode(DOT).decode()}]}, "promptCapabilities.image"),
    ],
)
async def test_a_context_that_cannot_be_used_is_an_error_of_its_prompt(context: Any, why: str) -> None:
    async with playing(script.says("Yes.")) as host:
        await host.say({"prompt": "go", "context": context}, "go")
        failed = await host.hear_end()
        assert (failed["type"], why in failed["message"]) == ("error", True), failed
        assert await host.hear_end() == {"type": "result", "text": "Yes."}


async def test_a_schema_of_a_prompt_cannot_be_another_than_that_of_all() -> None:
    async with playing(script, output=int) as host:
        await host.say({"prompt": "go", "context": {"schema": {"type": "object"}}})
        assert "every typed turn returns that" in (await host.hear_end())["message"]
    assert isinstance(host.outcome[0], TypeError)


@pytest.mark.parametrize("prompt_format", ["text", "json"])
async def test_a_host_that_is_thinkwell_itself(prompt_format: Literal["text", "json"]) -> None:
    handlers = Handlers()

    @handlers.on("approval")
    def approve(approval: AgentApproval) -> bool:
        return approval.description == "Run ls"

    told = script.expects("one\ntwo").asks("Run ls", expect="allow_once")
    text = '{"score": 7, "words": "Good."}'
    told = told.says(text) if prompt_format == "text" else told.returns({"score": 7, "words": "Good."})
    host = Host()
    async with (
        ScriptedAgent(told).open(permissions="ask") as agent,
        served(agent, host),
        open_agent(
            transport=host.other_end, protocol="ndjson", init={"timeout": 60}, prompt_format=prompt_format
        ) as ours,
    ):
        assert ours.info is not None
        assert ours.info.version == "0.1.0"
        review = await ours.think(Review).text("one\ntwo").listen(handlers)
        assert review == Review(7, "Good.")


# An agent that speaks lines itself


async def test_what_a_program_says_is_passed_on_in_its_own_words() -> None:
    async with played(permissions="ask") as (agent, program), served(agent, Host()) as host:
        await host.say("go")
        assert await program.hear() == "go"
        await program.say("progress", message="Reading", percent=10, colour="red")
        await program.say("weather", sky="blue")
        await program.say("partial", text="So ")
        await program.say("question", question="Who?", id=7, urgent=True)
        asked = await host.hear("question")
        await host.respond(asked, {"any": ["value"]})
        assert await program.hear() == (
            '{"type":"response","in_reply_to":"question","value":{"any":["value"]},"id":7}'
        )
        await program.say("approval", description="Run it")
        await host.respond(await host.hear("approval"), "not today")
        assert (await program.hear_json())["value"] == "not today"
        await program.say("result", text="Done.", files=2)
        assert await host.hear_end() == {"type": "result", "text": "Done.", "files": 2}
    assert host.heard[:3] == [
        {"type": "progress", "message": "Reading", "percent": 10, "colour": "red"},
        {"type": "weather", "sky": "blue"},
        {"type": "partial", "text": "So "},
    ]
    assert asked == {"type": "question", "question": "Who?", "urgent": True, "id": asked["id"]}


async def test_an_error_of_a_program_is_passed_on() -> None:
    async with played(permissions="ask") as (agent, program), served(agent, Host()) as host:
        await host.say("go")
        await program.hear()
        await program.say("question", question="Who?")
        await host.respond(await host.hear("question"), None)
        assert (await program.hear_json())["value"] is None
        await program.say("error", message="No more", step=3)
        failed = await host.hear_end()
        assert (failed["message"], failed["code"], failed["data"]) == ("No more", -32603, {"step": 3})


async def test_a_program_logs_in_its_own_words(tmp_path: Path) -> None:
    source = """
for _ in sys.stdin:
    print("noise", file=sys.stderr, flush=True)
    say("log", message="note")
    say("result", text="Done.")
"""
    async with started(tmp_path, source, permissions="ask") as agent, served(agent, Host()) as host:
        for _ in range(3):
            await host.say("go")
            await host.hear_end()
    assert [message["message"] for message in host.heard if message["type"] == "log"] == ["note"] * 3
