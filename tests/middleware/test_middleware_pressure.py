"""A host that reads slowly, or not at all: the agent is read on, and what waits is bounded."""

from __future__ import annotations

import anyio
import pytest
from asking import permission
from middleware.hosting import Host, served
from scripted import Turn, scripted

from thinkwell_acp.transport import MEMORY_PIPE_SIZE

pytestmark = pytest.mark.anyio

MAX_WAITING = 8 * 1024 * 1024
"""So many bytes wait for a host that does not read."""

PIECE = "x" * 64 * 1024
ENOUGH = 3 * (MAX_WAITING + MEMORY_PIPE_SIZE) // len(PIECE)
"""Pieces of which most have no place to wait in."""


async def _talk(turn: Turn) -> None:
    for _ in range(ENOUGH):
        turn.say(PIECE, message_id="m")
        await turn.client.drain()


async def test_a_turn_goes_on_without_a_reader() -> None:
    said = anyio.Event()

    async def work(turn: Turn) -> None:
        await _talk(turn)
        turn.say("done", message_id="last")
        said.set()

    async with scripted(work, permissions="ask") as agent, served(agent, Host()) as host:
        await host.say("go")
        await said.wait()
        assert await host.hear_end() == {"type": "result", "text": "done"}
    size = sum(len(message.get("text", "")) for message in host.heard)
    assert MAX_WAITING < size < 2 * (MAX_WAITING + MEMORY_PIPE_SIZE)
    logs = [message for message in host.heard if message["type"] == "log"]
    assert {(log["level"], "left out here" in log["message"]) for log in logs} == {("warning", True)}
    left_out = sum(int(log["message"].split()[0]) for log in logs)
    assert left_out + host.types().count("partial") == ENOUGH + 1


async def test_questions_always_have_a_place() -> None:
    told: list[object] = []

    async def work(turn: Turn) -> None:
        await _talk(turn)
        asking.set()
        told.append((await turn.client.request_permission(permission(turn.session_id))).outcome)

    asking = anyio.Event()
    async with scripted(work, permissions="ask") as agent, served(agent, Host()) as host:
        await host.say("go")
        await asking.wait()
        await host.respond(await host.hear("approval"), value=True)
        await host.hear_end()
    assert getattr(told[0], "option_id", None) == "y"


async def test_one_message_that_was_left_out() -> None:
    async def work(turn: Turn) -> None:
        turn.say("x" * MEMORY_PIPE_SIZE)  # which fills the pipe
        await full.wait()
        turn.say("y" * MAX_WAITING)
        turn.say("z")

    full = anyio.Event()
    async with scripted(work, permissions="ask") as agent, served(agent, Host()) as host:
        await host.say("go")
        await anyio.wait_all_tasks_blocked()
        full.set()
        await anyio.wait_all_tasks_blocked()
        await host.hear_end()
    (log,) = (message for message in host.heard if message["type"] == "log")
    assert log["message"] == "1 message was left out here, because the host did not read"


async def test_the_next_prompt_waits_for_the_host_to_read() -> None:
    prompts: list[str] = []

    async def work(turn: Turn) -> None:
        prompts.append(turn.text)
        for _ in range(2 * MEMORY_PIPE_SIZE // len(PIECE)):
            turn.say(PIECE)

    async with scripted(work, permissions="ask") as agent, served(agent, Host()) as host:
        await host.say("one", "two")
        await anyio.wait_all_tasks_blocked()
        assert prompts == ["one"]
        await host.hear_end()
        await host.hear_end()
        assert prompts == ["one", "two"]


@pytest.mark.long
async def test_prompts_are_read_ahead_to_a_bound() -> None:
    async def work(turn: Turn) -> None:
        turn.say("done")

    async with scripted(work, permissions="ask") as agent, served(agent, Host()) as host:
        await host.say(*["go"] * 1100)
        for _ in range(1100):
            assert (await host.hear_end())["type"] == "result"
    assert host.outcome == [None]
