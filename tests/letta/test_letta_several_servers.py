"""Letta's clients before two servers with one Redis: whichever they ask is right."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from secrets import token_hex
from typing import TYPE_CHECKING

import anyio
from letta_stage import Blocks, LettaStage, allowed, letta_served

from thinkwell.journal.redis import RedisJournal

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from redis_servers import RedisServer
    from scripted import Turn

    from thinkwell.journal import RunRecord


async def asks(turn: Turn) -> None:
    turn.say("May I? ")
    turn.say("They said ")
    turn.say(await allowed(turn))


async def calls(turn: Turn) -> None:
    result = await turn.call("add", {"a": 1})
    turn.say(result["content"][0]["text"])


@asynccontextmanager
async def pair(redis: RedisServer) -> AsyncGenerator[tuple[LettaStage, LettaStage]]:
    name = token_hex(8)

    def journal() -> RedisJournal:
        return RedisJournal(redis.url, prefix=name)

    async with (
        letta_served(asks, calls, journal=journal()) as one,
        letta_served(asks, calls, journal=journal()) as two,
    ):
        yield one, two


async def test_a_conversation_over_two_servers(redis_server: RedisServer) -> None:
    async with pair(redis_server) as (one, two):
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
            assert len(two.handler.sent.prompts) == 0

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


class Meeting(RedisJournal):
    """A journal in which a run begins when another one does, at another server."""

    meeting: Meetings

    async def create(self, record: RunRecord) -> RunRecord:
        await self.meeting.come()
        return await super().create(record)


class Meetings:
    def __init__(self, who: int) -> None:
        self.left = who
        self.all_there = anyio.Event()

    async def come(self) -> None:
        self.left -= 1
        if self.left <= 0:
            self.all_there.set()
        await self.all_there.wait()


@asynccontextmanager
async def meeting(redis: RedisServer) -> AsyncGenerator[tuple[LettaStage, LettaStage]]:
    """Two servers that have both seen that nothing goes on when either begins a run."""
    meetings, name = Meetings(2), token_hex(8)

    def journal() -> RedisJournal:
        made = Meeting(redis.url, prefix=name)
        made.meeting = meetings
        return made

    async with (
        letta_served(asks, journal=journal()) as one,
        letta_served(asks, journal=journal()) as two,
    ):
        yield one, two


async def test_of_two_messages_at_once_one_is_sent(redis_server: RedisServer) -> None:
    async with meeting(redis_server) as stages:
        agent = await stages[0].agent()
        url = f"/v1/agents/{agent}/messages/async"
        answers: dict[int, tuple[int, str]] = {}

        async def send(number: int) -> None:
            answer = await stages[number].client.post(url, {"input": "Go."})
            body = await answer.json()
            answers[number] = answer.status, body["id"] if answer.status == 200 else body["run_id"]

        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                for number in range(2):
                    tasks.start_soon(send, number)
            run_id = answers[0][1]
            assert sorted(answers.values()) == [(200, run_id), (409, run_id)]
            sent, refused = (stages[number] for number in sorted(answers, key=lambda n: answers[n][0]))
            assert [run["id"] for run in await sent.get("/v1/runs/")] == [run_id]
            streamed = await sent.read(f"/v1/runs/{run_id}/stream", {})
            assert streamed.stop_reason == "requires_approval"
            streamed = await refused.stream(agent, None, messages=[{"type": "approval", "approve": True}])
            assert streamed.text == "yes"
            assert streamed.stop_reason == "end_turn"
            assert len(sent.handler.sent.prompts) == 1
            assert not refused.handler.sent.prompts
            assert (await refused.stream(agent)).stop_reason == "requires_approval"  # and now it may


async def test_the_same_message_at_two_servers_at_once(redis_server: RedisServer) -> None:
    async with meeting(redis_server) as stages:
        agent = await stages[0].agent()
        body = {"messages": [{"role": "user", "content": "Go.", "otid": "o1"}]}
        runs: list[str] = []

        async def send(stage: LettaStage) -> None:
            runs.append((await stage.post(f"/v1/agents/{agent}/messages/async", body))["id"])

        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                for stage in stages:
                    tasks.start_soon(send, stage)
            assert len(set(runs)) == 1
            await stages[0].read(f"/v1/agents/{agent}/messages/stream", body)
            assert sum(len(stage.handler.sent.prompts) for stage in stages) == 1
