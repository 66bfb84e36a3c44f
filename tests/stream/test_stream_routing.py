"""Which run gets what: several of them, and updates that come before their time."""

from __future__ import annotations

import logging

import anyio
from stream.wire_agent import answer, end_turn, say, wire_agent

from thinkwell import Message, ThoughtStream


async def read(stream: ThoughtStream[str]) -> list[str]:
    with anyio.fail_after(30):
        return [event.text async for event in stream if isinstance(event, Message)]


async def test_early_updates_are_the_runs_on_either_side_of_the_answer() -> None:
    async with wire_agent() as (agent, wire):
        stream = agent.think().text("Hi").stream()
        opening = await wire.expect("session/new")
        await wire.write(say("1"), say("2", "other"), answer(opening, {"sessionId": "s"}), say("3"))
        prompt = await wire.expect("session/prompt")
        await wire.write(say("4"), end_turn(prompt))
        assert await read(stream) == ["1", "3", "4"]


async def test_interleaved_sessions_in_one_block_keep_their_order() -> None:
    async with wire_agent() as (agent, wire):
        streams = [agent.think().text("Hi").stream() for _ in range(3)]
        openings = [await wire.expect("session/new") for _ in streams]
        for number, opening in enumerate(openings):
            await wire.write(answer(opening, {"sessionId": f"s{number}"}))
        prompts = [await wire.expect("session/prompt") for _ in streams]
        order = [number % 3 for number in range(60)]
        await wire.write(
            *[say(str(place), f"s{number}") for place, number in enumerate(order)],
            *[end_turn(prompt) for prompt in prompts],
        )
        for stream in streams:
            assert stream.session_id is not None
            number = int(stream.session_id[1:])
            assert await read(stream) == [str(place) for place, at in enumerate(order) if at == number]


class Trap(logging.Filter):
    """A user's filter that fails, once."""

    armed = True

    def filter(self, record: logging.LogRecord) -> bool:
        if self.armed and "unknown session" in record.getMessage():
            self.armed = False
            raise ValueError("a bug in a filter")
        return True


async def test_a_failure_costs_the_updates_of_its_session_only() -> None:
    logger, trap = logging.getLogger("thinkwell"), Trap()
    logger.addFilter(trap)
    try:
        with anyio.fail_after(30):
            async with wire_agent() as (agent, wire):
                stream = agent.think().text("Hi").stream()
                prompt = await wire.begin("s")
                await wire.write(say("1"), say("for no run", "a"), say("2"), end_turn(prompt))
                assert [event.text async for event in stream if isinstance(event, Message)] == ["1", "2"]
    finally:
        logger.removeFilter(trap)
    assert not trap.armed
