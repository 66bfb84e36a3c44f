"""Clients of front ends at two servers: what one has begun goes on at the other, in both formats."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from front_end_stage import Front, Told, asks, front, text, tool_news, works
from real_servers import backend_of, listening
from web_stage import Client, Stage, scripted_agent

from thinkwell.journal import JournalError, SqliteJournal
from thinkwell.journal.redis import RedisJournal
from thinkwell.web import RunServer, web_app

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from redis_servers import RedisServer
    from scripted import Turn

    from thinkwell.journal import Journal

CHAT = Path(__file__).with_name("ai_sdk_chat.mjs")
AGENT = Path(__file__).with_name("ag_ui_agent.mjs")


@pytest.fixture
def anyio_backend(kind: Any) -> str:
    return backend_of(kind)


@dataclass
class Place:
    """A server, and how it is reached."""

    stage: Stage
    url: str

    @property
    def client(self) -> Client:
        """Asks it without a network."""
        return Client(web_app(self.stage.server))

    @asynccontextmanager
    async def chat(self, *messages: Any) -> AsyncGenerator[Front]:
        """A chat of the AI SDK, on a page that has just been loaded with these messages."""
        async with front(CHAT, f"{self.url}/ai-sdk/scripted", "thread-1", "yes") as chat:
            await chat.do("reload", messages=[*messages])
            yield chat

    @asynccontextmanager
    async def agent(self, *messages: Any) -> AsyncGenerator[Front]:
        """A conversation of AG-UI, on a page that has just been loaded with these messages."""
        async with front(AGENT, f"{self.url}/ag-ui/scripted", "thread-2") as agent:
            for message in messages:
                await agent.do("add", message=message)
            yield agent

    async def streamed(self, run_id: str, format_: str) -> list[Any]:
        """All of a run, in a format: of its events what is the same for everybody."""
        path = f"/api/runs/{run_id}/events?format={format_}"
        async with self.client.stream("GET", path) as answered:
            return [(event.id, event.data) async for event in answered.events()]


@dataclass
class World:
    """What agents do, and which way they were answered."""

    go: anyio.Event = field(default_factory=anyio.Event)
    chosen: list[str | None] = field(default_factory=list[str | None])

    async def script(self, turn: Turn) -> None:
        if "ask" in turn.text:
            turn.say("I have to delete it.")
            self.chosen.append(await asks(turn, "t1", raw_input={"command": "rm a"}))
            turn.update(tool_news("t1", "completed", content=(text("gone"),)))
            turn.say("Done.")
        else:
            await works(turn)
            await self.go.wait()
            turn.say(" All.")


@asynccontextmanager
async def serving(kind: Any, journal: Journal, world: World) -> AsyncGenerator[Place]:
    """One server."""
    server = RunServer({"scripted": scripted_agent(world.script)[0]}, journal=journal)
    async with server, listening(web_app(server), kind) as where:
        yield Place(Stage(server), where.url)


@asynccontextmanager
async def two(kind: Any, redis: RedisServer) -> AsyncGenerator[tuple[World, Place, Place]]:
    """Two servers with one Redis."""
    world, prefix = World(), token_hex(8)

    def journal() -> RedisJournal:
        return RedisJournal(redis.url, prefix=prefix)

    async with serving(kind, journal(), world) as here, serving(kind, journal(), world) as there:
        yield world, here, there


async def until(look: Callable[[], Awaitable[Told]], fits: Callable[[Told], bool]) -> Told:
    """Look again and again until what a client shows fits."""
    with anyio.fail_after(30):
        while True:
            told = await look()
            if fits(told):
                return told
            await anyio.sleep(0.02)


def said(message: Any) -> list[str]:
    return [part["text"] for part in message["parts"] if part["type"] == "text"]


def spoken(told: Told) -> list[str]:
    messages: list[Any] = told["messages"]
    return [each["content"] for each in messages if each["role"] == "assistant" and "toolCalls" not in each]


USER = {"id": "m1", "role": "user", "content": "Look."}
ASKING = {"id": "m1", "role": "user", "content": "Go, and ask."}


# The Vercel AI SDK


@pytest.mark.quick
async def test_a_chat_is_answered_at_the_other_server(kind: Any, redis_server: RedisServer) -> None:
    async with two(kind, redis_server) as (world, here, there):
        async with here.chat() as chat:
            asked = await chat.do("send", message={"text": "Go, and ask."})
        assert asked.message["parts"][-1]["type"] == "data-question"
        async with there.chat(*asked["messages"]) as chat:
            (call,) = asked.parts("dynamic-tool")
            await chat.do("approve", id=call["approval"]["id"], approved=True, reason="fine")
            told = await chat.do("settle")
        async with here.chat(told["messages"][0]) as chat:
            again = await chat.do("resume")
    assert world.chosen == ["yes"]
    assert (told["status"], told["posts"]) == ("ready", 1)
    assert told.message["id"] == asked.message["id"]
    assert said(told.message) == said(again.message) == ["I have to delete it.", "Done."]
    assert again.parts("dynamic-tool") == told.parts("dynamic-tool")


async def test_a_chat_comes_back_in_mid_stream_to_the_other_server(
    kind: Any, redis_server: RedisServer
) -> None:
    async with two(kind, redis_server) as (world, here, there):
        async with here.chat() as first, there.chat() as second:
            await first.do("send", wait=False, message={"text": "Look."})
            begun = await until(
                lambda: first.do("look"),
                lambda told: told["status"] == "streaming" and len(told.message["parts"]) == 14,
            )
            await second.do("reload", messages=begun["messages"][:1])
            for cut in (1, 900, 2600):
                await second.do("cut", bytes=cut)
                assert (await second.do("resume"))["status"] == "error"
            await second.do("resume", wait=False)
            await until(
                lambda: second.do("look"),
                lambda told: told["status"] == "streaming" and len(told.message["parts"]) == 14,
            )
            world.go.set()
            here_told, there_told = await first.do("settle"), await second.do("settle")
        run = here_told.message["id"]
        for name in ("ai-sdk", "ag-ui"):
            assert await there.streamed(run, name) == await here.streamed(run, name)
    assert there_told["status"] == "ready"
    assert there_told.message == here_told.message
    assert said(there_told.message) == ["I look at it.", "It is 2. All."]


async def test_the_same_message_at_the_other_server_starts_nothing_more(
    kind: Any, redis_server: RedisServer
) -> None:
    message = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "Look."}]}
    async with two(kind, redis_server) as (world, here, there):
        world.go.set()
        async with here.chat() as first, there.chat() as second:
            told = await first.do("send", message=message)
            again = await second.do("send", message=message)
        assert len(await there.stage.server.runs(caller="")) == 1
    assert again.message == told.message


async def test_a_chat_is_cancelled_at_the_other_server(kind: Any, redis_server: RedisServer) -> None:
    async with two(kind, redis_server) as (_, here, there), here.chat() as chat:
        await chat.do("send", wait=False, message={"text": "Look."})
        begun = await until(lambda: chat.do("look"), lambda told: len(told["messages"]) == 2)
        run = begun.message["id"]
        async with there.chat(begun["messages"][0]) as other:
            await other.do("resume", wait=False)
            await until(lambda: other.do("look"), lambda told: len(told["messages"]) == 2)
            assert (await there.client.post(f"/api/runs/{run}/cancel")).status == 202
            both = await chat.do("settle"), await other.do("settle")
    for told in both:
        assert told["status"] == "ready"
        assert told.message["metadata"]["status"] == "cancelled"


# AG-UI


async def test_an_interrupt_is_answered_at_the_other_server(kind: Any, redis_server: RedisServer) -> None:
    async with two(kind, redis_server) as (world, here, there):
        async with here.agent() as agent:
            asked = await agent.do("run", message=ASKING, options={"runId": "r1"})
        (interrupt,) = asked["interrupts"]
        resume = [{"interruptId": interrupt["id"], "status": "resolved", "payload": {"approved": False}}]
        async with there.agent(*asked["messages"]) as agent:
            told = await agent.do("run", options={"resume": resume, "runId": "r2"}, state=asked["state"])
        async with here.agent(*asked["messages"]) as agent:
            again = await agent.do("run", options={"resume": resume, "runId": "r2"}, state=asked["state"])
    assert world.chosen == ["no"]
    assert told.all("warn") == told.all("raised") == []
    assert spoken(told) == ["I have to delete it.", "Done."]
    assert told["interrupts"] == []
    assert again["messages"] == told["messages"]
    assert again["state"] == told["state"]


async def test_a_run_of_ag_ui_is_asked_for_again_at_the_other_server(
    kind: Any, redis_server: RedisServer
) -> None:
    async with two(kind, redis_server) as (world, here, there):
        async with here.agent() as first, there.agent() as second:
            await first.do("run", wait=False, message=USER, options={"runId": "r1"})
            await until(lambda: first.do("look"), lambda told: len(told["messages"]) >= 15)
            await second.do("cut", bytes=3000)
            broken = await second.do("run", message=USER, options={"runId": "r1"})
            assert broken.all("raised")
            await second.do("run", wait=False, options={"runId": "r1"})
            await until(lambda: second.do("look"), lambda told: len(told["messages"]) >= 15)
            world.go.set()
            here_told, there_told = await first.do("settle"), await second.do("settle")
        assert len(await there.stage.server.runs(caller="")) == 1
    assert there_told.all("warn") == []
    assert spoken(there_told) == spoken(here_told) == ["I look at it.", "It is 2. All."]
    assert there_told["messages"] == here_told["messages"]
    assert there_told["state"] == here_told["state"]


async def test_a_run_of_ag_ui_is_cancelled_at_the_other_server(kind: Any, redis_server: RedisServer) -> None:
    async with two(kind, redis_server) as (_, here, there), here.agent() as agent:
        await agent.do("run", wait=False, message=USER, options={"runId": "r1"})
        await until(lambda: agent.do("look"), lambda told: len(told["messages"]) >= 15)
        (record,) = await there.stage.server.runs(caller="")
        assert (await there.client.post(f"/api/runs/{record.id}/cancel")).status == 202
        told = await agent.do("settle")
        async with there.agent() as other:
            again = await other.do("run", message=USER, options={"runId": "r1"})
    assert told.all("event")[-1]["outcome"] == again.all("event")[-1]["outcome"] == {"type": "cancelled"}
    assert spoken(again) == spoken(told) == ["I look at it.", "It is 2."]


# One file


async def test_one_file_is_for_one_server_and_for_the_next_when_that_has_ended(
    kind: Any, tmp_path: Path
) -> None:
    path, world = tmp_path / "runs.sqlite", World()
    async with serving(kind, SqliteJournal(path), world) as here:
        with pytest.raises(JournalError, match="another server has it"):
            await SqliteJournal(path).open()
        async with here.chat() as chat, here.agent() as agent:
            begun = await chat.do("send", message={"text": "Go, and ask."})
            asked = await agent.do("run", message=ASKING, options={"runId": "r1"})

    (interrupt,) = asked["interrupts"]
    resume = [{"interruptId": interrupt["id"], "status": "resolved", "payload": {"approved": True}}]
    async with serving(kind, SqliteJournal(path), world) as there:
        async with there.chat(*begun["messages"]) as chat:
            await chat.do("approve", id="q1", approved=True)
            chat_told = await chat.do("settle")
        async with there.agent(*asked["messages"]) as agent:
            agent_told = await agent.do("run", options={"resume": resume, "runId": "r2"})
    assert chat_told.message["id"] == begun.message["id"]
    (why,) = chat_told.all("error")
    assert why.startswith("Interrupted: the server has ended")
    assert said(chat_told.message) == ["I have to delete it."]
    assert agent_told.all("event")[-1]["type"] == "RUN_ERROR"
    assert spoken(agent_told) == ["I have to delete it."]
