"""Forms and web pages that an agent asks about, and who answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import msgspec
import pytest
from asking import ask, opened
from scripted import Played, Proceed, Turn, scripted

from thinkwell import (
    AnswerInvalid,
    FormQuestion,
    PermissionPolicy,
    Question,
    Rule,
    StopRun,
    ThoughtStream,
    UrlQuestion,
    events,
)
from thinkwell_acp import RpcError
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Mapping

    from thinkwell import Answer

SCHEMA = s.ElicitationSchema(
    title="Deployment",
    properties={
        "name": s.StringPropertySchema(title="Name", min_length=2),
        "size": s.IntegerPropertySchema(minimum=1, maximum=9, default=3),
        "fast": s.BooleanPropertySchema(),
        "zones": s.MultiSelectPropertySchema(items=s.StringMultiSelectItems(enum=("a", "b", "c"))),
    },
    required=("name",),
)


def form(session_id: str) -> s.ElicitationFormMode:
    return s.ElicitationFormMode(
        session_id=session_id, tool_call_id="t7", message="Where to?", requested_schema=SCHEMA
    )


def page(session_id: str, url: str = "https://login.example/start?x=1") -> s.ElicitationUrlMode:
    return s.ElicitationUrlMode(session_id=session_id, message="Log in", elicitation_id="e1", url=url)


def handler_of(answer: Any, seen: list[Question] | None = None) -> Any:
    async def handler(question: Question) -> Any:
        if seen is not None:
            seen.append(question)
        return answer

    return handler


# What is offered


@pytest.mark.parametrize(
    ("settings", "offered"),
    [
        ({}, False),
        ({"permissions": "allow"}, False),
        ({"permissions": PermissionPolicy(otherwise="deny")}, False),
        ({"permissions": PermissionPolicy(otherwise="ask")}, True),
        ({"permissions": PermissionPolicy(rules=(Rule(verdict="ask", kind="edit"),))}, True),
        ({"permissions": "ask"}, True),
        ({"permissions": "ask", "on_question": handler_of(None)}, True),
        ({"permissions": "allow", "on_question": handler_of(None)}, True),
        ({"permissions": PermissionPolicy(otherwise="deny"), "on_question": [handler_of(None)]}, True),
    ],
)
async def test_forms_are_offered_where_they_can_be_answered(
    settings: Mapping[str, Any], offered: bool
) -> None:
    handler = Played([])
    async with scripted(agent=handler, **settings):
        capabilities = handler.requests("initialize")[0].client_capabilities.elicitation
    if offered:
        assert capabilities is not None
        assert capabilities.form is not None
        assert capabilities.url is not None
    else:
        assert capabilities is None


def unknown(session_id: str) -> s.OtherElicitationMode:
    return s.OtherElicitationMode(session_id=session_id, message="?", mode="_smoke")


@pytest.mark.parametrize(("permissions", "request_"), [("allow", form), ("allow", page), ("ask", unknown)])
async def test_what_was_not_offered_is_refused(permissions: Any, request_: Any) -> None:
    codes: list[int] = []

    async def script(turn: Turn) -> None:
        with pytest.raises(RpcError) as caught:
            await turn.client.create_elicitation(request_(turn.session_id))
        codes.append(caught.value.code)

    async with scripted(script, permissions=permissions) as agent:
        await agent.think().text("Go").stream().wait()
    assert codes == [-32602]


# Forms


async def test_a_form_is_filled_in_by_a_handler() -> None:
    seen: list[Question] = []
    values = {"name": "web", "fast": True, "zones": ["a", "c"]}
    asked = await ask(form, permissions="ask", on_question=handler_of(values, seen))
    (response,) = asked.told
    assert response.action == "accept"
    assert response.content == {"name": "web", "size": 3, "fast": True, "zones": ("a", "c")}
    (question,) = seen
    assert isinstance(question, FormQuestion)
    assert (question.title, question.tool_id, question.session_id) == ("Where to?", "t7", "session-1")
    assert [field.name for field in question.fields] == ["name", "size", "fast", "zones"]
    assert (question.timeout, question.heading, question.description) == (300, "Deployment", "")
    shown, answer = asked.question, asked.answer
    assert (shown.asks, shown.fields, shown.options) == ("form", question.fields, ())
    assert (answer.choice, answer.by) == ("accept", "handler")
    assert answer.filled == ("name", "size", "fast", "zones")
    assert b"web" not in events.event_to_json(answer)  # it may be a secret


@pytest.mark.parametrize("no", ["decline", "deny", False, None])
async def test_a_form_that_is_not_filled_in_is_declined(no: Any) -> None:
    asked = await ask(form, permissions="ask", on_question=handler_of(no))
    assert (asked.told[0].action, asked.told[0].content) == ("decline", None)
    assert (asked.answer.choice, asked.answer.filled) == ("decline", ())


async def test_a_form_that_is_filled_in_wrongly_goes_on_to_the_next() -> None:
    asked = await ask(
        form, permissions="ask", on_question=[handler_of({"name": "w"}), handler_of({"name": "web"})]
    )
    assert asked.told[0].content == {"name": "web", "size": 3}
    (verdict, by, why), _ = asked.verdicts
    assert (verdict, by) == (None, "handler")
    assert why == "the handler filled in wrongly: name"  # and not with what, which may be a secret


@pytest.mark.parametrize("yes", [True, "allow", "accept"])
async def test_a_form_with_something_to_fill_in_is_not_accepted_by_a_word(yes: Any) -> None:
    asked = await ask(form, permissions="ask", on_question=handler_of(yes))
    assert asked.told[0].action == "decline"


async def test_a_form_with_nothing_to_fill_in_is_accepted_by_a_word() -> None:
    def confirm(session_id: str) -> s.ElicitationFormMode:
        schema = s.ElicitationSchema(properties={})
        return s.ElicitationFormMode(session_id=session_id, message="Sure?", requested_schema=schema)

    asked = await ask(confirm, permissions="ask", on_question=handler_of(True))
    assert (asked.told[0].action, asked.told[0].content) == ("accept", {})


async def test_the_policy_has_no_say_in_forms() -> None:
    for policy in ("allow", PermissionPolicy(otherwise="deny")):
        asked = await ask(form, permissions=policy, on_question=handler_of({"name": "web"}))
        assert asked.told[0].action == "accept"


async def test_a_program_fills_in_a_form_after_a_mistake() -> None:
    async def meanwhile(stream: ThoughtStream[Any]) -> None:
        question = await opened(stream)
        (view,) = stream.view.questions
        assert (view.asks, view.fields) == ("form", question.fields)
        with pytest.raises(AnswerInvalid) as caught:
            stream.answer(question.id, {"name": "w", "size": 40, "color": "red"})
        assert set(caught.value.errors) == {"name", "size", "color"}
        stream.answer(question.id, {"name": "web", "size": 4})

    asked = await ask(form, permissions="ask", meanwhile=meanwhile)
    assert asked.told[0].content == {"name": "web", "size": 4}


@pytest.mark.virtual_time
async def test_an_unanswered_form_is_cancelled_at_its_deadline() -> None:
    asked = await ask(form, permissions="ask", question_timeout=20)
    assert (asked.told[0].action, asked.answer.choice, asked.answer.by) == ("cancel", "cancel", "deadline")


async def test_a_cancelled_turn_cancels_its_forms() -> None:
    async def meanwhile(stream: ThoughtStream[Any]) -> None:
        await opened(stream)
        stream.cancel()

    asked = await ask(form, permissions="ask", meanwhile=meanwhile)
    assert asked.told[0].action == "cancel"
    assert (asked.answer.choice, asked.answer.by) == (None, "cancel")


async def test_a_form_can_end_the_run() -> None:
    asked = await ask(form, permissions="ask", on_question=handler_of(StopRun("too many forms")))
    assert asked.told[0].action in ("decline", "cancel")


# Web pages


@pytest.mark.parametrize(
    ("answer", "action"),
    [(True, "accept"), ("accept", "accept"), (False, "decline"), ({"a": 1}, "decline")],
)
async def test_a_page_is_opened_or_not(answer: Any, action: str) -> None:
    seen: list[Question] = []
    asked = await ask(page, permissions="ask", on_question=handler_of(answer, seen))
    assert (asked.told[0].action, asked.told[0].content) == (action, None)
    (question,) = seen
    assert isinstance(question, UrlQuestion)
    assert (question.title, question.url) == ("Log in", "https://login.example/start?x=1")
    assert question.host == "login.example"
    assert (asked.question.asks, asked.question.url) == ("url", question.url)
    assert asked.answer.choice == action


@pytest.mark.parametrize("url", ["javascript:alert(1)", "file:///etc/passwd", "https://", "not a page"])
async def test_what_is_no_web_page_is_declined_unseen(url: str, caplog: pytest.LogCaptureFixture) -> None:
    seen: list[Question] = []

    async def script(turn: Turn) -> None:
        response = await turn.client.create_elicitation(page(turn.session_id, url))
        assert response.action == "decline"

    async with scripted(script, permissions="ask", on_question=handler_of(True, seen)) as agent:
        await agent.think().text("Go").stream().wait()
    assert not seen
    assert "not a web page" in caplog.text


async def test_the_agent_tells_when_a_page_is_done_with() -> None:
    done = anyio.Event()

    async def script(turn: Turn) -> None:
        note = s.CompleteElicitationNotification(elicitation_id="e1")
        turn.client.complete_elicitation(note)  # not asked yet
        await turn.client.create_elicitation(page(turn.session_id))
        for id_ in ("unknown", "e1", "e1"):
            turn.client.complete_elicitation(s.CompleteElicitationNotification(elicitation_id=id_))
        turn.say("Done")
        await done.wait()

    async with scripted(script, permissions="ask", on_question=handler_of(True)) as agent:
        stream = agent.think().text("Go").stream(include={"question", "question_done", "message"})
        with anyio.fail_after(30):
            seen: list[events.ThoughtEvent] = []
            async for event in stream:
                seen.append(event)
                if isinstance(event, events.Message):
                    done.set()
    question, completed, _ = seen
    assert isinstance(question, events.QuestionAsked)
    assert isinstance(completed, events.QuestionCompleted)
    assert completed.id == question.id


@pytest.mark.long
async def test_of_many_pages_the_first_are_forgotten() -> None:
    async def script(turn: Turn) -> None:
        for number in range(1001):
            asked = page(turn.session_id, f"https://login.example/{number}")
            await turn.client.create_elicitation(msgspec.structs.replace(asked, elicitation_id=f"e{number}"))
        for id_ in ("e0", "e1000"):
            turn.client.complete_elicitation(s.CompleteElicitationNotification(elicitation_id=id_))
        turn.say("Done")

    async with scripted(script, permissions="ask", on_question=handler_of(True)) as agent:
        stream = agent.think().text("Go").stream(include={"question", "question_done"})
        with anyio.fail_after(60):
            *_, last, completed = [event async for event in stream]
    assert isinstance(last, events.QuestionAsked)
    assert isinstance(completed, events.QuestionCompleted)
    assert completed.id == last.id


async def test_a_page_that_was_declined_is_never_done_with() -> None:
    async def script(turn: Turn) -> None:
        await turn.client.create_elicitation(page(turn.session_id))
        turn.client.complete_elicitation(s.CompleteElicitationNotification(elicitation_id="e1"))
        turn.say("Done")

    async with scripted(script, permissions="ask", on_question=handler_of(False)) as agent:
        stream = agent.think().text("Go").stream(include={"question_done"})
        assert [event async for event in stream] == []


# Questions of no session


async def test_a_question_about_a_request_of_ours_reaches_the_handlers() -> None:
    seen: list[Question] = []
    told: list[str] = []

    async def ask(request: s.NewSessionRequest, proceed: Proceed) -> object:
        question = s.ElicitationFormMode(
            request_id=2,
            message="Which account?",
            requested_schema=s.ElicitationSchema(properties={"who": s.StringPropertySchema()}),
        )
        response = await handler.client.create_elicitation(question)
        told.append(str(response.action))
        return await proceed(request)

    async def script(turn: Turn) -> None:
        turn.say("Done")

    async def answer(question: Question) -> Answer:
        seen.append(question)
        return {"who": "Ada"}

    handler = Played([script], answers={"session/new": ask})
    async with scripted(agent=handler, permissions="ask", on_question=answer) as agent:
        assert await agent.think().text("Go").run() == "Done"
    assert told == ["accept"]
    (question,) = seen
    assert question.session_id is None
    assert question.run_id is not None  # of the run whose session is being opened


async def test_a_question_about_a_request_that_opens_no_session_reaches_the_handlers() -> None:
    seen: list[Question] = []

    async def ask_first(request: s.ListSessionsRequest, proceed: Proceed) -> object:
        asked = s.ElicitationUrlMode(
            request_id=2, message="Log in", elicitation_id="e1", url="https://x.example"
        )
        response = await handler.client.create_elicitation(asked)
        assert response.action == "accept"
        return await proceed(request)

    lists = s.AgentCapabilities(session_capabilities=s.SessionCapabilities(list=s.SessionListCapabilities()))
    handler = Played(answers={"session/list": ask_first}, capabilities=lists)
    async with scripted(agent=handler, permissions="ask", on_question=handler_of(True, seen)) as agent:
        assert await agent.list_sessions() == []
    (question,) = seen
    assert (question.session_id, question.run_id) == (None, None)
