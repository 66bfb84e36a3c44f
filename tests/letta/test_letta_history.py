"""What was said in a conversation, read again: in pages, in both orders, and what each message is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest
from letta_stage import LettaStage, asking, hello, letta_served, tool_done, tool_start

from thinkwell.journal import Entry, MemoryJournal, RunRecord
from thinkwell.web import StartRun

if TYPE_CHECKING:
    from scripted import Turn


async def busy(turn: Turn) -> None:
    turn.think("Hm.")
    tool_start(turn, raw_input={"path": "a.py"})
    tool_done(turn)
    turn.say("Done.")


async def ids(stage: LettaStage, agent: str, query: str) -> list[str]:
    return [message["id"] for message in await stage.messages(agent, query)]


async def test_messages_in_order() -> None:
    async with letta_served(busy, hello) as stage:
        agent = await stage.agent()
        streamed = await stage.stream(agent, "First.", stream_tokens=True)
        system = {"role": "system", "content": "Be kind."}
        user = {"role": "user", "content": "Second.", "otid": "mine"}
        await stage.stream(agent, None, messages=[system, user])
        messages = await stage.messages(agent)
        assert [message["message_type"] for message in messages] == [
            "user_message",
            "reasoning_message",
            "tool_call_message",
            "tool_return_message",
            "assistant_message",
            "system_message",
            "user_message",
            "reasoning_message",
            "assistant_message",
        ]
        assert [m["content"] for m in messages if "content" in m] == [
            "First.",
            "Done.",
            "Be kind.",
            "Second.",
            "Hello Ada.",
        ]
        assert messages[6]["otid"] == "mine"
        assert len({message["id"] for message in messages}) == len(messages)
        sent = {frame["id"]: frame for frame in streamed.frames if "otid" in frame}
        for message in messages[1:5]:  # a stream has the same names
            assert sent[message["id"]]["otid"] == message["otid"]
            assert sent[message["id"]]["run_id"] == message["run_id"]
            assert sent[message["id"]]["step_id"] == message["step_id"]


async def test_long_messages_are_kept_without_their_middles() -> None:
    async with letta_served(hello) as stage:
        agent = await stage.agent()
        short = "Be kind. " * 20
        long, longer = f"A{'x' * 20_000}B", f"C{'y' * 5_000_000}D"
        said = [{"role": "user", "content": text} for text in (short, longer, long)]
        await stage.stream(agent, None, messages=said, include_return_message_types=["user_message"] * 9_999)
        assert longer in stage.handler.sent.prompts[0].text
        first, second, third = [message["content"] for message in (await stage.messages(agent))[:3]]
        assert first == short
        assert second.startswith("Cyyy")
        assert second.endswith("yyyD")
        assert "[… 4,991,900 characters are not kept …]" in second
        assert third.startswith("Axxx")
        assert third.endswith("xxxB")
        (record,) = await stage.server.runs(caller="")
        assert len(str(record.meta)) < 18_000

        whole = "".join(map(str, range(4_000)))
        await stage.stream(agent, whole)
        assert (await stage.messages(agent))[5]["content"] == whole
        await stage.stream(agent, None, messages=said[2:] * 100)
        (record, *_) = await stage.server.runs(caller="")
        assert len(str(record.meta)) < 30_000


@pytest.mark.long
@pytest.mark.parametrize("order", ["asc", "desc"])
async def test_a_long_conversation_in_pages(order: str) -> None:
    journal = MemoryJournal()
    async with letta_served(hello, journal=journal) as stage:
        agent, other = await stage.agent(), await stage.agent()
        sent: dict[str, RunRecord] = {}
        for thread in (agent, other):
            run = (await stage.stream(thread)).run_id
            sent[thread] = await stage.server.get(run, caller="")
            await stage.server.delete(run, caller="")
        for number in range(350):
            thread = other if number % 7 == 3 else agent
            record = RunRecord(
                id=f"run-{number:08x}", agent="a", created=1e9 + number, thread=thread, meta=sent[thread].meta
            )
            await journal.create(record)
            end = b'{"type":"end","seq":1,"at":1.0,"status":"completed"}'
            await journal.finish(record.id, Entry(1, end), "completed", record.created)
        await stage.server.start(StartRun(prompt="Not of a client of Letta's."), caller="")

        for path, expected in (
            (f"/v1/agents/{agent}/messages?", [n for n in range(350) if n % 7 != 3]),
            (f"/v1/runs/?agent_id={agent}&", [n for n in range(350) if n % 7 != 3]),
            ("/v1/runs/?statuses=completed&", list(range(350))),
            (f"/v1/runs/?agent_id={other}&stop_reason=end_turn&", [n for n in range(350) if n % 7 == 3]),
        ):
            whole = expected if order == "asc" else expected[::-1]
            for turned, reads in (("after", 1), ("before", -1)):
                found: list[str] = []
                query = f"order={order}&limit=40"
                cursor = "" if turned == "after" else f"&before={await last_id(stage, path, order)}"
                while page := [item["id"] for item in await stage.get(f"{path}{query}{cursor}")]:
                    assert len(page) <= 40
                    found = found + page if reads == 1 else page + found
                    cursor = f"&{turned}={page[-1] if reads == 1 else page[0]}"
                numbers = [int(id_.split("-")[1], 16) for id_ in found]
                assert numbers == (whole if reads == 1 else whole[:-1]), (path, turned)


async def last_id(stage: LettaStage, path: str, order: str) -> str:
    """The id of what comes last in an order."""
    other = "asc" if order == "desc" else "desc"
    (item,) = await stage.get(f"{path}order={other}&limit=1")
    return str(item["id"])


async def test_pages() -> None:
    async with letta_served(busy, hello, busy) as stage:
        agent = await stage.agent()
        for _ in range(3):
            await stage.stream(agent)
        oldest = await ids(stage, agent, "order=asc")
        newest = oldest[::-1]
        assert len(oldest) == 13
        assert await ids(stage, agent, "") == newest
        for order, whole in (("asc", oldest), ("desc", newest)):
            for limit in (1, 2, 5, 13):
                for number, cursor in enumerate(whole):
                    query = f"order={order}&limit={limit}"
                    assert await ids(stage, agent, f"{query}&after={cursor}") == whole[number + 1 :][:limit]
                    assert await ids(stage, agent, f"{query}&before={cursor}") == whole[:number][-limit:]
        for cursor in ("message-none", "message-00ff-1", "nonsense", f"{oldest[0]}9"):
            assert await ids(stage, agent, f"after={cursor}") == []
            assert await ids(stage, agent, f"before={cursor}") == []


async def test_pages_turned_as_clients_turn_them() -> None:
    async with letta_served(busy) as stage:
        agent = await stage.agent()
        for _ in range(4):
            await stage.stream(agent)
        seen: list[str] = []
        page = await ids(stage, agent, "limit=3")
        while page:
            seen += page
            page = await ids(stage, agent, f"limit=3&after={page[-1]}")
        assert seen == await ids(stage, agent, "")


async def test_only_some_types() -> None:
    async with letta_served(busy) as stage:
        agent = await stage.agent()
        for _ in range(3):
            await stage.stream(agent)
        wanted = "include_return_message_types=user_message&include_return_message_types=assistant_message"
        messages = await stage.messages(agent, f"order=asc&limit=3&{wanted}")
        assert [message["message_type"] for message in messages] == [
            "user_message",
            "assistant_message",
            "user_message",
        ]
        rest = await stage.messages(agent, f"order=asc&limit=9&{wanted}&after={messages[-1]['id']}")
        assert len(rest) == 3


async def test_what_is_being_said_is_not_yet_a_message() -> None:
    said, go = anyio.Event(), anyio.Event()

    async def slowly(turn: Turn) -> None:
        turn.think("Hm.")
        turn.say("One")
        said.set()
        await go.wait()
        turn.say(" two")

    async with letta_served(slowly) as stage:
        agent = await stage.agent()
        run = await stage.post(f"/v1/agents/{agent}/messages/async", {"input": "Go."})
        with anyio.fail_after(30):
            await said.wait()
            while len(await stage.messages(agent)) < 2:
                await anyio.lowlevel.checkpoint()
        kinds = [message["message_type"] for message in await stage.messages(agent)]
        assert kinds == ["user_message", "reasoning_message"]
        go.set()
        await stage.read(f"/v1/runs/{run['id']}/stream", {})
        assert (await stage.messages(agent))[-1]["content"] == "One two"


async def test_a_waiting_request_is_the_last_message() -> None:
    async with letta_served(asking) as stage:
        agent = await stage.agent()
        await stage.stream(agent)
        messages = await stage.messages(agent)
        assert messages[-1]["message_type"] == "approval_request_message"
        assert isinstance(messages[-1]["tool_calls"], list)


async def test_runs_of_others_in_the_same_conversation() -> None:
    async with letta_served(hello) as stage:
        agent = await stage.agent()
        meta: dict[str, object] = {"letta": "not what it should be"}
        record = await stage.server.start(
            StartRun(prompt="From elsewhere.", thread=agent, meta=meta), caller=""
        )
        async with stage.server.watch(record.id, caller="") as watcher:
            while await watcher.next() is not None:
                pass
        messages = await stage.messages(agent)
        assert messages[0]["content"] == "From elsewhere."
        assert messages[-1]["content"] == "Hello Ada."
        assert await stage.get("/v1/runs/") == []  # it is not one of Letta's
        await stage.post(f"/v1/agents/{agent}/messages/cancel", status=409)


async def test_many_runs() -> None:
    async with letta_served(hello) as stage:
        agent = await stage.agent()
        for _ in range(3):
            await stage.stream(agent)
        assert len(await ids(stage, agent, "limit=1000")) == 9
        assert len(await ids(stage, agent, "limit=4")) == 4
