"""For tests of `thinkwell.listen`: programs that speak lines inside of the test, and agents that ask."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio

from thinkwell import open_agent
from thinkwell_acp import memory_transport_pair
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping

    from thinkwell import Agent
    from thinkwell_acp import Transport


class Program:
    """What a program that speaks lines can do."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._read = b""
        self.lines: list[str] = []
        """What it has read."""

    async def line(self) -> str:
        """Read a line."""
        while b"\n" not in self._read:
            self._read += await self._transport.receive()
        line, _, self._read = self._read.partition(b"\n")
        self.lines.append(line.decode())
        return self.lines[-1]

    async def response(self) -> dict[str, Any]:
        """Read an answer."""
        response: dict[str, Any] = json.loads(await self.line())
        assert response.pop("type") == "response"
        return response

    async def value(self) -> Any:
        """Read what an answer says."""
        return (await self.response())["value"]

    async def writes(self, *lines: str) -> None:
        """Write lines, all at once."""
        await self._transport.send("".join(f"{line}\n" for line in lines).encode())

    async def says(self, type_: str, **fields: object) -> None:
        """Write a message."""
        await self.writes(message(type_, **fields))

    async def asks(self, type_: str, **fields: object) -> Any:
        """Write a message, and read what the answer says."""
        await self.says(type_, **fields)
        return await self.value()

    async def exits(self) -> None:
        """Be no more."""
        await self._transport.aclose()


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
            await playing.line()
            await play(playing)
            await playing.says("result", text="Done")
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
