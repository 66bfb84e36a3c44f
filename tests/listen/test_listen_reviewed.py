"""What must not happen while somebody listens: found by those who tried to break it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from asking import answered, permission
from line_programs import Program, program
from pydantic import BaseModel, ConfigDict, computed_field
from scripted import Turn, scripted

from thinkwell import MessageInvalid, QuestionsStopped, replay
from thinkwell.listen import AgentFailure, AgentPartial, AgentProgress, Handlers, listen
from thinkwell.questions import Question, Reply
from thinkwell.testing import ScriptedAgent, script, virtual_backend
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.anyio


def _nothing(message: object) -> None:
    pass


async def asks_often(turn: Turn) -> None:
    for _ in range(30):
        await answered(turn, permission(turn.session_id))
    turn.say("Done")


async def test_what_the_policy_allows_is_asked_of_nobody_and_counts_for_nothing() -> None:
    handlers = Handlers()
    handlers.on("progress")(_nothing)
    async with scripted(asks_often, permissions="allow") as agent:
        with anyio.fail_after(5):
            assert await agent.think().text("Go").listen(handlers) == "Done"


async def test_what_is_asked_of_somebody_counts() -> None:
    handlers = Handlers(max_repeats=3)
    asked: list[object] = []

    @handlers.on("approval")
    async def decide(approval: object) -> bool:
        asked.append(approval)
        return False

    async with scripted(asks_often) as agent:
        with anyio.fail_after(5), pytest.raises(QuestionsStopped, match="more than 3 times"):
            await agent.think().text("Go").listen(handlers)
    assert len(asked) == 3


class Broken(BaseModel):
    score: int

    @computed_field
    def worth(self) -> int:
        raise KeyError("no price")


async def test_a_result_that_cannot_be_written_is_told_plainly() -> None:
    handlers = Handlers()
    handlers.on("result")(_nothing)
    async with ScriptedAgent(script.returns({"score": 1})).open() as agent:
        with anyio.fail_after(5), pytest.raises(TypeError, match="cannot be written as JSON"):
            await agent.think(Broken).text("Go").listen(handlers)


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")

    message: str


async def test_names_that_an_agent_has_chosen_do_nothing_in_an_error() -> None:
    handlers = Handlers()

    @handlers.on("progress")
    def note(message: Strict) -> None:
        raise AssertionError(message)

    nasty = {f"\x1b[2J\nAgent: all is well {number}": 1 for number in range(1000)}

    async def play(program: Program) -> None:
        await program.says("progress", message="x", **nasty)

    async with program(play) as agent:
        with anyio.fail_after(5), pytest.raises(MessageInvalid) as failed:
            await agent.think().text("Go").listen(handlers)
    text = str(failed.value)
    assert "\x1b" not in text
    assert "\n" not in text
    assert len(text) < 5000
    assert len(failed.value.errors) == 20


FLAG = s.ElicitationSchema(properties={"ok": s.BooleanPropertySchema()}, required=("ok",))


def _itself(value: bool) -> object:
    return value


def _with_reason(value: bool) -> object:
    return Reply(value, "since")


@pytest.mark.parametrize("wrap", [_itself, _with_reason])
@pytest.mark.parametrize("value", [True, False])
async def test_a_reason_changes_no_answer(value: bool, wrap: Callable[[bool], object]) -> None:
    handlers = Handlers()
    told: list[Any] = []

    @handlers.on("question")
    async def decide(question: object) -> object:
        return wrap(value)

    async def play(turn: Turn) -> None:
        request = s.ElicitationFormMode(message="Ok?", session_id=turn.session_id, requested_schema=FLAG)
        told.append(await answered(turn, request))

    async with scripted(play, permissions="ask") as agent:
        with anyio.fail_after(5):
            await agent.think().text("Go").listen(handlers)
    assert (told[0].action, told[0].content) == ("accept", {"ok": value})


@pytest.mark.parametrize("code", ["E42", 7])
async def test_an_error_keeps_its_code(code: object) -> None:
    handlers = Handlers()
    seen: list[Any] = []

    @handlers.on("error")
    def failed(message: dict[str, Any]) -> None:
        seen.append(message)

    async def play(program: Program) -> None:
        await program.says("error", message="No disk", code=code, hint="make room")

    async with program(play) as agent:
        with anyio.fail_after(5), pytest.raises(Exception, match="No disk"):
            await agent.think().text("Go").listen(handlers)
    assert seen == [{"message": "No disk", "code": code, "hint": "make room"}]


async def test_a_code_of_another_form_is_no_code_of_the_class() -> None:
    handlers = Handlers()
    seen: list[AgentFailure] = []
    handlers.on("error")(_collector(seen))

    async def play(program: Program) -> None:
        await program.says("error", message="No disk", code="E42")

    async with program(play) as agent:
        with anyio.fail_after(5), pytest.raises(Exception, match="No disk"):
            await agent.think().text("Go").listen(handlers)
    assert seen == [AgentFailure(message="No disk")]


def _collector(seen: list[AgentFailure]) -> Callable[[AgentFailure], None]:
    def failed(failure: AgentFailure) -> None:
        seen.append(failure)

    return failed


VIRTUAL = pytest.mark.parametrize(
    "anyio_backend", [virtual_backend("asyncio"), virtual_backend("trio")], ids=["asyncio", "trio"]
)


@VIRTUAL
async def test_an_agent_that_goes_on_talking_keeps_nobody() -> None:
    handlers = Handlers()
    heard: list[str] = []

    @handlers.on("partial")
    async def slow(partial: AgentPartial) -> None:
        await anyio.sleep(1)
        heard.append(partial.text)

    told = script.returns({"message": "Done"})
    for number in range(100):
        told = told.pauses(0.5).says(f"{number}")
    async with ScriptedAgent(told).open() as agent:
        begun = anyio.current_time()
        await agent.think(Strict).text("Go").listen(handlers)
        assert anyio.current_time() - begun < 30
        assert 10 <= len(heard) <= 20


async def test_a_handler_of_on_question_is_named_when_it_fails(caplog: pytest.LogCaptureFixture) -> None:
    def fails(question: Question) -> bool:
        raise LookupError("no idea")

    async with scripted(asks_often, on_question=fails) as agent:
        stream = agent.think().text("Go").stream()
        assert await listen(stream, Handlers(max_repeats=None)) == "Done"
    assert "the handler failed over question" in caplog.text


async def test_an_agent_that_is_denied_the_same_for_ever_is_ended() -> None:
    handlers = Handlers()
    heard: list[str] = []

    @handlers.on("progress")
    def note(progress: AgentProgress) -> None:
        heard.append(json.dumps(progress.message))

    async with scripted(asks_often) as agent:
        with anyio.fail_after(5):
            with pytest.raises(QuestionsStopped):
                await agent.think().text("Go").listen(handlers)


async def test_a_listen_that_is_refused_is_no_run(tmp_path: Path) -> None:
    handlers = Handlers()
    handlers.on("approval")(_nothing)
    recording = tmp_path / "recording"
    async with ScriptedAgent(script.says("Hi")).open(permissions="deny", record=recording) as agent:
        with pytest.raises(ValueError, match='permissions="deny"'):
            await agent.think().text("Go").listen(handlers)
        assert await agent.think().text("Go").run() == "Hi"
    assert await replay(recording).result == "Hi"  # the first run that it holds


async def test_a_handler_that_fails_when_it_is_no_more_asked_keeps_no_result_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    handlers = Handlers()
    begun = anyio.Event()

    @handlers.on("question")
    async def fails(question: object) -> str:
        begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            raise LookupError("while cleaning up")

    async def play(program: Program) -> None:
        await program.says("question", question="Which?")
        await begun.wait()
        await program.says("result", text="Done")

    async with program(play) as agent:
        with anyio.fail_after(5):
            assert await agent.think().text("Go").listen(handlers) == "Done"
    assert "has failed over a question that had ended" in caplog.text
