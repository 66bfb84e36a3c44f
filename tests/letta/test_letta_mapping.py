"""Events of a run as Letta's messages: their shapes, their order, and what they have in common."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from letta_stage import MESSAGE, hello, letta_served, letta_type

from thinkwell import events as ev
from thinkwell.questions import FieldChoice, FormField

OPTIONS = (ev.QuestionOption(id="y", name="Yes", kind="allow_once"),)


async def mapped(*events: ev.ThoughtEvent, tokens: bool = False) -> list[dict[str, Any]]:
    """What becomes of events, read as the client in Python would."""
    log = [msgspec.structs.replace(event, at=float(seq)) for seq, event in enumerate(events, 1)]
    async with letta_served(hello) as stage:
        run = await stage.keep(log, tokens=tokens)
        streamed = await stage.read(f"/v1/runs/{run}/stream", {})
    messages = [frame for frame in streamed.frames if "seq_id" in frame]
    for message in messages:
        letta_type(MESSAGE).validate_python(message)
    return messages


def kinds(messages: list[dict[str, Any]]) -> list[str]:
    return [str(message["message_type"]).removesuffix("_message") for message in messages]


def say(text: str, id: str | None = None) -> ev.Message:  # noqa: A002
    return ev.Message(text=text, message_id=id)


def think(text: str) -> ev.Thought:
    return ev.Thought(text=text)


# Texts


async def test_whole_messages_come_when_they_are_complete() -> None:
    messages = await mapped(think("Who "), think("is it?"), say("Hel"), say("lo"))
    assert kinds(messages) == ["reasoning", "assistant"]
    assert [message.get("reasoning") or message["content"] for message in messages] == ["Who is it?", "Hello"]


async def test_pieces_of_a_message_share_its_names_and_its_date() -> None:
    messages = await mapped(think("Who "), think("is it?"), say("Hel"), say("lo"), tokens=True)
    assert kinds(messages) == ["reasoning", "reasoning", "assistant", "assistant"]
    for key in ("id", "otid", "date", "step_id"):
        values = [message[key] for message in messages]
        assert values[0] == values[1]
        assert values[2] == values[3]
    assert messages[0]["id"] != messages[2]["id"]
    assert messages[0]["date"] == "1970-01-12T13:46:41+00:00"


async def test_both_ways_of_telling_name_the_messages_alike() -> None:
    events = (
        think("a"),
        say("b", "m1"),
        say("c", "m2"),
        ev.ToolStart(id="t", title="Look"),
        say("d"),
        ev.ToolUpdate(id="t", input={"path": "x"}),
        say("e"),
        ev.ToolDone(id="t", status="completed"),
        ev.PlanUpdate(entries=(ev.PlanEntry(content="one"),)),
        ev.QuestionAsked(id="q1", title="May I?", options=OPTIONS, timeout=300.0),
        say("f"),
    )
    whole, pieces = await mapped(*events), await mapped(*events, tokens=True)

    def named(messages: list[dict[str, Any]]) -> list[tuple[str, str]]:
        return list(dict.fromkeys((message["id"], message["step_id"]) for message in messages))

    assert named(whole) == named(pieces)


async def test_another_message_of_the_agents_is_another_one() -> None:
    messages = await mapped(say("one", "m1"), say(" and", "m1"), say("two", "m2"), say("three"))
    assert [message["content"] for message in messages] == ["one and", "two", "three"]


async def test_updates_that_are_not_shown_do_not_break_a_message() -> None:
    between = (
        ev.UsageUpdate(used=1, size=2),
        ev.ModeUpdate(mode_id="x"),
        ev.PhaseChanged(phase="responding"),
    )
    messages = await mapped(say("one"), *between, say(" more"))
    assert [message["content"] for message in messages] == ["one more"]


async def test_empty_pieces_are_no_messages() -> None:
    assert await mapped(say(""), think("")) == []


@pytest.mark.parametrize(
    ("block", "text"),
    [
        (ev.ImageContent(data="", mime_type="image/png"), "[image: image/png]"),
        (ev.AudioContent(data="", mime_type="audio/wav"), "[audio: audio/wav]"),
        (ev.ResourceLink(uri="file:///a", name="a"), "[a](file:///a)"),
        (ev.ResourceLink(uri="file:///a", name="a", title="A"), "[A](file:///a)"),
        (ev.EmbeddedResource(uri="file:///a", text="inside"), "inside"),
        (ev.EmbeddedResource(uri="file:///a", blob=""), "[file:///a]"),
    ],
)
async def test_what_is_no_text_has_words(block: ev.ContentBlock, text: str) -> None:
    (message,) = await mapped(ev.Message(content=block))
    assert message["content"] == text


async def test_what_a_loaded_session_repeats_is_not_said_again() -> None:
    messages = await mapped(ev.ReplayStarted(), say("Old."), ev.ReplayEnded(), say("New."))
    assert [message["content"] for message in messages] == ["New."]


async def test_a_call_of_the_session_before_that_goes_on_is_a_call_of_this_run() -> None:
    begun = (ev.ReplayStarted(), ev.ToolStart(id="t1", title="Look"), ev.ReplayEnded())
    call, returned = await mapped(
        *begun, ev.ToolUpdate(id="t1", input={"n": 1}), ev.ToolDone(id="t1", status="completed")
    )
    assert call["tool_call"]["arguments"] == '{"n":1}'
    assert returned["tool_return"] == ""


async def test_what_the_user_says_is_not_said_again() -> None:
    assert await mapped(ev.UserMessage(text="Hi")) == []


async def test_what_is_asked_while_a_session_is_loaded_is_asked_now() -> None:
    messages = await mapped(ev.ReplayStarted(), say("Old."), asked(options=OPTIONS), ev.ReplayEnded())
    assert kinds(messages) == ["approval_request"]


# Tools


async def test_a_call_and_its_return() -> None:
    call, returned = await mapped(
        ev.ToolStart(id="t1", title="Read a.py", kind="read", input={"path": "a.py"}),
        ev.ToolDone(id="t1", status="completed", content=(_text("x = 1"), _text("y = 2"))),
    )
    assert call["tool_call"] == {"name": "read", "arguments": '{"path":"a.py"}', "tool_call_id": "t1"}
    assert call["tool_calls"] == [call["tool_call"]]
    assert returned["tool_return"] == "x = 1\ny = 2"
    assert (returned["status"], returned["tool_call_id"]) == ("success", "t1")
    assert returned["tool_returns"] == [
        {"type": "tool", "tool_call_id": "t1", "status": "success", "tool_return": "x = 1\ny = 2"}
    ]
    assert call["step_id"] == returned["step_id"]
    assert call["id"] != returned["id"]


async def test_a_call_in_pieces_has_its_arguments_when_they_are_known() -> None:
    begun, told, returned = await mapped(
        ev.ToolStart(id="t1", title="Read a.py", name="Read"),
        ev.ToolUpdate(id="t1", status="in_progress"),
        ev.ToolUpdate(id="t1", input={"path": "a.py"}, title="Read a.py now"),
        ev.ToolDone(id="t1", status="completed"),
        tokens=True,
    )
    assert begun["tool_calls"] == {"name": "Read", "arguments": None, "tool_call_id": "t1"}
    assert told["tool_calls"] == {"name": None, "arguments": '{"path":"a.py"}', "tool_call_id": "t1"}
    assert begun["tool_call"] == begun["tool_calls"]
    assert (begun["id"], begun["otid"]) == (told["id"], told["otid"])
    assert returned["tool_return"] == ""


@pytest.mark.parametrize("tokens", [False, True])
async def test_a_call_that_shows_no_arguments_has_its_title(tokens: bool) -> None:
    *calls, returned = await mapped(
        ev.ToolStart(id="t1", title="Look around"), ev.ToolDone(id="t1", status="failed"), tokens=tokens
    )
    assert calls[-1]["tool_call"]["arguments"] == '{"title":"Look around"}'
    assert calls[0]["tool_call"]["name"] == "Look around"
    assert returned["status"] == "error"


async def test_a_call_that_is_not_over_is_told_at_the_end() -> None:
    (call,) = await mapped(ev.ToolStart(id="t1"))
    assert call["tool_call"] == {"name": "tool", "arguments": "{}", "tool_call_id": "t1"}


async def test_arguments_that_are_no_object_are_put_into_one() -> None:
    (call, _) = await mapped(ev.ToolStart(id="t1", input=[1]), ev.ToolDone(id="t1", status="cancelled"))
    assert call["tool_call"]["arguments"] == '{"input":[1]}'


async def test_a_call_that_is_told_twice_is_one() -> None:
    messages = await mapped(
        ev.ToolStart(id="t1", title="Look"),
        ev.ToolStart(id="t1", title="Look", input={"path": "a"}),
        ev.ToolUpdate(id="t1", input={"path": "b"}),
        ev.ToolDone(id="t1", status="completed"),
        ev.ToolUpdate(id="t1", title="too late"),
    )
    assert kinds(messages) == ["tool_call", "tool_return"]


async def test_an_id_that_is_used_again_is_another_call() -> None:
    messages = await mapped(
        ev.ToolStart(id="t1", input={"n": 1}),
        ev.ToolDone(id="t1", status="completed"),
        ev.ToolStart(id="t1", input={"n": 2}),
        ev.ToolDone(id="t1", status="completed"),
        ev.ToolDone(id="t1", status="completed", title="a third"),
    )
    assert kinds(messages) == ["tool_call", "tool_return"] * 3
    assert len({message["id"] for message in messages}) == 6


@pytest.mark.parametrize("tokens", [False, True])
async def test_a_call_of_which_the_beginning_was_not_told(tokens: bool) -> None:
    messages = await mapped(
        ev.ToolUpdate(id="t1", title="Look", input={"path": "a"}),
        ev.ToolDone(id="t2", status="completed", title="Listen", output={"heard": True}),
        tokens=tokens,
    )
    calls = [m["tool_call"] for m in messages if m["message_type"] == "tool_call_message"]
    assert calls[0] == {"name": "Look", "arguments": '{"path":"a"}', "tool_call_id": "t1"}
    assert calls[-1]["arguments"] == '{"title":"Listen"}'
    assert messages[-1]["tool_return"] == '{"heard":true}'


async def test_what_tools_show_becomes_text() -> None:
    diff = ev.DiffContent(path="a.py", old_text="x = 1\n", new_text="x = 2\n")
    _, changed, _, told = await mapped(
        ev.ToolStart(id="t1", input={"a": 1}),
        ev.ToolDone(
            id="t1", status="completed", content=(diff, ev.TerminalContent(terminal_id="7")), output="unused"
        ),
        ev.ToolStart(id="t2", input={"a": 1}),
        ev.ToolDone(id="t2", status="completed", output="plain"),
    )
    assert changed["tool_return"] == "[terminal 7]\n--- a.py\n+++ a.py\n@@\n-x = 1\n+x = 2"
    assert told["tool_return"] == "plain"


async def test_a_step_ends_with_what_its_tools_return() -> None:
    messages = await mapped(
        think("First."),
        ev.ToolStart(id="t1", input={"n": 1}),
        ev.ToolStart(id="t2", input={"n": 2}),
        ev.ToolDone(id="t1", status="completed"),
        ev.ToolDone(id="t2", status="completed"),
        say("Then."),
    )
    steps = [message["step_id"].rpartition("-")[2] for message in messages]
    assert steps == ["1", "1", "1", "1", "1", "2"]


async def test_a_plan_is_a_call_and_its_return() -> None:
    entries = (ev.PlanEntry(content="Read", status="completed"), ev.PlanEntry(content="Write"))
    call, returned, other, _, gone, _ = await mapped(
        ev.PlanUpdate(entries=entries),
        ev.PlanUpdate(id="side", markdown="- a", uri="file:///plan"),
        ev.PlanUpdate(id="side", removed=True, entries=entries),
    )
    assert call["tool_call"]["name"] == "update_plan"
    assert json.loads(call["tool_call"]["arguments"]) == {
        "plan": [
            {"step": "Read", "status": "completed", "priority": "medium"},
            {"step": "Write", "status": "pending", "priority": "medium"},
        ]
    }
    assert returned["tool_call_id"] == call["tool_call"]["tool_call_id"]
    assert json.loads(other["tool_call"]["arguments"]) == {
        "id": "side",
        "plan": [],
        "markdown": "- a",
        "uri": "file:///plan",
    }
    assert json.loads(gone["tool_call"]["arguments"])["plan"] == []


# Questions


def asked(**fields: Any) -> ev.QuestionAsked:
    said: dict[str, Any] = {"id": "q1", "title": "Really?", "timeout": 300.0, **fields}
    return ev.QuestionAsked(**said)


@pytest.mark.parametrize("tokens", [False, True])
async def test_a_question_is_a_request_for_approval_of_its_call(tokens: bool) -> None:
    *calls, request = await mapped(
        ev.ToolStart(id="t1", title="Run ls", kind="execute", input={"command": "ls"}),
        asked(tool_id="t1", options=OPTIONS),
        tokens=tokens,
    )
    assert kinds(calls) == ["tool_call"]
    call = {"name": "execute", "arguments": '{"command":"ls"}', "tool_call_id": "t1"}
    assert request["message_type"] == "approval_request_message"
    assert request["tool_call"] == call
    assert request["tool_calls"] == (call if tokens else [call])


async def test_a_question_about_no_call_is_one_of_its_own() -> None:
    (request,) = await mapped(asked(options=OPTIONS))
    assert request["tool_call"] == {
        "name": "Really?",
        "arguments": '{"title":"Really?"}',
        "tool_call_id": "question-ab12-q1",
    }


async def test_what_a_policy_decides_is_not_asked() -> None:
    assert await mapped(asked(timeout=None, options=OPTIONS)) == []


async def test_a_form_is_carried_as_a_call() -> None:
    fields = (
        FormField(name="name", type="string", title="Name", description="Whose?", required=True),
        FormField(
            name="colour", type="choice", choices=(FieldChoice(value="red", title="Red"),), default="red"
        ),
    )
    (request,) = await mapped(asked(asks="form", fields=fields))
    assert request["tool_call"]["name"] == "fill_in_form"
    assert json.loads(request["tool_call"]["arguments"]) == {
        "title": "Really?",
        "fields": [
            {
                "name": "name",
                "type": "string",
                "required": True,
                "title": "Name",
                "description": "Whose?",
            },
            {
                "name": "colour",
                "type": "choice",
                "required": False,
                "default": "red",
                "choices": ["red"],
            },
        ],
    }


async def test_a_web_page_is_carried_as_a_call() -> None:
    (request,) = await mapped(asked(asks="url", url="https://example.org/"))
    assert request["tool_call"]["name"] == "open_url"
    assert json.loads(request["tool_call"]["arguments"])["url"] == "https://example.org/"


def front_end_call(name: str, arguments: str) -> ev.QuestionAsked:
    fields = (
        FormField(name="front_end_result", type="string", title=name, description=arguments),
        FormField(name="front_end_error", type="string"),
    )
    return asked(asks="form", fields=fields)


async def test_a_call_of_a_tool_of_the_clients_has_its_own_name() -> None:
    (request,) = await mapped(front_end_call("Bash", '{"command": "ls"}'))
    assert request["tool_call"]["name"] == "Bash"
    assert request["tool_call"]["arguments"] == '{"command": "ls"}'


async def test_a_step_ends_with_what_the_clients_tool_returns() -> None:
    answered = ev.QuestionAnswered(id="q1", choice="accept", by="human", why="")
    messages = await mapped(
        say("a"), front_end_call("Bash", "{}"), answered, say("b"), asked(id="q2"), say("c")
    )
    assert [m["step_id"][-1] for m in messages] == ["1", "1", "2", "2", "2"]
    permitted = ev.QuestionAnswered(id="q1", choice="allow_once", by="human", why="")
    messages = await mapped(say("a"), asked(options=OPTIONS), permitted, say("b"))
    assert [m["step_id"][-1] for m in messages] == ["1", "1", "1"]


async def test_it_is_the_call_that_the_agent_shows() -> None:
    messages = await mapped(
        ev.ToolStart(id="t0", title="Bash", input={"command": "pwd"}),
        ev.ToolDone(id="t0", status="completed"),
        ev.ToolStart(id="t1", title="mcp__thinkwell__Bash", input={"command": "ls"}),
        ev.ToolStart(id="t2", title="Read"),
        front_end_call("Bash", '{"command": "ls"}'),
        msgspec.structs.replace(front_end_call("Bash", "{}"), id="q2"),
    )
    ids = [m["tool_call"]["tool_call_id"] for m in messages if m["message_type"].startswith("approval")]
    assert ids == ["t1", "question-ab12-q2"]


# The rest


async def test_usage_is_added_up() -> None:
    log = (
        say("One."),
        ev.TurnEnded(number=1, stop_reason="end_turn", usage=ev.TokenUsage(input=3, output=1)),
        ev.ToolDone(id="t1", status="completed"),
        say("Two."),
        ev.TurnEnded(number=2, stop_reason="end_turn", usage=ev.TokenUsage(input=4, total=5)),
        ev.TurnEnded(number=3, stop_reason="end_turn"),
        ev.UsageUpdate(used=77, size=100),
    )
    async with letta_served(hello) as stage:
        run = await stage.keep(log)
        (usage,) = (await stage.read(f"/v1/runs/{run}/stream", {})).of("usage_statistics")
        assert usage.items() <= (await stage.get(f"/v1/runs/{run}/usage")).items()
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (7, 1, 5)
    assert (usage["context_tokens"], usage["step_count"], usage["run_ids"]) == (77, 2, [run])


def _text(text: str) -> ev.BlockContent:
    return ev.BlockContent(content=ev.TextContent(text=text))
