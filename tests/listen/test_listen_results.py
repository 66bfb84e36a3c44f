"""Results are told, and the rest of the turn is heard, but not waited for without end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest
from listen.line_programs import hears, program
from listen.talkers import SOON
from pydantic import BaseModel, computed_field

from thinkwell.listen import AgentPartial, Handlers
from thinkwell.testing import ScriptedAgent, script, virtual_backend

if TYPE_CHECKING:
    from lines.program import Program

pytestmark = pytest.mark.anyio

VIRTUAL = pytest.mark.parametrize(
    "anyio_backend", [virtual_backend("asyncio"), virtual_backend("trio")], ids=["asyncio", "trio"]
)


class Report(BaseModel):
    summary: str


DONE = script.returns({"summary": "Done"})


async def test_a_last_word_is_heard() -> None:
    handlers = Handlers()
    heard: list[str] = []

    @handlers.on("partial")
    async def listen(partial: AgentPartial) -> None:
        heard.append(partial.text)

    async with ScriptedAgent(DONE.says("That was all.")).open() as agent:
        with anyio.fail_after(SOON):
            report = await agent.think(Report).text("Go").listen(handlers)

    assert report.summary == "Done"
    assert "".join(heard) == "That was all."


@VIRTUAL
async def test_a_turn_that_goes_on_without_end_keeps_no_result_back() -> None:
    async with ScriptedAgent(DONE.hangs()).open() as agent:
        begun = anyio.current_time()

        report = await agent.think(Report).text("Go").listen(Handlers(), timeout=600)

        assert report.summary == "Done"
        assert 10 <= anyio.current_time() - begun < 11


@VIRTUAL
async def test_what_is_asked_behind_that_is_nobodys() -> None:
    handlers = Handlers()

    @handlers.on("approval")
    async def decide(approval: object) -> bool:
        raise AssertionError(approval)

    late = DONE.pauses(20).asks("Delete it", expect="reject_once")
    async with ScriptedAgent(late).open() as agent:
        stream = agent.think(Report).text("Go")
        assert (await stream.listen(handlers)).summary == "Done"
        await anyio.sleep(60)


class Broken(BaseModel):
    score: int

    @computed_field
    def worth(self) -> int:
        raise KeyError("no price")


async def test_a_result_that_cannot_be_written_is_told_plainly() -> None:
    handlers = Handlers()
    handlers.on("result")(hears)
    async with ScriptedAgent(script.returns({"score": 1})).open() as agent:
        with anyio.fail_after(SOON), pytest.raises(TypeError, match="cannot be written as JSON"):
            await agent.think(Broken).text("Go").listen(handlers)


@VIRTUAL
async def test_an_agent_that_goes_on_talking_keeps_nobody() -> None:
    handlers = Handlers()
    heard: list[str] = []

    @handlers.on("partial")
    async def slow(partial: AgentPartial) -> None:
        await anyio.sleep(1)
        heard.append(partial.text)

    told = DONE
    for number in range(100):
        told = told.pauses(0.5).says(f"{number}")
    async with ScriptedAgent(told).open() as agent:
        begun = anyio.current_time()
        await agent.think(Report).text("Go").listen(handlers)
        assert anyio.current_time() - begun < 30
        assert 10 <= len(heard) <= 20


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
        await program.say("question", question="Which?")
        await begun.wait()
        await program.say("result", text="Done")

    async with program(play) as agent:
        with anyio.fail_after(SOON):
            assert await agent.think().text("Go").listen(handlers) == "Done"
    assert "has failed over a question that had ended" in caplog.text
