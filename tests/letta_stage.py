"""Letta's API in memory, and a reader of its streams that takes nothing but what may be.

Whatever is answered is also read by the types of `letta-client`, strictly.
"""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio
from kept_runs import keep_run
from pydantic import TypeAdapter
from web_stage import Client, scripted_agent

from thinkwell.journal import MemoryJournal, RunRecord
from thinkwell.web import RunEnded, RunServer, web_app
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
    from typing import Self

    from scripted import Played, Turn
    from starlette.types import ASGIApp, Receive, Scope, Send

    from thinkwell import events as ev
    from thinkwell.journal import Journal

    Script: TypeAlias = Callable[[Turn], Awaitable[str | None]]

__all__ = (
    "LettaStage",
    "Streamed",
    "allowed",
    "as_caller",
    "asking",
    "hello",
    "letta_served",
    "letta_type",
    "read_stream",
    "tool_done",
    "tool_start",
)

PATIENCE = 1000.0
"""Seconds, in virtual time mostly, after which nothing comes any more."""

FRAME = "agents.letta_streaming_response.LettaStreamingResponse"
MESSAGE = "agents.message.Message"


@cache
def letta_type(name: str) -> TypeAdapter[Any]:
    """A type of the client, by its name in `letta_client.types`, which takes a second to import."""
    module, _, name = f"letta_client.types.{name}".rpartition(".")
    return TypeAdapter(getattr(import_module(module), name))


@dataclass
class Streamed:
    """A stream that was read to its end."""

    frames: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    done: bool = False
    """Whether its last frame was ``[DONE]``."""
    error: dict[str, Any] | None = None
    """What stood in ``event: error``."""

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The frames of a type."""
        return [frame for frame in self.frames if frame["message_type"] == kind]

    @property
    def kinds(self) -> list[str]:
        """The types of all frames, without pings."""
        return [frame["message_type"] for frame in self.frames if frame["message_type"] != "ping"]

    @property
    def seqs(self) -> list[int]:
        """The numbers of all frames that have one."""
        return [frame["seq_id"] for frame in self.frames if "seq_id" in frame]

    @property
    def text(self) -> str:
        return "".join(frame["content"] for frame in self.of("assistant_message"))

    @property
    def stop_reason(self) -> str:
        (stop,) = self.of("stop_reason")
        reason: str = stop["stop_reason"]
        return reason

    @property
    def run_id(self) -> str:
        (run,) = {frame["run_id"] for frame in self.frames if "run_id" in frame}
        return str(run)

    def take(self, block: str) -> None:
        """Read a frame as the strictest of clients would."""
        assert not self.done, block
        lines = block.split("\n")
        name, _, data = lines[-1].partition(": ")
        assert name == "data", block
        if data == "[DONE]":
            assert len(lines) == 1
            self.done = True
            return
        body: dict[str, Any] = json.loads(data)
        if lines[0] == "event: error":
            assert len(lines) == 2
            assert body["message_type"] == "error_message"
            self.error = body
            return
        assert len(lines) == 1, block
        letta_type(FRAME).validate_python(body)
        self.frames.append(body)


def read_stream(body: str) -> Streamed:
    """Read a stream that is complete."""
    streamed = Streamed()
    *blocks, rest = body.split("\n\n")
    assert not rest
    for block in blocks:
        streamed.take(block)
    return streamed


def as_caller(app: ASGIApp, name: str) -> ASGIApp:
    """An application that knows who asks."""

    async def known(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, "state": {"caller": name}}, receive, send)

    return known


@dataclass
class LettaStage:
    """A server that is open, and a client of its."""

    server: RunServer
    client: Client
    handler: Played
    """The other side of its agent."""
    _sent: dict[bool, RunRecord] = field(default_factory=dict[bool, RunRecord], init=False)
    """Runs that clients have begun, by whether they wanted pieces."""
    _numbers: Iterator[int] = field(default_factory=lambda: count(0xAB12), init=False)

    def of(self, caller: str) -> LettaStage:
        """The same for somebody else."""
        return LettaStage(self.server, Client(as_caller(self.client.app, caller)), self.handler)

    # Requests

    async def get(self, path: str, status: int = 200) -> Any:
        answer = await self.client.get(path)
        assert answer.status == status, await answer.body()
        return await answer.json()

    async def post(self, path: str, body: Any = None, status: int = 200) -> Any:
        answer = await self.client.post(path, body)
        assert answer.status == status, await answer.body()
        return await answer.json()

    async def agent(self, **body: Any) -> str:
        """Make an agent."""
        state = await self.post("/v1/agents/", body)
        letta_type("agent_state.AgentState").validate_python(state)
        made: str = state["id"]
        return made

    async def send(self, agent: str, text: str = "Go.", **body: Any) -> dict[str, Any]:
        """Send a message, and wait for the complete answer."""
        answer: dict[str, Any] = await self.post(f"/v1/agents/{agent}/messages", {"input": text, **body})
        letta_type("agents.letta_response.LettaResponse").validate_python(answer)
        return answer

    async def stream(self, agent: str, text: str | None = "Go.", **body: Any) -> Streamed:
        """Send a message, and read the stream."""
        if text is not None:
            body["input"] = text
        return await self.read(f"/v1/agents/{agent}/messages/stream", body)

    async def decide(self, agent: str, *approvals: dict[str, Any], **body: Any) -> Streamed:
        """Say something to calls that wait, and read how it goes on."""
        message = {"type": "approval", "approvals": list(approvals), **body.pop("message", {})}
        return await self.read(f"/v1/agents/{agent}/messages/stream", {"messages": [message], **body})

    async def read(self, path: str, body: Any) -> Streamed:
        """Read a stream to its end."""
        async with self.client.stream("POST", path, json_body=body) as answer:
            assert answer.status == 200, await answer.body()
            assert answer.headers["content-type"].startswith("text/event-stream")
            streamed = Streamed()
            async for block in Blocks(answer.chunks):
                streamed.take(block)
            return streamed

    async def messages(self, agent: str, query: str = "order=asc") -> list[dict[str, Any]]:
        """List messages."""
        found: list[dict[str, Any]] = await self.get(f"/v1/agents/{agent}/messages?{query}")
        for message in found:
            letta_type(MESSAGE).validate_python(message)
        return found

    async def keep(
        self, log: Sequence[ev.ThoughtEvent], end: RunEnded | None = None, *, tokens: bool = False
    ) -> str:
        """Put a run of a client's that has ended into the journal, event by event, and return its id.

        Args:
            log: What happened in it.
            end: How it has ended.
            tokens: Whether its client wanted each piece of a message as it came.
        """
        if tokens not in self._sent:
            sent = await self.stream(
                await self.agent(), background=True, stream_tokens=tokens, include_pings=False
            )
            self._sent[tokens] = await self.server.get(sent.run_id, caller="")
        end = end or RunEnded(seq=0, at=0.0, status="completed", stop_reason="end_turn")
        record = RunRecord(
            id=f"run-{next(self._numbers):04x}",
            agent="scripted",
            created=1_000_000.0,
            meta=self._sent[tokens].meta,
        )
        await keep_run(self.server.journal, record, log, end)
        return record.id


class Blocks:
    """The frames of a stream as they come, as text."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = b""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        while True:
            block, separator, after = self._rest.partition(b"\n\n")
            if separator:
                self._rest = after
                return block.decode()
            with anyio.fail_after(PATIENCE):
                chunk = await anext(self._chunks, None)
            if chunk is None:
                assert not self._rest
                raise StopAsyncIteration
            self._rest += chunk


@asynccontextmanager
async def letta_served(
    *scripts: Script, journal: Journal | None = None, **options: Any
) -> AsyncGenerator[LettaStage]:
    """A server with one agent, called ``scripted``, that plays these scripts, one for each prompt."""
    agent, handler = scripted_agent(*scripts, **options.pop("agent", {}))
    server = RunServer(
        {"scripted": agent, **options.pop("agents", {})}, journal=journal or MemoryJournal(), **options
    )
    async with server:
        yield LettaStage(server, Client(web_app(server)), handler)


# What agents do


async def hello(turn: Turn) -> None:
    """Think in two pieces, and say something in two."""
    turn.think("Who is ")
    turn.think("there?")
    turn.say("Hello ")
    turn.say("Ada.")


def tool_start(turn: Turn, id: str = "t1", title: str = "Read a.py", **fields: Any) -> None:  # noqa: A002
    """Begin a tool call."""
    said: dict[str, Any] = {"kind": "read", **fields}
    turn.update(s.ToolCallStart(tool_call_id=id, title=title, **said))


def tool_done(turn: Turn, id: str = "t1", text: str = "x = 1", **fields: Any) -> None:  # noqa: A002
    """End a tool call."""
    content = (s.Content(content=s.TextContent(text=text)),)
    said: dict[str, Any] = {"status": "completed", "content": content, **fields}
    turn.update(s.ToolCallProgress(tool_call_id=id, **said))


async def allowed(turn: Turn, id: str = "t1", title: str = "Run ls") -> str:  # noqa: A002
    """Ask for permission, and return the kind of option that was chosen."""
    request = s.RequestPermissionRequest(
        session_id=turn.session_id,
        tool_call=s.ToolCallUpdate(tool_call_id=id, title=title, kind="execute", raw_input={"command": "ls"}),
        options=(
            s.PermissionOption(option_id="yes", name="Yes", kind="allow_once"),
            s.PermissionOption(option_id="no", name="No", kind="reject_once"),
        ),
    )
    outcome = (await turn.client.request_permission(request)).outcome
    return outcome.option_id if isinstance(outcome, s.SelectedPermissionOutcome) else "cancelled"


async def asking(turn: Turn) -> None:
    """Ask for permission, and tell what came of it."""
    turn.say("May I? ")
    turn.say("They said " + await allowed(turn))
