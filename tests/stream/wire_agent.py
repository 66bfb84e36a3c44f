"""An agent that is played by the test itself, message by message and write by write."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio

from thinkwell import Agent, open_agent
from thinkwell_acp import Transport, memory_transport_pair

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

Json: TypeAlias = dict[str, Any]

PIPE = 64 * 1024
"""Bytes that a pipe holds."""


class WireAgent:
    """Keeps what thinkwell sent, and sends what the test says."""

    def __init__(self, transport: Transport, capabilities: Json, meta: Json) -> None:
        self._transport = transport
        self._said = {"protocolVersion": 1, "agentCapabilities": capabilities, "_meta": meta}
        self._unread: list[Json] = []
        self._news = anyio.Event()

    async def serve(self) -> None:
        """Read until the end, and answer `initialize`."""
        data = b""
        while True:
            try:
                data += await self._transport.receive()
            except (anyio.EndOfStream, anyio.ClosedResourceError):
                return
            *lines, data = data.split(b"\n")
            for line in lines:
                message: Json = json.loads(line)
                if message.get("method") == "initialize":
                    await self.write(answer(message, self._said))
                else:
                    self._unread.append(message)
            self._news.set()
            self._news = anyio.Event()

    async def write(self, *messages: Json) -> None:
        """Send these messages in one write."""
        await self._transport.send(b"".join(map(line, messages)))

    async def write_many(self, message: Json, count: int) -> None:
        """Send a message over and over, in one write."""
        await self._transport.send(line(message) * count)

    async def write_bytes(self, data: bytes) -> None:
        """Send these bytes in writes of the size of a pipe."""
        for start in range(0, len(data), PIPE):
            await self._transport.send(data[start : start + PIPE])

    async def expect(self, method: str | None, within: float = 5) -> Json:
        """Take the next message, which must be of this method. `None`: it must be an answer."""
        with anyio.fail_after(within):
            while not self._unread:
                await self._news.wait()
        message = self._unread.pop(0)
        assert message.get("method") == method, message
        return message

    async def begin(self, session_id: str = "s") -> Json:
        """Open the session that thinkwell asks for, and return its first prompt."""
        opening = await self.expect("session/new")
        await self.write(answer(opening, {"sessionId": session_id}))
        return await self.expect("session/prompt")

    async def open_sessions(self, session_ids: Sequence[str]) -> None:
        """Open the sessions that thinkwell asks for at once, with these ids."""
        asked = [await self.expect("session/new") for _ in session_ids]
        await self.write(
            *(answer(request, {"sessionId": id_}) for request, id_ in zip(asked, session_ids, strict=True))
        )

    async def hang_up(self) -> None:
        """End the connection."""
        await self._transport.aclose()

    @property
    def unread(self) -> list[str]:
        """The methods of what was sent and not taken yet."""
        return [message.get("method", "answer") for message in self._unread]


def line(message: Json) -> bytes:
    return json.dumps(message).encode() + b"\n"


def answer(request: Json, result: object) -> Json:
    return {"jsonrpc": "2.0", "id": request["id"], "result": result}


def refuse(request: Json, message: str, code: int = -32603) -> Json:
    return {"jsonrpc": "2.0", "id": request["id"], "error": {"code": code, "message": message}}


def end_turn(prompt: Json, stop_reason: str = "end_turn") -> Json:
    return answer(prompt, {"stopReason": stop_reason})


def update(kind: str, session_id: str = "s", **fields: object) -> Json:
    body = {"sessionUpdate": kind, **fields}
    return {
        "jsonrpc": "2.0",
        "method": "session/update",
        "params": {"sessionId": session_id, "update": body},
    }


def say(text: str, session_id: str = "s", **fields: object) -> Json:
    return update("agent_message_chunk", session_id, content={"type": "text", "text": text}, **fields)


def permission(id_: int, tool_id: str = "t", session_id: str = "s") -> Json:
    """Return a question whether a tool may run."""
    options = [
        {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
        {"optionId": "no", "name": "No", "kind": "reject_once"},
    ]
    params = {"sessionId": session_id, "toolCall": {"toolCallId": tool_id, "title": "rm"}, "options": options}
    return {"jsonrpc": "2.0", "id": id_, "method": "session/request_permission", "params": params}


@asynccontextmanager
async def wire_agent(
    *, capabilities: Json | None = None, meta: Json | None = None, **options: Any
) -> AsyncGenerator[tuple[Agent, WireAgent]]:
    """Open an agent that the test plays."""
    ours, theirs = memory_transport_pair()
    wire = WireAgent(theirs, capabilities or {}, meta or {})
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wire.serve)
        try:
            async with open_agent("wire", transport=ours, **options) as agent:
                yield agent, wire
        finally:
            tasks.cancel_scope.cancel()
