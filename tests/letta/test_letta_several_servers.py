"""Letta's clients before two servers with one Redis: whichever they ask is right."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import pytest
from letta_stage import Blocks, LettaStage, allowed, letta_served
from redis_servers import running_redis

from thinkwell.journal.redis import RedisJournal

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator

    from redis_servers import RedisServer
    from scripted import Turn


@pytest.fixture(scope="module")
def redis() -> Generator[RedisServer]:
    """A Redis of this module."""
    with running_redis() as server:
        yield server


async def asks(turn: Turn) -> None:
    turn.say("May I? ")
    turn.say("They said ")
    turn.say(await allowed(turn))


async def calls(turn: Turn) -> None:
    result = await turn.call("add", {"a": 1})
    turn.say(result["content"][0]["text"])


@asynccontextmanager
async def pair(redis: RedisServer, name: str) -> AsyncGenerator[tuple[LettaStage, LettaStage]]:
    def journal() -> RedisJournal:
        return RedisJournal(redis.url, prefix=name)

    async with (
        letta_served(asks, calls, journal=journal()) as one,
        letta_served(asks, calls, journal=journal()) as two,
    ):
        yield one, two


async def test_a_conversation_over_two_servers(redis: RedisServer, anyio_backend_name: str) -> None:
    async with pair(redis, f"letta-{anyio_backend_name}") as (one, two):
        with anyio.fail_after(30):
            agent = await one.agent(name="Shared")
            assert [state["name"] for state in await two.get("/v1/agents/")] == ["Shared"]
            body = {"messages": [{"role": "user", "content": "Go.", "otid": "o1"}], "background": True}
            url = f"/v1/agents/{agent}/messages/stream"
            async with one.client.stream("POST", url, json_body=body) as answer:
                ping = json.loads((await anext(Blocks(answer.chunks))).removeprefix("data: "))
            streamed = await two.read(url, body)  # the same request, to the other one
            assert streamed.run_id == ping["run_id"]
            assert streamed.stop_reason == "requires_approval"
            assert len(two.handler.prompts) == 0

            answered = await two.decide(agent, {"tool_call_id": "t1", "approve": True})
            assert answered.text == "yes"
            rest = await two.read(f"/v1/runs/{streamed.run_id}/stream", {"starting_after": 2})
            assert rest.frames == streamed.frames[2:]
            assert await two.messages(agent) == await one.messages(agent)

            other = await one.agent()
            tools = [{"name": "add"}]
            asked = await one.stream(other, client_tools=tools)
            (request,) = asked.of("approval_request_message")
            returned = {
                "tool_call_id": request["tool_call"]["tool_call_id"],
                "tool_return": "2",
                "status": "success",
            }
            assert (await two.decide(other, returned)).text == "2"
