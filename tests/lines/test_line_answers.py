"""What handlers give, as a program gets it."""

from __future__ import annotations

from contextlib import asynccontextmanager
from itertools import product
from typing import TYPE_CHECKING

import anyio
import pytest
from lines.program import Program, played

from thinkwell.listen import Handlers, Transcript

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from thinkwell import Agent

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def listening(handlers: Handlers) -> AsyncGenerator[tuple[Agent, Program]]:
    """Begin a listen, which is over when a result was said."""
    async with played() as (agent, program), anyio.create_task_group() as tasks:

        async def listen() -> None:
            assert await agent.think().text("Go").listen(handlers) == "done"

        tasks.start_soon(listen)
        assert await program.hear() == "Go"
        yield agent, program


async def nothing_more(agent: Agent, program: Program) -> None:
    """Check that a program was told nothing else before its next prompt."""
    await program.say("result", text="done")
    stream = agent.think().text("the next").stream()
    assert await program.hear() == "the next"
    await program.say("result")
    await stream.wait()


VALUES: dict[str, object] = {
    '"text"': "text",
    '"\u00e4 \u2028\\n"': "\u00e4 \u2028\n",
    '""': "",
    '"allow"': "allow",
    "true": True,
    "false": False,
    "0": 0,
    "2.0": 2.0,
    '[1,{"a":null}]': [1, {"a": None}],
    '{"allow":true}': {"allow": True},
}


async def test_a_value_is_written_as_it_is() -> None:
    transcript = Transcript()
    handlers = Handlers(transcript=transcript)

    async def answer(message: dict[str, object]) -> object:
        return VALUES[str(message["text"])]

    kinds = ("question", "approval", "progress", "own \u00e4")
    for kind in kinds:
        handlers.on(kind)(answer)
    async with listening(handlers) as (agent, program):
        for kind, written in product(kinds, VALUES):
            start = f'{{"type":"response","in_reply_to":"{kind}","value":{written}'
            await program.say(kind, text=written)
            assert await program.hear() == start + "}"
            await program.say(kind, text=written, id={"n": [1]})
            assert await program.hear() == start + ',"id":{"n":[1]}}'
            await program.say(kind, text=written, id=None)
            assert await program.hear() == start + ',"id":null}'
        await nothing_more(agent, program)
    asked = product(("question", "approval"), VALUES.values(), range(3))
    assert [(record.kind, record.answer) for record in transcript] == [
        (kind, value) for kind, value, _ in asked
    ]


@pytest.mark.parametrize("kind", ["question", "approval", "progress"])
async def test_nothing_is_written_as_nothing(kind: str) -> None:
    handlers = Handlers()
    seen: list[object] = []

    @handlers.on(kind)
    async def answer(message: dict[str, object]) -> object:
        seen.append(message["text"])
        return "an answer" if message["text"] == "third" else None

    async with listening(handlers) as (agent, program):
        for text in ("first", "second", "third"):
            await program.say(kind, text=text)
        assert (await program.hear_json())["value"] == "an answer"
        assert seen == ["first", "second", "third"]
        await nothing_more(agent, program)


async def test_an_answer_to_the_prompt_before_is_none_to_the_next() -> None:
    handlers = Handlers()
    begun, gate = anyio.Event(), anyio.Event()

    @handlers.on("own")
    async def answer(_: dict[str, object]) -> str:
        begun.set()
        await gate.wait()
        return "late"

    async with listening(handlers) as (agent, program):
        await program.say("own")
        await begun.wait()
        await program.say("result", text="done")
        stream = agent.think().text("the next").stream()
        assert await program.hear() == "the next"
        gate.set()
        await anyio.wait_all_tasks_blocked()
        await program.say("result")
        await stream.wait()
        stream = agent.think().text("and the next").stream()
        assert await program.hear() == "and the next"
        await program.say("result")
        await stream.wait()


async def test_an_id_comes_back_as_it_was_written() -> None:
    handlers = Handlers()

    async def answer(_: object) -> str:
        return "yes"

    kinds = ("question", "own", "progress")
    for kind in kinds:
        handlers.on(kind)(answer)
    async with listening(handlers) as (agent, program):
        for kind, id_ in product(kinds, ("1e2", r'"\u0041"', "-0", "[1, 2]", "null")):
            await program.write(f'{{"type":"{kind}","id": {id_} ,"x":1}}\n'.encode())
            written = id_.replace(" ", "")
            assert await program.hear() == (
                f'{{"type":"response","in_reply_to":"{kind}","value":"yes","id":{written}}}'
            )
        await nothing_more(agent, program)
