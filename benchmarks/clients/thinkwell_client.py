"""thinkwell through its public API: a stream per turn, every update a typed event, nothing switched off."""

from __future__ import annotations

from contextlib import AsyncExitStack
from time import perf_counter
from typing import TYPE_CHECKING

import anyio

from benchmarks.clients import _common as common
from thinkwell import Agent, Budget, Message, Session, Thought, ThoughtStream, ToolUpdate, open_agent
from thinkwell.events import DiffContent

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from thinkwell.events import Include

KINDS: Include = frozenset({"thought", "message", "tool_start", "tool_update", "tool_done", "plan", "usage"})
"""Every kind of event in the mixes: the default six and the usage."""

MESSAGES = 8 / 20
"""Share of messages in the mixed kinds, the only kind that the filter lets through."""

Stream = ThoughtStream[str]


def ask(agent: Agent) -> Stream:
    return agent.think().text("go").stream(include=KINDS)


async def consume(stream: Stream, expected: int, *, through: str = "") -> common.Reading:
    first = last = 0.0
    updates = characters = 0
    events = stream.events(include={"message"}) if through == "filter" else stream
    wanted = round(expected * MESSAGES) if through == "filter" else expected
    async for event in events:
        if not updates:
            first = perf_counter()
        updates += 1
        if isinstance(event, Message | Thought):
            characters += len(event.text)
        elif isinstance(event, ToolUpdate):
            for part in event.content or ():
                if isinstance(part, DiffContent):
                    characters += len(part.new_text)
        if updates == wanted:
            last = perf_counter()
    return common.Reading(first, last, expected if updates == wanted else updates, characters)


async def stream(task: common.Order) -> common.Figures:
    readings: list[common.Reading] = []

    async def read(turn: Stream) -> None:
        readings.append(await consume(turn, task.count))

    async with open_agent(command=task.command) as agent:
        if task.through:
            return await stream_through(agent, task)
        meter = common.Meter(task)
        async with anyio.create_task_group() as group:
            for _ in range(task.sessions):
                group.start_soon(read, ask(agent))
        return meter.throughput(readings)


async def stream_through(agent: Agent, task: common.Order) -> common.Figures:
    async with AsyncExitStack() as stack:
        asker: Agent | Session = agent
        if task.through == "tools":
            # It offers `return_result`, so each call of a tool that the agent shows may be one of ours.
            asker = await stack.enter_async_context(agent.session())
        group = await stack.enter_async_context(anyio.create_task_group())
        meter = common.Meter(task)
        budget = Budget(max_tool_calls=task.count, max_cost=1e9) if task.through == "budget" else None
        turn = asker.think().text("go").stream(include=KINDS, budget=budget)
        if task.through == "listener":
            from thinkwell.listen import Handlers, listen

            handlers = Handlers()
            handlers.on("question")(lambda _question: "")
            group.start_soon(listen, turn, handlers)
        reading = await consume(turn, task.count, through=task.through)
    return meter.throughput([reading])


async def unread(task: common.Order) -> common.Figures:
    async with open_agent(command=task.command) as agent:
        meter = common.Meter(task)
        turn = ask(agent)
        await turn.wait()
        figures = meter.memory()
        return meter.unread(figures, [await consume(turn, task.count)])


async def round_trip(task: common.Order) -> common.Figures:
    times: list[float] = []
    async with open_agent(command=task.command) as agent, agent.session() as session:
        for _ in range(common.WARM_UP + task.count):
            sent = perf_counter()
            await session.set_mode("code")
            times.append(perf_counter() - sent)
    return common.round_trips(times[common.WARM_UP :])


async def idle(task: common.Order) -> common.Figures:
    async with open_agent(command=task.command) as agent, agent.session():
        await anyio.sleep(0.2)  # until its start is over
        before = common.cpu_seconds()
        await anyio.sleep(task.count)
        return common.idled(before)


async def startup(task: common.Order) -> common.Figures:
    spawned = perf_counter()
    async with open_agent(command=task.command) as agent:
        return common.startup(spawned, await consume(ask(agent), task.count))


ACTIONS: dict[str, Callable[[common.Order], Coroutine[None, None, common.Figures]]] = {
    "stream": stream,
    "unread": unread,
    "round_trip": round_trip,
    "idle": idle,
    "startup": startup,
}

if __name__ == "__main__":
    given = common.order()
    common.report(anyio.run(ACTIONS[given.action], given, backend=given.backend))
