"""What a fresh user does wrong, and programs that write nearly what is expected."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, cast

import anyio
import pytest
from listen.line_programs import listened, program
from listen.talkers import SOON
from pydantic import BaseModel

from thinkwell import ResultInvalid, wait_for_answer
from thinkwell.listen import (
    AgentApproval,
    AgentLog,
    AgentPartial,
    AgentProgress,
    AgentQuestion,
    Handlers,
    Transcript,
    listen,
)
from thinkwell.questions import FormQuestion, Question
from thinkwell.testing import ScriptedAgent, script

if TYPE_CHECKING:
    from lines.program import Program

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("annotation", "type_", "fields", "read"),
    [
        (AgentQuestion, "question", {"text": "Which?"}, AgentQuestion(question="Which?")),
        (AgentQuestion, "question", {"message": "Which?"}, AgentQuestion(question="Which?")),
        (
            AgentQuestion,
            "question",
            {"question": "How many?", "options": [1, 2.5, "three"]},
            AgentQuestion(question="How many?", options=["1", "2.5", "three"]),
        ),
        (AgentApproval, "approval", {"message": "Delete it"}, AgentApproval(description="Delete it")),
        (AgentPartial, "partial", {"delta": "He"}, AgentPartial(text="He")),
        (AgentPartial, "partial", {"chunk": "He"}, AgentPartial(text="He")),
        (AgentPartial, "partial", {"content": "He"}, AgentPartial(text="He")),
        (AgentProgress, "progress", {"stage": "tests"}, AgentProgress(message="tests", stage="tests")),
        (AgentLog, "log", {"text": "Hm", "level": 30}, AgentLog(message="Hm", level="30")),
    ],
)
async def test_the_classes_read_what_programs_write(
    annotation: type, type_: str, fields: dict[str, Any], read: object
) -> None:
    handlers = Handlers()
    heard: list[object] = []

    def handle(message: Any) -> object:
        heard.append(message)
        return False if type_ in ("question", "approval") else None

    handle.__annotations__["message"] = annotation
    handlers.on(type_)(handle)

    async def play(program: Program) -> None:
        await program.say(type_, **fields)
        if type_ in ("question", "approval"):
            await program.response()
        await program.say("result", text="Done")

    assert await listened(play, handlers) == "Done"
    assert heard == [read]


@pytest.mark.parametrize(("type_", "meant"), [("aproval", "approval"), ("Question", "question")])
def test_a_type_that_is_nearly_one_is_doubted(
    type_: str, meant: str, caplog: pytest.LogCaptureFixture
) -> None:
    Handlers().on(type_)(print)
    assert f"Handlers.on({type_!r}): do you mean {meant!r}?" in caplog.text


@pytest.mark.parametrize("type_", ["progress", "telemetry", "cost"])
def test_another_type_is_not(type_: str, caplog: pytest.LogCaptureFixture) -> None:
    Handlers().on(type_)(print)
    assert not caplog.records


@pytest.mark.parametrize("given", [None, {}, print])
async def test_what_are_no_handlers(given: object) -> None:
    async with ScriptedAgent(script.says("Hi")).open() as agent:
        with pytest.raises(TypeError, match=r"give a Handlers\(\)"):
            await agent.think().text("Go").listen(cast("Handlers", given))
        stream = agent.think().text("Go").stream()
        with pytest.raises(TypeError, match=r"give a Handlers\(\)"):
            await listen(stream, cast("Handlers", given))
        assert await stream.result == "Hi"


async def test_a_forgotten_return_is_told(caplog: pytest.LogCaptureFixture) -> None:
    handlers = Handlers()
    heard: list[AgentQuestion] = []
    all_heard = anyio.Event()

    @handlers.on("question")
    async def forgets(question: AgentQuestion) -> None:
        heard.append(question)
        if len(heard) == 2:
            all_heard.set()

    async def play(program: Program) -> None:
        for _ in range(2):
            await program.say("question", question="Which?")
        await all_heard.wait()

    await listened(play, handlers)
    warned = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warned) == 1
    assert "forgets()" in warned[0]
    assert "returned None" in warned[0]
    assert "the agent is told nothing and may wait for it" in warned[0]


async def test_a_person_answers_in_words_as_a_handler_does() -> None:
    transcript = Transcript()
    asked: list[Question] = []

    def person(question: Question) -> dict[str, str]:
        asked.append(question)
        return {"answer": "Ada"}

    async def play(program: Program) -> None:
        await program.say("question", question="Who?")
        answer = await program.response()
        await program.say("result", text=answer["value"])

    assert await listened(play, Handlers(transcript=transcript), on_question=person) == "Ada"
    assert isinstance(asked[0], FormQuestion)
    assert [record.answer for record in transcript] == ["Ada"]


async def test_an_answer_that_fits_no_form_is_told_the_fields() -> None:
    async def play(program: Program) -> None:
        await program.say("question", question="Who?", options=["Ada"])
        await program.response()
        await program.say("result", text="Done")

    async with program(play, on_question=wait_for_answer) as agent:
        stream = agent.think().text("Go").stream(include={"question"})
        with anyio.fail_after(SOON):
            async for event in stream:
                with pytest.raises(ValueError, match=r"by the names of its fields \('answer', 'other'\)"):
                    stream.answer(cast("Any", event).id, cast("Any", "Ada"))
                stream.answer(cast("Any", event).id, {"other": "Grace"})
            assert await stream.result == "Done"


class Rating(BaseModel):
    text: str
    score: int


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"text": "t"}, "score: Field required"),
        ({"text": '{"text": "t"}'}, "score: Field required"),
        ({"text": "t", "score": "much"}, "score: Input should be a valid integer"),
    ],
)
async def test_what_a_result_lacks_is_named(fields: dict[str, Any], error: str) -> None:
    async def play(program: Program) -> None:
        await program.say("result", **fields)

    async with program(play) as agent:
        with anyio.fail_after(SOON), pytest.raises(ResultInvalid) as failed:
            await agent.think(Rating).text("Go").run()
    assert any(line.startswith(error) for line in failed.value.errors), failed.value.errors
    assert "in 1 attempt." in str(failed.value)
