"""The same question again and again ends a run, and other questions do not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest
from asking import answered, permission
from listen.line_programs import hears
from listen.talkers import LIMIT, SOON, Protocol, Turn, answering, talking
from scripted import scripted

from thinkwell import QuestionsStopped
from thinkwell.listen import AgentProgress, Handlers, listen

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from scripted import Turn as ScriptedTurn

    from thinkwell import Question

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("kind", ["question", "approval"])
async def test_who_asks_the_same_for_ever_is_stopped(kind: str, protocol: Protocol) -> None:
    async def asks(turn: Turn) -> str:
        number = 0
        while True:
            number += 1
            if kind == "question":
                await turn.ask("What is it called?", options=["Contents", "Files"], id=number)
            else:
                await turn.approve("Write it", id=number)

    with anyio.fail_after(LIMIT):
        async with talking(protocol, asks) as (agent, talker):
            with pytest.raises(QuestionsStopped, match="the same more than 5 times"):
                await agent.think().text("one").listen(answering("Files", max_repeats=5))
            assert [asked.told for asked in talker.asked[:5]] == [
                ["Files" if kind == "question" else True]
            ] * 5
            assert len(talker.asked) == 6
            assert [told for told in talker.asked[5].told if told is not None] == []


async def test_twenty_times_is_what_is_bearable(protocol: Protocol) -> None:
    def asks(times: int) -> Callable[[Turn], Awaitable[str]]:
        async def scene(turn: Turn) -> str:
            for _ in range(times):
                await turn.ask("Go on?")
            return "done"

        return scene

    with anyio.fail_after(LIMIT):
        async with talking(protocol, asks(20), asks(50), asks(21)) as (agent, talker):
            assert await agent.think().text("one").listen(answering("yes")) == "done"
            assert await agent.think().text("two").listen(answering("yes", max_repeats=None)) == "done"
            with pytest.raises(QuestionsStopped):
                await agent.think().text("three").listen(answering("yes"))
    assert [asked.told for asked in talker.asked[:90]] == [["yes"]] * 90


async def test_other_questions_are_not_the_same(protocol: Protocol) -> None:
    async def asks(turn: Turn) -> str:
        for number in range(5):
            await turn.ask(f"Question {number}?")
            await turn.ask("Which?", options=["a", f"{number}"])
            await turn.approve(f"Do {number}")
        return "done"

    with anyio.fail_after(LIMIT):
        async with talking(protocol, asks) as (agent, _talker):
            assert await agent.think().text("one").listen(answering("a", max_repeats=1)) == "done"


async def asks_often(turn: ScriptedTurn) -> None:
    for _ in range(30):
        await answered(turn, permission(turn.session_id))
    turn.say("Done")


async def test_what_the_policy_allows_does_not_count() -> None:
    handlers = Handlers()
    handlers.on("progress")(hears)
    async with scripted(asks_often, permissions="allow") as agent:
        with anyio.fail_after(SOON):
            assert await agent.think().text("Go").listen(handlers) == "Done"


async def test_an_agent_that_is_denied_the_same_for_ever_is_ended() -> None:
    handlers = Handlers()
    heard: list[str] = []

    @handlers.on("progress")
    def note(progress: AgentProgress) -> None:
        heard.append(progress.message)

    async with scripted(asks_often) as agent:
        with anyio.fail_after(SOON):
            with pytest.raises(QuestionsStopped):
                await agent.think().text("Go").listen(handlers)


async def test_a_handler_of_on_question_is_named_when_it_fails(caplog: pytest.LogCaptureFixture) -> None:
    def fails(question: Question) -> bool:
        raise LookupError("no idea")

    async with scripted(asks_often, on_question=fails) as agent:
        stream = agent.think().text("Go").stream()
        assert await listen(stream, Handlers(max_repeats=None)) == "Done"
    assert "the handler failed over question" in caplog.text
