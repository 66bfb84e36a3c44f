"""What one session does to the updates of the others that came in the same block."""

from __future__ import annotations

import logging

import anyio
from stream.wire_agent import end_turn, say, wire_agent

from thinkwell import Message


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
                await wire.write(say("1"), say("for nobody", "a"), say("2"), end_turn(prompt))
                assert [event.text async for event in stream if isinstance(event, Message)] == ["1", "2"]
    finally:
        logger.removeFilter(trap)
    assert not trap.armed
