"""The official Python SDK, agent-client-protocol, used as in its documentation.

Its `session_update` callback puts the typed update into an inbox that the measured `async for` drains. If its
optional tracing packages are installed, as part of another development tool, they are hidden: a plain
installation has none, and it is half as fast again without them.
"""

from __future__ import annotations

import asyncio
import sys
from time import perf_counter
from typing import TYPE_CHECKING, Any

from benchmarks.clients import _common as common

for tracing in ("opentelemetry", "logfire"):
    sys.modules[tracing] = None  # type: ignore[assignment]  # makes importing it fail, which is what its user has

import acp  # noqa: E402, TID251
from acp import schema  # noqa: E402, TID251

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from acp.client import ClientSideConnection  # noqa: TID251


class Receiver:
    """What a user of the SDK would write: every session's updates go to that session's inbox."""

    def __init__(self) -> None:
        self.inboxes: dict[str, common.Inbox[object]] = {}

    def inbox(self, session: str) -> common.Inbox[object]:
        """The inbox of a session, made when first asked for."""
        return self.inboxes.setdefault(session, common.Inbox(asyncio.Event()))

    async def session_update(self, session_id: str, update: object, **_: Any) -> None:
        """Called by the SDK for each update."""
        self.inboxes[session_id].put(update)

    async def request_permission(self, **_: Any) -> schema.RequestPermissionResponse:
        """Called by the SDK; the measured agent never asks."""
        return schema.RequestPermissionResponse(outcome=schema.DeniedOutcome(outcome="cancelled"))


def spawn(
    receiver: Receiver, task: common.Order
) -> AbstractAsyncContextManager[tuple[ClientSideConnection, object]]:
    # Each mix with the buffer that suits the SDK best: its default of 64 KiB for short lines (5 to 8 % faster
    # than the larger one), the size that it recommends for long ones.
    options = {"limit": acp.core.DEFAULT_STDIO_BUFFER_LIMIT_BYTES} if task.mix == "diffs" else {}
    return acp.spawn_agent_process(receiver, *task.command, transport_kwargs=options)  # type: ignore[arg-type]


async def consume(inbox: common.Inbox[object], expected: int) -> common.Reading:
    first = last = 0.0
    updates = characters = 0
    async for update in inbox:
        if not updates:
            first = perf_counter()
        updates += 1
        if isinstance(update, schema.AgentMessageChunk | schema.AgentThoughtChunk):
            if isinstance(update.content, schema.TextContentBlock):
                characters += len(update.content.text)
        elif isinstance(update, schema.ToolCallProgress):
            for part in update.content or ():
                if isinstance(part, schema.FileEditToolCallContent):
                    characters += len(part.new_text)
        if updates == expected:
            last = perf_counter()
    return common.Reading(first, last, updates, characters)


async def ask(connection: ClientSideConnection, session: str, inbox: common.Inbox[object]) -> None:
    await connection.prompt(session_id=session, prompt=[acp.text_block("go")])
    inbox.put(None)


async def open_sessions(
    connection: ClientSideConnection, receiver: Receiver, number: int
) -> dict[str, common.Inbox[object]]:
    await connection.initialize(protocol_version=acp.PROTOCOL_VERSION)
    opened = [(await connection.new_session(cwd="/", mcp_servers=[])).session_id for _ in range(number)]
    return {session: receiver.inbox(session) for session in opened}


async def stream(task: common.Order) -> common.Figures:
    receiver = Receiver()
    async with spawn(receiver, task) as (connection, _):
        sessions = await open_sessions(connection, receiver, task.sessions)
        meter = common.Meter(task)
        async with asyncio.TaskGroup() as group:
            consumers = [group.create_task(consume(inbox, task.count)) for inbox in sessions.values()]
            for session, inbox in sessions.items():
                group.create_task(ask(connection, session, inbox))
        return meter.throughput([consumer.result() for consumer in consumers])


async def unread(task: common.Order) -> common.Figures:
    receiver = Receiver()
    async with spawn(receiver, task) as (connection, _):
        ((session, inbox),) = (await open_sessions(connection, receiver, 1)).items()
        meter = common.Meter(task)
        await ask(connection, session, inbox)
        figures = meter.memory()
        return meter.unread(figures, [await consume(inbox, task.count)])


async def startup(task: common.Order) -> common.Figures:
    spawned = perf_counter()
    receiver = Receiver()
    async with spawn(receiver, task) as (connection, _):
        ((session, inbox),) = (await open_sessions(connection, receiver, 1)).items()
        async with asyncio.TaskGroup() as group:
            consumer = group.create_task(consume(inbox, task.count))
            group.create_task(ask(connection, session, inbox))
        return common.startup(spawned, consumer.result())


async def round_trip(task: common.Order) -> common.Figures:
    receiver = Receiver()
    times: list[float] = []
    async with spawn(receiver, task) as (connection, _):
        ((session, _inbox),) = (await open_sessions(connection, receiver, 1)).items()
        for _ in range(common.WARM_UP + task.count):
            sent = perf_counter()
            await connection.set_session_mode(session_id=session, mode_id="code")
            times.append(perf_counter() - sent)
    return common.round_trips(times[common.WARM_UP :])


async def idle(task: common.Order) -> common.Figures:
    receiver = Receiver()
    async with spawn(receiver, task) as (connection, _):
        await open_sessions(connection, receiver, 1)
        await asyncio.sleep(0.2)
        before = common.cpu_seconds()
        await asyncio.sleep(task.count)
        return common.idled(before)


ACTIONS = {"stream": stream, "unread": unread, "startup": startup, "round_trip": round_trip, "idle": idle}

if __name__ == "__main__":
    given = common.order()
    common.report(asyncio.run(ACTIONS[given.action](given)))
