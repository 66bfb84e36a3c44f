"""A server of runs, agents for it that do what a test says, and a client in memory that streams."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

import anyio
import msgspec
from scripted import Played, Turn, scripted

from thinkwell import events as ev
from thinkwell.journal import Entry, MemoryJournal
from thinkwell.web import RunEnded, RunServer, ServedAgent, StartRun

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
    from contextlib import AbstractAsyncContextManager

    from thinkwell import Agent, PermissionMode, PermissionPolicy
    from thinkwell.journal import Journal, RunRecord
    from thinkwell.web import Batch

    Permissions: TypeAlias = PermissionMode | PermissionPolicy
    Script: TypeAlias = Callable[[Turn], Awaitable[str | None]]

__all__ = (
    "ADA",
    "Answered",
    "Client",
    "LogEntry",
    "Sse",
    "Stage",
    "end_of",
    "entries_of",
    "frames_of",
    "hello",
    "read_entry",
    "scripted_agent",
    "served",
    "started",
    "watched",
    "written",
)

LogEntry: TypeAlias = ev.ThoughtEvent | RunEnded
"""What the log of a run holds: its events, and how it has ended."""

ADA = "ada"
"""Who calls, where a test does not say."""

PATIENCE = 30.0
"""Seconds after which a test has failed."""


async def hello(turn: Turn) -> None:
    """Say hello, and end."""
    turn.say("Hello.")


def scripted_agent(*scripts: Script, **options: Any) -> tuple[ServedAgent, Played]:
    """An agent to be served that plays scripts, and its other side. See `tests.scripted`."""
    handler = Played(scripts)

    def opened(permissions: Permissions) -> AbstractAsyncContextManager[Agent]:
        return scripted(agent=handler, permissions=permissions)

    return ServedAgent(open=opened, **options), handler


# The server


@dataclass
class Stage:
    """A server of runs that is open."""

    server: RunServer
    handler: Played | None = None
    """The other side of its agent, where there is one that plays scripts."""

    async def start(self, prompt: str = "Go.", *, caller: str = ADA, **request: Any) -> RunRecord:
        """Start a run."""
        return await self.server.start(StartRun(prompt=prompt, **request), caller=caller)

    async def ended(self, run_id: str, *, caller: str = ADA) -> list[LogEntry]:
        """Wait until a run has ended, and return its whole log."""
        with anyio.fail_after(PATIENCE):
            return await watched(self.server, run_id, caller=caller)


@asynccontextmanager
async def served(*scripts: Script, journal: Journal | None = None, **options: Any) -> AsyncGenerator[Stage]:
    """A server with one agent, called ``scripted``, that plays these scripts, one for each prompt."""
    agent, handler = scripted_agent(*scripts)
    agents = {"scripted": agent}
    server = RunServer(options.pop("agents", agents), journal=journal or MemoryJournal(), **options)
    async with server:
        yield Stage(server, handler)


async def started(server: RunServer, prompt: str = "Go.", *, caller: str = ADA, **request: Any) -> RunRecord:
    """Start a run."""
    return await server.start(StartRun(prompt=prompt, **request), caller=caller)


async def watched(server: RunServer, run_id: str, *, caller: str = ADA, after: int = 0) -> list[LogEntry]:
    """Watch a run until it ends, or the watcher is let go."""
    seen: list[LogEntry] = []
    async with server.watch(run_id, caller=caller, after=after) as watcher:
        while (batch := await watcher.next()) is not None:
            seen += entries_of(batch)
    return seen


def entries_of(batch: Batch) -> list[LogEntry]:
    """What a batch has."""
    return [read_entry(entry) for entry in batch.entries]


def end_of(log: Sequence[LogEntry]) -> RunEnded:
    """How a run has ended, which the last entry of its log says."""
    end = log[-1]
    assert isinstance(end, RunEnded)
    return end


def read_entry(entry: Entry) -> LogEntry:
    """What an entry is, as its JSON says, which clients are sent too: the end is of a type of its own."""
    if json.loads(entry.data)["type"] == "end":
        return msgspec.json.decode(entry.data, type=RunEnded)
    return ev.event_from_json(entry.data)


def written(entry: LogEntry) -> Entry:
    """An entry of a log, for a journal: what `read_entry` reads."""
    data = msgspec.json.encode(entry) if isinstance(entry, RunEnded) else ev.event_to_json(entry)
    return Entry(entry.seq, data)


# A client in memory


@dataclass(frozen=True)
class Sse:
    """A server-sent event."""

    data: str
    id: str | None = None
    event: str | None = None

    def json(self) -> Any:
        return json.loads(self.data)


def frames_of(text: str) -> list[Sse]:
    """The events of a complete text, comments and ``retry:`` left out."""
    found: list[Sse] = []
    for block in text.split("\n\n"):
        fields: dict[str, list[str]] = {}
        for line in block.split("\n"):
            name, _, value = line.partition(":")
            fields.setdefault(name, []).append(value.removeprefix(" "))
        if "data" in fields:
            last = {name: values[-1] for name, values in fields.items()}
            found.append(Sse("\n".join(fields["data"]), id=last.get("id"), event=last.get("event")))
    return found


@dataclass
class Answered:
    """What a request was answered: its head at once, its body as it comes."""

    status: int
    headers: dict[str, str]
    chunks: AsyncIterator[bytes]
    rest: bytes = b""
    """What was read of the body behind the last event."""
    received: list[bytes] = field(default_factory=list[bytes])

    async def body(self) -> bytes:
        """All of the body."""
        with anyio.fail_after(PATIENCE):
            parts = [self.rest, *[chunk async for chunk in self.chunks]]
        self.rest = b""
        return b"".join(parts)

    async def json(self) -> Any:
        return json.loads(await self.body())

    async def events(self) -> AsyncGenerator[Sse]:
        """The events of the stream, as they come. What is no event is left out."""
        while True:
            block, separator, rest = self.rest.partition(b"\n\n")
            if separator:
                self.rest = rest
                for event in frames_of(block.decode()):
                    yield event
                continue
            with anyio.fail_after(PATIENCE):
                chunk = await anext(self.chunks, None)
            if chunk is None:
                return
            self.received.append(chunk)
            self.rest += chunk


class _Line:
    """A request and its answer. Nothing is buffered: what the application has sent was taken."""

    def __init__(self, content: bytes) -> None:
        self.gone = anyio.Event()
        """Set when the client hangs up."""
        self._give, self.take = anyio.create_memory_object_stream[dict[str, Any]](0)
        self._content: bytes | None = content

    async def answer(self, app: Any, scope: dict[str, Any]) -> None:
        async with self._give:
            await app(scope, self._receive, self._send)

    async def chunks(self) -> AsyncGenerator[bytes]:
        async for message in self.take:
            if message.get("body"):
                yield message["body"]
            if not message.get("more_body"):
                return

    async def _receive(self) -> dict[str, Any]:
        if self._content is not None:
            content, self._content = self._content, None
            return {"type": "http.request", "body": content, "more_body": False}
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: dict[str, Any]) -> None:
        try:
            if not self.gone.is_set():
                await self._give.send(message)
                return
        except anyio.BrokenResourceError:
            pass
        raise OSError("the client has hung up")


class Client:
    """Asks an ASGI application, in memory, on either event loop and in any time.

    Args:
        app: The application. Its lifespan is not run: enter the server that it is for.
        headers: What each request says, beside its own headers.
        host: What it is called.
    """

    def __init__(
        self, app: Any, *, headers: dict[str, str] | None = None, host: str = "127.0.0.1:8283"
    ) -> None:
        self.app = app
        self.headers = {"host": host, **(headers or {})}

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        url: str,
        *,
        json_body: Any = None,
        content: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> AsyncGenerator[Answered]:
        """Ask, and have the answer for the time of a block. Leaving it is to hang up."""
        said = {**self.headers, **(headers or {})}
        if json_body is not None:
            content = json.dumps(json_body).encode()
            said.setdefault("content-type", "application/json")
        if content is not None:
            said.setdefault("content-length", str(len(content)))
        parts = urlsplit(url)
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": parts.path,
            "raw_path": parts.path.encode(),
            "query_string": parts.query.encode(),
            "root_path": "",
            "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in said.items()],
            "client": ("127.0.0.1", 50000),
            "server": ("127.0.0.1", 8283),
            "state": {},
        }
        line = _Line(content or b"")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(line.answer, self.app, scope)
            with anyio.fail_after(PATIENCE):
                head = await line.take.receive()
            body = line.chunks()
            try:
                yield Answered(
                    head["status"], {k.decode(): v.decode("latin-1") for k, v in head["headers"]}, body
                )
            finally:
                line.gone.set()
                with anyio.CancelScope(shield=True):
                    await body.aclose()
                line.take.close()

    async def ask(self, method: str, url: str, **options: Any) -> Answered:
        """Ask, and return the answer when it is complete."""
        async with self.stream(method, url, **options) as answered:
            answered.rest = await answered.body()
        return answered

    async def get(self, url: str, **options: Any) -> Answered:
        return await self.ask("GET", url, **options)

    async def post(self, url: str, json_body: Any = None, **options: Any) -> Answered:
        return await self.ask("POST", url, json_body=json_body, **options)

    async def delete(self, url: str, **options: Any) -> Answered:
        return await self.ask("DELETE", url, **options)

    async def events(self, url: str, **options: Any) -> list[Sse]:
        """All events of a stream that ends."""
        async with self.stream("GET", url, **options) as answered:
            assert answered.status == 200, await answered.body()
            return [event async for event in answered.events()]
