"""Programs that speak lines: one that the test plays over memory, and real ones that the test writes."""

from __future__ import annotations

import json
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import pytest

from thinkwell import open_agent
from thinkwell_acp import memory_transport_pair

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from thinkwell import Agent, ThoughtStream
    from thinkwell import events as ev
    from thinkwell_acp import MemoryTransport

E = TypeVar("E", bound="ev.ThoughtEvent")

LIMIT = 100
"""Seconds after which a test that waits has failed."""

ON_ONE_LOOP = pytest.mark.parametrize(
    "anyio_backend", ["asyncio", pytest.param("trio", marks=pytest.mark.long)]
)
"""For dear cases in which the event loop makes no difference."""

PRELUDE = """\
import json, sys

def say(kind, **fields):
    print(json.dumps({"type": kind, **fields}), flush=True)

def hear():
    line = sys.stdin.readline()
    if not line:
        sys.exit()
    return line.rstrip("\\n")

def ask(kind, **fields):
    say(kind, **fields)
    return json.loads(hear())["value"]
"""


class Program:
    """A program that the test plays."""

    def __init__(self, pipe: MemoryTransport) -> None:
        self.pipe = pipe
        self._begun = b""
        self.heard: list[str] = []
        """All lines that it has read."""

    async def hear(self) -> str:
        """Return the next line that was written to the program."""
        while b"\n" not in self._begun:
            self._begun += await self.pipe.receive()
        line, _, self._begun = self._begun.partition(b"\n")
        self.heard.append(line.decode())
        return self.heard[-1]

    async def hear_json(self) -> dict[str, Any]:
        line: dict[str, Any] = json.loads(await self.hear())
        return line

    async def say(self, kind: str, **fields: object) -> None:
        await self.write(json.dumps({"type": kind, **fields}).encode() + b"\n")

    async def writes(self, *lines: str) -> None:
        """Write lines, all at once."""
        await self.write("".join(f"{line}\n" for line in lines).encode())

    async def write(self, data: bytes) -> None:
        await self.pipe.send(data)

    async def end(self) -> None:
        await self.pipe.aclose()

    async def response(self) -> dict[str, Any]:
        """Read an answer."""
        response = await self.hear_json()
        assert response.pop("type") == "response"
        return response

    async def value(self) -> Any:
        """Read what an answer says."""
        return (await self.response())["value"]

    async def ask(self, kind: str, **fields: object) -> Any:
        """Say something that wants an answer, and return it."""
        await self.say(kind, **fields)
        response = await self.response()
        assert response["in_reply_to"] == kind
        return response["value"]


@asynccontextmanager
async def played(**options: Any) -> AsyncGenerator[tuple[Agent, Program]]:
    """Open an agent whose program the test plays."""
    ours, theirs = memory_transport_pair()
    with anyio.fail_after(LIMIT):
        async with open_agent(transport=ours, protocol="ndjson", **options) as agent:
            yield agent, Program(theirs)


@asynccontextmanager
async def started(path: Path, source: str, **options: Any) -> AsyncGenerator[Agent]:
    """Write a program in Python, and open it."""
    path = path / "program.py"
    path.write_text(PRELUDE + source, "utf-8")
    with anyio.fail_after(LIMIT):
        async with open_agent(command=[sys.executable, str(path)], protocol="ndjson", **options) as agent:
            yield agent


async def first(stream: ThoughtStream[Any], kind: type[E], number: int = 1) -> E:
    """Wait for an event of a run."""
    async for event in stream:
        if isinstance(event, kind):
            number -= 1
            if not number:
                return event
    raise AssertionError(f"the run has ended without {kind.__name__}")


async def every(stream: ThoughtStream[Any], *kinds: type[E]) -> list[E]:
    """Return the events of these kinds, once the run is over."""
    return [event async for event in stream if isinstance(event, kinds)]
