"""A host that knows only lines, in this process; and the middleware that serves it."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio

from thinkwell.listen import serve_lines
from thinkwell.testing import ScriptedAgent
from thinkwell_acp import memory_transport_pair

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from thinkwell import Agent
    from thinkwell.testing import OpenOptions, Script
    from thinkwell_acp import Transport

Line: TypeAlias = dict[str, Any]

LIMIT = 60
"""Seconds for what takes none."""


class _OneWayEach:
    """A transport whose directions end apart, as pipes do."""

    def __init__(self, incoming: Transport, outgoing: Transport) -> None:
        self._incoming = incoming
        self._outgoing = outgoing

    async def receive(self) -> bytes:
        return await self._incoming.receive()

    async def send(self, item: bytes, /) -> None:
        await self._outgoing.send(item)

    async def aclose(self) -> None:
        await self._incoming.aclose()
        await self._outgoing.aclose()


class Host:
    """Writes lines, reads lines."""

    def __init__(self) -> None:
        self._stdin, incoming = memory_transport_pair()
        self._stdout, outgoing = memory_transport_pair()
        self.transport: Transport = _OneWayEach(incoming, outgoing)
        """For the middleware."""
        self.other_end: Transport = _OneWayEach(self._stdout, self._stdin)
        """For a host that is another."""
        self._begun = b""
        self._lines: list[bytes] = []
        self.heard: list[Line] = []
        """Every message, in order."""
        self.outcome: list[Exception | None] = []
        """What the middleware has come to, once it has ended."""
        self.served = anyio.Event()
        """Set when it has ended."""

    async def say(self, *lines: str | Line) -> None:
        """Write lines."""
        for line in lines:
            text = line if isinstance(line, str) else json.dumps(line)
            await self._stdin.send(text.encode() + b"\n")

    async def write(self, data: bytes) -> None:
        """Write bytes as they are."""
        await self._stdin.send(data)

    async def respond(self, to: Line, value: object, *, by_id: bool = True) -> None:
        """Answer a message."""
        response: Line = {"type": "response", "in_reply_to": to["type"], "value": value}
        await self.say({**response, "id": to["id"]} if by_id else response)

    async def hear(self, *types: str) -> Line:
        """Return the next message, of one of these types where any are given."""
        with anyio.fail_after(LIMIT):
            while True:
                while not self._lines:
                    data = self._begun + await self._stdout.receive()
                    *self._lines, self._begun = data.split(b"\n")
                message: Line = json.loads(self._lines.pop(0))
                self.heard.append(message)
                if not types or message["type"] in types:
                    return message

    async def hear_end(self) -> Line:
        """Return the end of a prompt."""
        return await self.hear("result", "error")

    async def end(self) -> None:
        """Say no more."""
        await self._stdin.aclose()

    async def leave(self) -> None:
        """Read no more."""
        await self._stdout.aclose()

    def types(self) -> list[str]:
        """The types of what was heard."""
        return [message["type"] for message in self.heard]


@asynccontextmanager
async def served(agent: Agent, host: Host, **options: Any) -> AsyncGenerator[Host]:
    """Have an agent serve a host for the time of a block, after which the host says no more."""

    async def serve() -> None:
        host.outcome.append(await serve_lines(agent, host.transport, **options))
        host.served.set()

    with anyio.fail_after(LIMIT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve)
            yield host
            await host.end()


@asynccontextmanager
async def playing(
    script: Script, *, opening: OpenOptions | None = None, complete: bool = True, **options: Any
) -> AsyncGenerator[Host]:
    """Serve a host by an agent that plays a script."""
    played = ScriptedAgent(script, complete=complete)
    async with (
        played.open(**({"permissions": "ask"} if opening is None else opening)) as agent,
        served(agent, Host(), **options) as host,
    ):
        yield host
