"""What a program asks, and how it gets its answers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from lines.program import Program, every, first, played

from thinkwell import FormQuestion, PermissionQuestion
from thinkwell import events as ev

if TYPE_CHECKING:
    from collections.abc import Callable

    from thinkwell import Agent, ThoughtStream
    from thinkwell.questions import Answer, Question

pytestmark = pytest.mark.anyio


class Asker:
    """Answers questions when the test says so."""

    def __init__(self) -> None:
        self.asked: list[Question] = []
        self.answers: dict[str, Any] = {}
        self._changed = anyio.Event()

    async def __call__(self, question: Question) -> Answer:
        self.asked.append(question)
        self._change()
        while question.title not in self.answers:
            await self._changed.wait()
        answer: Answer = self.answers[question.title]
        return answer

    def _change(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    async def wait_asked(self, number: int) -> None:
        while len(self.asked) < number:
            await self._changed.wait()

    async def answer(self, title: str, answer: Any) -> None:
        self.answers[title] = answer
        self._change()
        await anyio.wait_all_tasks_blocked()


async def asked(
    kind: str, answer: Answer | Callable[[Question], Answer], /, **fields: object
) -> tuple[Any, str]:
    """Return the question that a message becomes, and the line that answers it."""
    questions: list[Question] = []

    def handler(question: Question) -> Answer:
        questions.append(question)
        return answer(question) if callable(answer) else answer

    async with played(permissions="ask", on_question=handler) as (agent, program):
        stream = agent.think().text("Go").stream()
        await program.hear()
        await program.say(kind, **fields)
        line = await program.hear()
        await program.say("result", text="done")
        await stream.result
    (question,) = questions
    assert question.message == {"type": kind, **fields}
    return question, line


def response(kind: str, value: object, **more: object) -> str:
    message = {"type": "response", "in_reply_to": kind, "value": value, **more}
    return json.dumps(message, separators=(",", ":"), ensure_ascii=False)


# Questions


async def test_a_question_is_a_form() -> None:
    question, line = await asked("question", {"answer": "K\u00e4se"}, question="Which?", context="For lunch")
    assert isinstance(question, FormQuestion)
    assert question.title == "Which?"
    (field,) = question.fields
    assert (field.name, field.type, field.required, field.description) == (
        "answer",
        "string",
        True,
        "For lunch",
    )
    assert line == '{"type":"response","in_reply_to":"question","value":"K\u00e4se"}'


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ({"answer": "B"}, "B"),
        ({"other": "neither"}, "neither"),
        ({"answer": "A", "other": "neither"}, "neither"),
        ({"answer": "A", "other": ""}, "A"),
        ({}, None),
        (False, None),
    ],
)
async def test_options_are_chosen_from(answer: Answer, value: object) -> None:
    question, line = await asked("question", answer, question="Which?", options=["A", "B"], context="c")
    choice, other = question.fields
    assert (choice.name, choice.type, choice.required, choice.description) == ("answer", "choice", False, "c")
    assert [one.value for one in choice.choices] == ["A", "B"]
    assert (other.name, other.type, other.required, other.title) == (
        "other",
        "string",
        False,
        "Something else",
    )
    assert line == response("question", value)


@pytest.mark.parametrize(
    ("options", "offered"),
    [
        (["B", "A", "B"], ["B", "A"]),
        (["", "A", None, ["x"], {"label": "y"}], ["A"]),
        ([1, 2.5, True, "1"], ["1", "2.5", "true"]),
        (["a\x1b[31m\n", "\u202e"], ["a\x1b[31m\n", "\u202e"]),
        ([], None),
        ([""], None),
        ("AB", None),
        ({"a": "b"}, None),
        (7, None),
    ],
)
async def test_odd_options(options: object, offered: list[str] | None) -> None:
    answer = "free" if offered is None else offered[0]
    question, line = await asked("question", {"answer": answer}, question="Which?", options=options)
    field = question.fields[0]
    assert ([one.value for one in field.choices] if offered else None) == offered
    assert len(question.fields) == (2 if offered else 1)
    assert line == response("question", answer)


@pytest.mark.parametrize(
    ("fields", "title"),
    [
        ({"question": "a", "message": "b"}, "a"),
        ({"question": "", "message": "b", "text": "c"}, "b"),
        ({"question": 7, "text": "c"}, "c"),
        ({"question": ["a", "\u00e4"], "x": None}, '{"question":["a","\u00e4"],"x":null}'),
        ({}, "{}"),
    ],
)
async def test_what_a_question_says(fields: dict[str, object], title: str) -> None:
    question, _ = await asked("question", {"answer": "x"}, **fields)
    assert question.title == title


async def test_a_question_without_a_handler_is_answered() -> None:
    async with played() as (agent, program):
        stream = agent.think().text("Go").stream()
        await program.hear()
        await program.say("question", question="Which?")
        assert await program.hear() == response("question", None)
        await program.say("approval", description="Delete")
        assert await program.hear() == response("approval", False)
        await program.say("result", text="done")
        assert await stream.result == "done"


# Approvals


@pytest.mark.parametrize(("answer", "status"), [(True, "completed"), (False, "failed")])
async def test_an_approval_is_a_permission(answer: bool, status: str) -> None:
    fields = {"description": "Delete 3 files", "risk_level": "medium"}

    def decide(_: Question) -> Answer:
        return answer

    async with played(permissions="ask", on_question=decide) as (agent, program):
        stream = agent.think().text("Go").stream(include="all")
        await program.hear()
        assert await program.ask("approval", **fields) is answer
        await program.say("result", text="done")
        question = await first(stream, ev.QuestionAsked)
        assert (question.title, question.asks, question.tool_id) == (
            "Delete 3 files",
            "permission",
            "approval-1",
        )
        assert [(option.id, option.kind) for option in question.options] == [
            ("allow", "allow_once"),
            ("reject", "reject_once"),
        ]
        call = stream.view.tools["approval-1"]
        assert (call.kind, call.input, call.status) == ("other", fields, status)


@pytest.mark.parametrize(
    ("fields", "title"),
    [
        ({"description": "a", "message": "b"}, "a"),
        ({"message": "b", "question": "c"}, "b"),
        ({"description": None, "question": "c"}, "c"),
        ({"text": "d"}, "d"),
        ({"x": 1}, '{"x":1}'),
    ],
)
async def test_what_an_approval_says(fields: dict[str, object], title: str) -> None:
    question, line = await asked("approval", True, **fields)
    assert isinstance(question, PermissionQuestion)
    assert question.title == title
    assert question.input == fields
    assert line == response("approval", True)


async def test_what_is_denied_with_a_reason_is_false() -> None:
    _, line = await asked("approval", lambda _: False, description="Delete", id="x")
    assert line == response("approval", False, id="x")


# Who gets which answer


async def begun(agent: Agent, program: Program) -> ThoughtStream[str]:
    stream = agent.think().text("Go").stream(include="all")
    await program.hear()
    return stream


IDS = [
    (b"7", "7"),
    (b"1.50", "1.50"),
    (b"1e2", "1e2"),
    (b"-0", "-0"),
    (b"123456789012345678901234567890", "123456789012345678901234567890"),
    (b'"a\\u00e4\\n"', r'"a\u00e4\n"'),
    ('"\u00e4 \u2028\x7f"'.encode(), '"\u00e4 \u2028\x7f"'),
    (b'""', '""'),
    (b"null", "null"),
    (b"true", "true"),
    (b'[1, {"a":[]}]', '[1,{"a":[]}]'),
    (b'{"b": 1, "a":2e0}', '{"b":1,"a":2.0}'),
    (b"NaN", "null"),
]


async def test_an_id_comes_back() -> None:
    async with played(permissions="allow") as (agent, program):
        stream = await begun(agent, program)
        for id_, written in IDS:
            await program.write(b'{"id":%b,"type":"approval","description":"d"}\n' % id_)
            start = '{"type":"response","in_reply_to":"approval","value":true,"id":'
            assert await program.hear() == f"{start}{written}}}"
        await program.write(b'{"id":1,"type":"approval","id":2}\n')
        assert await program.hear() == response("approval", True, id=2)  # the last one counts
        await program.say("result")
        await stream.result


async def test_answers_without_an_id_go_out_in_the_order_of_the_questions() -> None:
    asker = Asker()
    async with played(permissions="ask", on_question=asker) as (agent, program):
        stream = await begun(agent, program)
        for title in ("q1", "q2", "q3"):
            await program.say("question", question=title)
        await program.say("approval", description="a1")
        await program.say("question", question="named", id=1)
        await asker.wait_asked(5)
        await asker.answer("q3", {"answer": "3"})
        await asker.answer("q2", {"answer": "2"})
        await asker.answer("named", {"answer": "by name"})
        assert await program.hear() == response("question", "by name", id=1)
        await asker.answer("a1", True)
        assert await program.hear() == response("approval", True)
        await asker.answer("q1", {"answer": "1"})
        assert [await program.hear() for _ in range(3)] == [response("question", str(n)) for n in (1, 2, 3)]
        await program.say("result", text="done")
        assert await stream.result == "done"


async def test_a_question_is_told_before_it_is_asked() -> None:
    async with played(permissions="allow") as (agent, program):
        stream = await begun(agent, program)
        await program.ask("approval", description="d", id=[7])
        await program.say("result")
        report, question = await every(stream, ev.Report, ev.QuestionAsked)
        assert isinstance(report, ev.Report)
        assert (report.kind, report.body, report.message_id) == (
            "approval",
            {"description": "d", "id": [7]},
            [7],
        )
        assert isinstance(question, ev.QuestionAsked)


async def test_no_answer_comes_after_the_result() -> None:
    asker = Asker()
    async with played(permissions="ask", on_question=asker) as (agent, program):
        stream = await begun(agent, program)
        await program.say("question", question="q1")
        await program.say("question", question="q2", id=2)
        await program.say("approval", description="a1")
        await asker.wait_asked(3)
        await program.say("result", text="I did not wait")
        assert await stream.result == "I did not wait"
        assert stream.view.tools["approval-1"].status == "failed"
        again = await begun(agent, program)
        await program.say("question", question="q3")
        await asker.wait_asked(4)
        for title in ("q1", "q2", "a1"):
            await asker.answer(title, {"answer": "late"})
        await asker.answer("q3", {"answer": "in time"})
        assert await program.hear() == response("question", "in time")
        await program.say("error", message="enough")
        await again.wait()


async def test_an_answer_that_is_on_its_way_when_the_result_comes_is_dropped() -> None:
    async with played(permissions="allow") as (agent, program):
        stream = await begun(agent, program)
        await program.write(
            b'{"type":"approval","description":"d"}\n{"type":"question","question":"?"}\n'
            b'{"type":"result","text":"I did not wait"}\n'
        )
        assert await stream.result == "I did not wait"
        stream = agent.think().text("And again").stream()
        assert await program.hear() == "And again"
        await program.say("result")
        await stream.result


async def test_a_cancelled_run_withdraws_its_questions() -> None:
    asker = Asker()
    async with played(permissions="ask", on_question=asker) as (agent, program):
        stream = await begun(agent, program)
        await program.say("question", question="q1")
        await program.say("approval", description="a1")
        await asker.wait_asked(2)
        stream.cancel()
        await stream.wait()
        assert stream.view.tools["approval-1"].status == "cancelled"
        assert not agent.questions
        with pytest.raises(anyio.EndOfStream):
            await program.hear()


# Outside of a prompt


async def test_a_question_before_there_is_a_session_is_answered_at_once() -> None:
    asker = Asker()
    async with played(permissions="ask", on_question=asker) as (_, program):
        await program.say("question", question="May I?", id=1)
        await program.say("approval", description="And that?")
        assert await program.hear() == response("question", None, id=1)
        assert await program.hear() == response("approval", False)
        assert not asker.asked


async def test_a_question_between_prompts_is_asked_in_the_last_session() -> None:
    asker = Asker()
    async with played(permissions="ask", on_question=asker) as (agent, program), agent.session() as session:
        await program.say("question", question="before")
        await asker.answer("before", {"answer": "1"})
        assert await program.hear() == response("question", "1")
        stream = session.think().text("Go").stream()
        await program.hear()
        await program.say("result", text="done")
        assert await stream.result == "done"
        await program.say("approval", description="after", id=7)
        await asker.wait_asked(2)
        stream = session.think().text("Go").stream()
        await program.hear()
        await program.say("result", text="done")
        await stream.wait()
        await asker.answer("after", True)
        assert await program.hear() == response("approval", True, id=7)


async def test_what_was_asked_before_a_prompt_without_an_id_holds_up_no_answer_in_it() -> None:
    asker = Asker()
    async with played(permissions="ask", on_question=asker) as (agent, program), agent.session() as session:
        for title in ("one", "two"):
            await program.say("question", question=title)
            await program.say("approval", description=title)
        await asker.wait_asked(4)
        await asker.answer("two", True)
        assert [question.title for question in agent.questions] == ["one", "one"]
        stream = session.think().text("Go").stream()
        heard = [await program.hear() for _ in range(5)]
        assert heard[-1] == "Go"
        # They are answered in their order, and nothing that somebody has said is left out.
        assert [line for line in heard if "approval" in line] == [
            response("approval", False),
            response("approval", True),
        ]
        questions = [line for line in heard if '"question"' in line]
        assert questions[0] == response("question", None)
        await anyio.wait_all_tasks_blocked()
        assert not agent.questions
        await asker.answer("mine", {"answer": "blue"})
        assert await program.ask("question", question="mine") == "blue"
        await program.say("result", text="done")
        assert await stream.result == "done"


async def test_a_denial_of_the_policy_is_an_answer() -> None:
    async with played(permissions="deny") as (agent, program):
        stream = await begun(agent, program)
        assert await program.ask("approval", description="d") is False
        await program.say("result")
        await stream.result
