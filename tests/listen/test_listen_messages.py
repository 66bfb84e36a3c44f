"""What handlers are told of an agent that speaks ACP: its events and questions as messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest
from asking import permission
from listen.line_programs import form, page, titled
from listen.talkers import SOON
from scripted import Turn, scripted

from thinkwell import open_agent
from thinkwell.listen import (
    AgentApproval,
    AgentLog,
    AgentPartial,
    AgentProgress,
    AgentQuestion,
    AgentResult,
    Handlers,
    listen,
)
from thinkwell.testing import ScriptedAgent, script
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

pytestmark = pytest.mark.anyio

TYPES = ("progress", "partial", "log", "question", "approval", "result", "error")


def all_heard() -> tuple[Handlers, list[tuple[str, dict[str, Any]]]]:
    """Return handlers that note everything and answer nothing."""
    handlers = Handlers()
    heard: list[tuple[str, dict[str, Any]]] = []
    for type_ in TYPES:

        async def note(fields: dict[str, Any], type_: str = type_) -> None:
            heard.append((type_, fields))

        handlers.on(type_)(note)
    return handlers, heard


async def told(play: Callable[[Turn], Awaitable[None]], type_: str, **options: Any) -> list[dict[str, Any]]:
    """Return the messages of a type that come of a turn."""
    handlers, heard = all_heard()

    async def turn(turn: Turn) -> None:
        await play(turn)

    async with scripted(turn, **options) as agent:
        with anyio.fail_after(SOON):
            await agent.think().text("Go").listen(handlers)
    return [fields for kind, fields in heard if kind == type_]


def updates(*sent: s.SessionUpdate) -> Callable[[Turn], Awaitable[None]]:
    async def play(turn: Turn) -> None:
        for update in sent:
            turn.update(update)

    return play


def call(**fields: Any) -> s.ToolCallStart:
    return s.ToolCallStart(tool_call_id="t1", title="Read a.py", kind="read", **fields)


def news(**fields: Any) -> s.ToolCallProgress:
    return s.ToolCallProgress(tool_call_id="t1", **fields)


def step(content: str, status: str) -> s.PlanEntry:
    return s.PlanEntry(content=content, priority="medium", status=status)  # type: ignore[arg-type]


async def test_a_tool_call_is_progress_where_its_title_or_status_changes() -> None:
    heard = await told(
        updates(
            call(status="pending"),
            news(status="in_progress"),
            news(status="in_progress", raw_output={"lines": 3}),
            news(title="Read b.py", kind="edit"),
            news(status="completed"),
            news(raw_output="more of it"),
        ),
        "progress",
    )
    assert heard == [
        {"message": "Read a.py", "stage": "read", "status": "pending", "tool_id": "t1"},
        {"message": "Read a.py", "stage": "read", "status": "in_progress", "tool_id": "t1"},
        {"message": "Read b.py", "stage": "edit", "status": "in_progress", "tool_id": "t1"},
        {"message": "Read b.py", "stage": "edit", "status": "completed", "tool_id": "t1"},
    ]


async def test_a_plan_is_progress_by_its_current_step() -> None:
    done, now, next_ = (step("Look", "completed"), step("Think", "in_progress"), step("Write", "pending"))
    heard = await told(
        updates(
            s.AgentPlanUpdate(entries=(done, next_, now)),
            s.AgentPlanUpdate(entries=(done, done, next_)),
            s.AgentPlanUpdate(entries=(done, done)),
        ),
        "progress",
    )
    assert [(fields["message"], fields["percent"], fields["stage"]) for fields in heard] == [
        ("Think", 33.3, "plan"),
        ("Write", 66.7, "plan"),
        ("Look", 100.0, "plan"),
    ]
    assert heard[2]["entries"] == [{"content": "Look", "priority": "medium", "status": "completed"}] * 2


async def test_plans_in_other_forms() -> None:
    heard = await told(
        updates(
            s.PlanUpdate(plan=s.PlanMarkdown(plan_id="p", content="\n## The plan\n- Look\n")),
            s.PlanUpdate(plan=s.PlanMarkdown(plan_id="p", content="")),
            s.PlanUpdate(plan=s.PlanFile(plan_id="q", uri="file:///plan.md")),
            s.PlanRemoved(plan_id="q"),
        ),
        "progress",
    )
    assert heard == [
        {"message": "The plan", "markdown": "\n## The plan\n- Look\n", "stage": "plan"},
        {"message": "", "markdown": "", "stage": "plan"},
        {"message": "file:///plan.md", "uri": "file:///plan.md", "stage": "plan"},
    ]


async def test_pieces_of_messages_are_partial_where_they_are_text() -> None:
    image = s.ImageContent(data="aGk=", mime_type="image/png")

    async def play(turn: Turn) -> None:
        turn.think("Hm.")
        turn.say("One ")
        turn.say("two", message_id="m1")
        turn.update(s.AgentMessageChunk(content=image))

    assert await told(play, "partial") == [{"text": "One "}, {"text": "two", "message_id": "m1"}]


async def test_a_notice_is_a_log() -> None:
    heard = await told(
        updates(
            s.NoticeUpdate(severity="warning", title="Slow", description="The model is busy"),
            s.NoticeUpdate(severity="info", title="Hello"),
        ),
        "log",
    )
    assert heard == [
        {"message": "Slow", "level": "warning", "source": "agent", "detail": "The model is busy"},
        {"message": "Hello", "level": "info", "source": "agent"},
    ]


async def test_a_line_of_standard_error_is_a_log(tmp_path: Path) -> None:
    played = ScriptedAgent(script.floods_stderr(80).asks("May I?", expect="allow_once").says("Done"))
    handlers = Handlers()
    heard: list[AgentLog] = []
    logged = anyio.Event()

    @handlers.on("log")
    async def note(log: AgentLog) -> None:
        heard.append(log)
        logged.set()

    @handlers.on("approval")
    async def approve(approval: AgentApproval) -> bool:
        await logged.wait()
        return True

    async with open_agent(command=played.program(tmp_path)) as agent:
        with anyio.fail_after(30):
            assert await agent.think().text("Go").listen(handlers) == "Done"
    assert heard[0].level == "info"
    assert heard[0].message == "." * 79


async def test_messages_without_a_handler_are_not_made() -> None:
    handlers = Handlers()
    seen: list[object] = []
    handlers.on("result")(seen.append)

    async def play(turn: Turn) -> None:
        turn.update(call(status="pending"))
        turn.update(s.NoticeUpdate(severity="info", title="Hello"))
        turn.update(s.AgentPlanUpdate(entries=(step("Look", "pending"),)))
        turn.say("Done")

    async with scripted(play) as agent:
        with anyio.fail_after(SOON):
            stream = agent.think().text("Go").stream(include="all")
            assert await listen(stream, handlers) == "Done"
            assert "unhandled" not in {event.type async for event in stream}
    assert seen == [{"text": "Done"}]


# Questions


async def asked(make: Callable[[str], Any], type_: str) -> dict[str, Any]:
    """Return the message by which a handler is asked this."""
    handlers = Handlers()
    heard: list[dict[str, Any]] = []

    async def answer(fields: dict[str, Any]) -> bool:
        heard.append(fields)
        return False

    handlers.on(type_)(answer)

    async def play(turn: Turn) -> None:
        request = make(turn.session_id)
        if isinstance(request, s.RequestPermissionRequest):
            await turn.client.request_permission(request)
        else:
            await turn.client.create_elicitation(request)

    async with scripted(play, permissions="ask") as agent:
        with anyio.fail_after(SOON):
            await agent.think().text("Go").listen(handlers)
    (fields,) = heard
    return fields


async def test_a_permission_is_an_approval() -> None:
    fields = await asked(permission, "approval")
    assert fields.pop("options")[0] == {"id": "a", "name": "Always", "kind": "allow_always"}
    assert fields == {
        "description": "rm -rf build",
        "kind": "execute",
        "command": "rm -rf build",
        "paths": [],
        "input": {"command": "rm -rf build"},
        "id": "q1",
        "tool_id": "t1",
    }


async def test_a_permission_for_a_tool_names_it() -> None:
    patch = s.ToolCallUpdate(tool_call_id="t2", title="create issue", name="create_issue")
    fields = await asked(lambda session: permission(session, patch), "approval")
    assert fields["tool"] == "create_issue"
    assert "command" not in fields


async def test_a_form_is_a_question_with_its_choices() -> None:
    def make(session_id: str) -> s.ElicitationFormMode:
        names = {
            "alg": titled(rs="RS256 (usual)", hs="HS256"),
            "note": s.StringPropertySchema(description="Anything else?"),
        }
        return form(session_id, names, required=("alg",), title="Keys", description="How to sign")

    fields = await asked(make, "question")
    assert fields.pop("fields")[0]["name"] == "alg"
    assert fields == {
        "question": "Which?",
        "context": "Keys\nHow to sign",
        "options": ["RS256 (usual)", "HS256"],
        "id": "q1",
    }


async def test_titles_that_do_not_tell_choices_apart_are_not_shown() -> None:
    fields = await asked(lambda id_: form(id_, {"alg": titled(rs="Sign", hs="Sign")}), "question")
    assert fields["options"] == ["rs", "hs"]


async def test_the_only_field_describes_the_question() -> None:
    field = s.StringPropertySchema(description="In one word")
    fields = await asked(lambda id_: form(id_, {"name": field}), "question")
    assert fields["context"] == "In one word"
    assert "options" not in fields


async def test_two_choices_are_in_the_fields_alone() -> None:
    fields = await asked(lambda id_: form(id_, {"one": titled(a="A"), "two": titled(b="B")}), "question")
    assert "options" not in fields
    assert [field["choices"] for field in fields["fields"]] == [
        [{"value": "a", "title": "A"}],
        [{"value": "b", "title": "B"}],
    ]


async def test_a_web_page_is_a_question() -> None:
    fields = await asked(page, "question")
    assert fields == {"question": "Log in", "url": "https://login.example/start", "id": "q1"}


# The classes for messages


async def test_each_type_has_a_class() -> None:
    handlers = Handlers()
    heard: list[object] = []

    @handlers.on("progress")
    async def progress(message: AgentProgress) -> None:
        heard.append(message)

    @handlers.on("partial")
    async def partial(message: AgentPartial) -> None:
        heard.append(message)

    @handlers.on("log")
    async def log(message: AgentLog) -> None:
        heard.append(message)

    @handlers.on("question")
    async def question(message: AgentQuestion) -> str:
        heard.append(message)
        return "HS256"

    @handlers.on("approval")
    async def approval(message: AgentApproval) -> bool:
        heard.append(message)
        return True

    @handlers.on("result")
    async def result(message: AgentResult) -> None:
        heard.append(message)

    played = ScriptedAgent(
        script.plans("Look", "Write", done=1)
        .updates({"sessionUpdate": "notice", "severity": "info", "title": "Hello"})
        .asks_form("Which?", {"type": "object", "properties": {"alg": {"type": "string", "enum": ["HS256"]}}})
        .asks("May I?", expect="allow_once")
        .says("Done")
    )
    async with played.open(permissions="ask") as agent:
        with anyio.fail_after(SOON):
            await agent.think().text("Go").listen(handlers)
    assert AgentProgress(message="Write", percent=50, stage="plan") in heard
    assert AgentPartial(text="Done") in heard
    assert AgentLog(message="Hello", level="info") in heard
    assert AgentQuestion(question="Which?", options=["HS256"]) in heard
    assert AgentApproval(description="May I?", kind="other", paths=[]) in heard
    assert heard[-1] == AgentResult(text="Done")
