"""For tests of `thinkwell.listen`: programs that speak lines inside of the test, and agents that ask."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio
from lines.program import Program
from listen.talkers import SOON

from thinkwell import open_agent
from thinkwell_acp import memory_transport_pair
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping

    from thinkwell import Agent
    from thinkwell.listen import Handlers


Play: TypeAlias = "Callable[[Program], Awaitable[object]]"


def message(type_: str, **fields: object) -> str:
    return json.dumps({"type": type_, **fields})


@asynccontextmanager
async def program(play: Play, **options: Any) -> AsyncGenerator[Agent]:
    """Open a program that does this with its first prompt; a last `result` is added."""
    ours, theirs = memory_transport_pair()

    async def run() -> None:
        playing = Program(theirs)
        try:
            await playing.hear()
            await play(playing)
            await playing.say("result", text="Done")
            await anyio.sleep_forever()
        except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass

    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        try:
            async with open_agent(transport=ours, protocol="ndjson", **options) as agent:
                yield agent
        except Exception as exc:
            failure = exc
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure  # without a group around it


async def listened(play: Play, handlers: Handlers, **options: Any) -> str:
    """Listen to a program that does this, and return its result."""
    async with program(play, **options) as agent:
        with anyio.fail_after(SOON):
            return await agent.think().text("Go").listen(handlers)


def hears(_message: object) -> None:
    """Hear a message, and do nothing."""


# Over ACP


def form(session_id: str, properties: Mapping[str, Any], **fields: Any) -> s.ElicitationFormMode:
    """Return a form with these fields."""
    schema = s.ElicitationSchema(properties=dict(properties), **fields)
    return s.ElicitationFormMode(session_id=session_id, message="Which?", requested_schema=schema)


def page(session_id: str) -> s.ElicitationUrlMode:
    url = "https://login.example/start"
    return s.ElicitationUrlMode(session_id=session_id, message="Log in", elicitation_id="e1", url=url)


def titled(**titles: str) -> s.StringPropertySchema:
    """Return a choice of these values with these titles."""
    return s.StringPropertySchema(
        one_of=tuple(s.EnumOption(const=value, title=title) for value, title in titles.items())
    )
