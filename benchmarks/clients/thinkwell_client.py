"""thinkwell through its public API: a stream per turn, every update a typed event, nothing switched off."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

import anyio

from benchmarks.clients import _common as common
from thinkwell import Agent, Message, Thought, ThoughtStream, ToolUpdate, open_agent
from thinkwell.events import DiffContent

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from thinkwell.events import Include

KINDS: Include = frozenset({"thought", "message", "tool_start", "tool_update", "tool_done", "plan", "usage"})
"""Every kind of event that the mixes hold: the default six and the usage."""

Stream = ThoughtStream[str]


def ask(agent: Agent) -> Stream:
    return agent.think().text("go").stream(include=KINDS)


async def consume(stream: Stream, expected: int) -> common.Reading:
    first = last = 0.0
    updates = characters = 0
    async for event in stream:
        if not updates:
            first = perf_counter()
        updates += 1
        if isinstance(event, Message | Thought):
            characters += len(event.text)
        elif isinstance(event, ToolUpdate):
            for part in event.content or ():
                if isinstance(part, DiffContent):
                    characters += len(part.new_text)
        if updates == expected:
            last = perf_counter()
    return common.Reading(first, last, updates, characters)


async def stream(task: common.Order) -> common.Figures:
    readings: list[common.Reading] = []

    async def read(turn: Stream) -> None:
        readings.append(await consume(turn, task.count))

    async with open_agent(command=task.command) as agent:
        meter = common.Meter(task)
        async with anyio.create_task_group() as group:
            for _ in range(task.sessions):
                group.start_soon(read, ask(agent))
        return meter.throughput(readings)


async def unread(task: common.Order) -> common.Figures:
    async with open_agent(command=task.command) as agent:
        meter = common.Meter(task)
        turn = ask(agent)
        await turn.wait()
        figures = meter.memory()
        return meter.unread(figures, [await consume(turn, task.count)])


async def startup(task: common.Order) -> common.Figures:
    spawned = perf_counter()
    async with open_agent(command=task.command) as agent:
        return common.startup(spawned, await consume(ask(agent), task.count))


ACTIONS: dict[str, Callable[[common.Order], Coroutine[None, None, common.Figures]]] = {
    "stream": stream,
    "unread": unread,
    "startup": startup,
}

if __name__ == "__main__":
    given = common.order()
    common.report(anyio.run(ACTIONS[given.action], given, backend=given.backend))
