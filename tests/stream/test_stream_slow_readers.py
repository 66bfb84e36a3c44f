"""A slow reader sees a whole story."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import anyio
import pytest
from stream.wire_agent import end_turn, say, update, wire_agent

from thinkwell import Buffer, Message, ToolStart
from thinkwell import events as ev

if TYPE_CHECKING:
    from stream.wire_agent import Json

    from thinkwell import ThoughtEvent

MOST = 200

BLOCKS = 10
BLOCK = 300
"""Pieces of text in each block."""


def told(events: list[ThoughtEvent]) -> dict[str | None, str]:
    """Return the text of each message, in the order in which they begin."""
    texts: dict[str | None, str] = {}
    for event in events:
        if isinstance(event, Message):
            texts[event.message_id] = texts.get(event.message_id, "") + event.text
    return texts


async def test_ids__are_kept_once() -> None:
    async with wire_agent() as (agent, wire):
        stream = agent.think().text("Hi").stream()
        prompt = await wire.begin()
        for id_ in "abab":
            await wire.write(say("word", messageId=f"a long id of message {id_}"))
        await wire.write(end_turn(prompt))
        ids = {id(event.message_id) async for event in stream if isinstance(event, Message)}
        assert len(ids) == 2


@pytest.mark.parametrize("overflow", ["none", "coalesce", "drop_oldest"])
async def test_slow_reader__sees_a_whole_story_and_its_end(
    overflow: Literal["none", "coalesce", "drop_oldest"],
) -> None:
    buffer = None if overflow == "none" else Buffer(max_events=MOST, overflow=overflow)
    lines = [updates(block) for block in range(BLOCKS)]
    async with wire_agent() as (agent, wire):
        stream = agent.think().text("Hi").stream(buffer=buffer)
        prompt = await wire.begin()
        slow, parked = stream.events(), stream.events()
        seen: list[ThoughtEvent] = []
        for block in lines:
            await wire.write(*block)
            with anyio.fail_after(30):
                seen.append(await anext(slow))
        first = await anext(parked)
        await wire.write(end_turn(prompt))
        with anyio.fail_after(30):
            await stream.result
            seen += [event async for event in slow]
            rest = [event async for event in parked]
            again = [event async for event in stream]
    said = [update["params"]["update"] for block in lines for update in block]
    text = "".join(part["content"]["text"] for part in said if "content" in part)
    assert stream.view.text == text
    for story in (seen, [first, *rest], again):
        assert [event.seq for event in story] == sorted({event.seq for event in story})
        assert story[-1].seq == len(said)
        assert [event.id for event in story if isinstance(event, ToolStart)] == [
            f"t{n}" for n in range(BLOCKS)
        ]
        dropped = sum(event.count for event in story if isinstance(event, ev.Dropped))
        if overflow == "drop_oldest":
            assert dropped + len([event for event in story if not isinstance(event, ev.Dropped)]) == len(said)
        else:
            assert told(story) == {"m": text}
    if buffer is not None:
        assert len(again) <= MOST


def updates(block: int) -> list[Json]:
    half = BLOCK // 2
    texts = [say(f"{block}.{number} ", messageId="m") for number in range(BLOCK)]
    return [*texts[:half], update("tool_call", toolCallId=f"t{block}", title="T"), *texts[half:]]
