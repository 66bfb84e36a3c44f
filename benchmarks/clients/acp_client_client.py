"""acp-client from PyPI: one session per agent process; `on_update` hands over JSON objects, not typed."""

from __future__ import annotations

import asyncio
from pathlib import Path
from time import perf_counter
from typing import Any

from acp_client import Agent  # type: ignore[import-untyped]

from benchmarks.clients import _common as common

Update = dict[str, Any]


async def consume(inbox: common.Inbox[Update], expected: int) -> common.Reading:
    first = last = 0.0
    updates = characters = 0
    async for update in inbox:
        if not updates:
            first = perf_counter()
        updates += 1
        kind = update["sessionUpdate"]
        if kind in ("agent_message_chunk", "agent_thought_chunk"):
            if update["content"]["type"] == "text":
                characters += len(update["content"]["text"])
        elif kind == "tool_call_update":
            for part in update.get("content") or ():
                if part["type"] == "diff":
                    characters += len(part["newText"])
        if updates == expected:
            last = perf_counter()
    return common.Reading(first, last, updates, characters)


async def ask(agent: Agent, inbox: common.Inbox[Update]) -> None:
    await agent.ask("go", on_update=inbox.put)
    inbox.put(None)


async def read(agent: Agent, task: common.Order) -> common.Reading:
    inbox: common.Inbox[Update] = common.Inbox(asyncio.Event())
    async with asyncio.TaskGroup() as group:
        consumer = group.create_task(consume(inbox, task.count))
        group.create_task(ask(agent, inbox))
    return consumer.result()


async def stream(task: common.Order, agent: Agent) -> common.Figures:
    await agent.start()
    meter = common.Meter(task)
    return meter.throughput([await read(agent, task)])


async def unread(task: common.Order, agent: Agent) -> common.Figures:
    await agent.start()
    inbox: common.Inbox[Update] = common.Inbox(asyncio.Event())
    meter = common.Meter(task)
    await ask(agent, inbox)
    figures = meter.memory()
    return meter.unread(figures, [await consume(inbox, task.count)])


async def startup(task: common.Order, agent: Agent) -> common.Figures:
    spawned = perf_counter()
    return common.startup(spawned, await read(agent, task))


async def round_trip(task: common.Order, agent: Agent) -> common.Figures:
    times: list[float] = []
    await agent.start()
    for _ in range(common.WARM_UP + task.count):
        sent = perf_counter()
        # It has no method for modes: all of its requests go through this.
        await agent._request("session/set_mode", sessionId=agent.session, modeId="code")
        times.append(perf_counter() - sent)
    return common.round_trips(times[common.WARM_UP :])


ACTIONS = {"stream": stream, "unread": unread, "startup": startup, "round_trip": round_trip}


async def main(task: common.Order) -> common.Figures:
    agent = Agent(task.command, Path("/"))
    try:
        return await ACTIONS[task.action](task, agent)
    finally:
        await agent.stop()


if __name__ == "__main__":
    common.report(asyncio.run(main(common.order())))
