"""Which run gets what: several of them, and updates that come before their time."""

from __future__ import annotations

import anyio
import anyio.lowlevel
from scripted import Played, Turn, scripted
from stream.wire_agent import answer, end_turn, say, wire_agent

from thinkwell import Message, ThoughtStream
from thinkwell.testing import script


async def read(stream: ThoughtStream[str]) -> list[str]:
    with anyio.fail_after(30):
        return [event.text async for event in stream if isinstance(event, Message)]


async def greets(turn: Turn) -> None:
    turn.say("Hello", "1")
    turn.say("there", "2")


async def test_several_runs_at_once_on_one_agent_do_not_mix() -> None:
    async def echoes(turn: Turn) -> None:
        for number in range(20):
            turn.say(f"{turn.text}{number} ")
            await anyio.lowlevel.checkpoint()

    async with scripted(echoes) as agent:
        streams = {name: agent.think().text(name).stream() for name in "abcdef"}
        for name, stream in streams.items():
            assert await read(stream) == [f"{name}{number} " for number in range(20)]
        assert len({stream.session_id for stream in streams.values()}) == len(streams)


async def test_early_updates_land_in_the_run() -> None:
    agent = Played([greets], before_session=script.says("early"))
    async with scripted(agent=agent) as opened:
        stream = opened.think().text("Hi").stream()
        assert await read(stream) == ["early", "Hello", "there"]


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


async def test_turns_of_a_session_run_one_at_a_time_in_the_order_asked() -> None:
    running = 0

    async def echoes(turn: Turn) -> None:
        nonlocal running
        running += 1
        await anyio.lowlevel.checkpoint()
        turn.say(f"{turn.text} of {running}")
        running -= 1

    handler = Played([echoes])
    async with scripted(agent=handler) as agent, agent.session() as session:
        streams = [session.think().text(name).stream() for name in "abcdef"]
        assert [await stream.result for stream in streams] == [f"{name} of 1" for name in "abcdef"]
    assert [prompt.text for prompt in handler.sent.prompts] == list("abcdef")
