"""Questions that are read at once are handled in their order, over ACP and in lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest
from talkers import LIMIT, Turn, talking

from thinkwell import events as ev
from thinkwell.listen import Handlers, Transcript, listen

if TYPE_CHECKING:
    from talkers import Asked, Protocol

    from thinkwell import Question

pytestmark = pytest.mark.anyio

MANY = 20


async def asks_at_once(turn: Turn) -> str:
    """Write many questions of both sorts in one block."""
    asked: list[Asked] = []
    async with turn.talker.at_once():
        for number in range(MANY):
            asked += await turn.asks(f"q{number}"), await turn.asks_for(f"a{number}")
    return " ".join([str(await one.answer()) for one in asked])


TOLD = " ".join(f"said q{number} True" for number in range(MANY))


@pytest.mark.parametrize("concurrency", [1, 3])
async def test_handlers_of_each_type_go_by_the_order(concurrency: int, protocol: Protocol) -> None:
    begun: list[str] = []
    running = [0, 0]
    handlers = Handlers(transcript=(transcript := Transcript()))

    async def think(what: str, index: int) -> None:
        begun.append(what)
        running[index] += 1
        assert running[index] <= concurrency
        for _ in range(len(begun) * 7 % 5):
            await anyio.lowlevel.checkpoint()
        running[index] -= 1

    @handlers.on("question", concurrency=concurrency)
    async def _(question: dict[str, Any]) -> str:
        await think(question["question"], 0)
        return f"said {question['question']}"

    @handlers.on("approval", concurrency=concurrency)
    async def _(approval: dict[str, Any]) -> bool:
        await think(approval["description"], 1)
        return True

    with anyio.fail_after(LIMIT):
        async with talking(protocol, asks_at_once) as (agent, _talker):
            stream = agent.think().text("Go").stream(include="all")
            assert await listen(stream, handlers) == TOLD
            asked = [event.title async for event in stream if isinstance(event, ev.QuestionAsked)]
    for letter in "qa":
        expected = [f"{letter}{number}" for number in range(MANY)]
        if concurrency == 1:
            assert [what for what in begun if what[0] == letter] == expected
            said = [record.question for record in transcript if record.question[0] == letter]
            assert said == expected
        assert sorted(what for what in begun if what[0] == letter) == sorted(expected)
    assert asked == [f"{letter}{number}" for number in range(MANY) for letter in "qa"], "as they came"


async def test_so_does_who_is_asked_without_handlers(protocol: Protocol) -> None:
    begun: list[str] = []

    async def rules(question: Question) -> Any:
        begun.append(question.title)
        return True if question.title.startswith("a") else {"answer": f"said {question.title}"}

    with anyio.fail_after(LIMIT):
        async with talking(protocol, asks_at_once, on_question=rules) as (agent, _talker):
            assert await agent.think().text("Go").run() == TOLD
    assert begun == [f"{letter}{number}" for number in range(MANY) for letter in "qa"]
