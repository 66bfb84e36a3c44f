"""An agent that says the same over ACP and in lines, with every message written out by hand.

It is a peer of its own: nothing of thinkwell's translation or framing is used on this side of the wire. It
remembers every answer, and those that answer nothing.
"""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import anyio

from thinkwell_acp import memory_transport_pair

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

    from thinkwell import Agent
    from thinkwell.listen import Handlers
    from thinkwell_acp import Transport

Json: TypeAlias = dict[str, Any]
Protocol: TypeAlias = Literal["acp", "ndjson"]

LIMIT = 60
"""Seconds after which a test that waits has failed."""

SOON = 8
"""Seconds within which what waits for none of our timeouts has come to its end: they take ten at least."""

ON_PATH = {
    "PYTHONPATH": os.pathsep.join(
        filter(None, (str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")))
    )
}
"""Variables of a program that imports this module."""

OPTIONS = [
    {"optionId": "allow", "name": "Yes", "kind": "allow_once"},
    {"optionId": "reject", "name": "No", "kind": "reject_once"},
]


class Reported(Exception):  # noqa: N818 - what the agent does
    """Raised by a scene that ends its turn by an error."""


class HangUp(Exception):  # noqa: N818 - what the agent does
    """Raised by a scene that ends the connection."""


class Asked:
    """What the agent has asked, and everything that it was told."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.told: list[Any] = []
        """Every answer. `None` is nothing, and so is a question that was declined or cancelled."""
        self._first = anyio.Event()

    def tell(self, value: object) -> None:
        self.told.append(value)
        self._first.set()

    async def answer(self) -> Any:
        """Wait for the answer."""
        await self._first.wait()
        return self.told[0]


class Turn(ABC):
    """What an agent can do in a turn."""

    def __init__(self, prompt: str) -> None:
        self.prompt = prompt

    @property
    @abstractmethod
    def talker(self) -> Talker:
        """Whose turn it is."""

    async def ask(self, question: str, *, options: Sequence[str] = (), id: object = None) -> Any:  # noqa: A002
        """Ask a question, and wait for the answer."""
        return await (await self.asks(question, options=options, id=id)).answer()

    async def approve(self, description: str, *, id: object = None) -> Any:  # noqa: A002
        """Ask for approval, and wait for the answer."""
        return await (await self.asks_for(description, id=id)).answer()

    @abstractmethod
    async def asks(self, question: str, *, options: Sequence[str] = (), id: object = None) -> Asked:  # noqa: A002
        """Ask a question."""

    @abstractmethod
    async def asks_for(self, description: str, *, id: object = None) -> Asked:  # noqa: A002
        """Ask for approval."""

    @abstractmethod
    async def progress(self, message: str) -> None:
        """Tell what it is at."""

    @abstractmethod
    async def partial(self, text: str) -> None:
        """Say a piece of a message."""

    @abstractmethod
    async def end(self, result: str | Json | None) -> None:
        """End the turn with a result."""

    @abstractmethod
    async def fail(self, message: str) -> None:
        """End the turn by an error."""


Scene: TypeAlias = Callable[[Turn], Awaitable["str | Json | None"]]
"""A turn. It returns the result: a text, or the fields of a typed one."""


class Talker(ABC):
    """An agent that plays one scene for each prompt, in order; the last one again and again."""

    def __init__(self, transport: Transport, scenes: Sequence[Scene]) -> None:
        self._transport = transport
        self._scenes = scenes
        self.prompts = 0
        self.sessions = 0
        self.offered: Json = {}
        """What the client can do."""
        self.answers: list[Json] = []
        """All that came in answer to anything."""
        self._writing = anyio.Lock()
        self._collecting = anyio.Lock()
        self._held: bytearray | None = None
        self._tasks: TaskGroup
        self.asked: list[Asked] = []
        """Everything that it has asked, in order."""
        self.strays: list[Json] = []
        """Answers to nothing."""

    async def serve(self) -> None:
        """Be the agent until the client leaves."""
        begun: list[bytes] = []
        async with anyio.create_task_group() as self._tasks:
            while True:
                try:
                    data = await self._transport.receive()
                except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
                    break
                first, *more = data.split(b"\n")
                begun.append(first)
                for piece in more:
                    await self._take(b"".join(begun))
                    begun = [piece]
            self._tasks.cancel_scope.cancel()

    @asynccontextmanager
    async def at_once(self) -> AsyncGenerator[None]:
        """Hold back what is written in a block, and write it in one piece at its end."""
        async with self._collecting:
            self._held = held = bytearray()
            try:
                yield
            finally:
                self._held = None
            await self._write(bytes(held), len(held) or 1)

    async def write(self, data: bytes, *, chunk: int = 16 * 1024) -> None:
        """Write bytes, in blocks as a pipe has them."""
        if self._held is not None:
            self._held += data
        else:
            await self._write(data, chunk)

    async def _write(self, data: bytes, chunk: int) -> None:
        async with self._writing:
            try:
                for start in range(0, len(data), chunk):
                    await self._transport.send(data[start : start + chunk])
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                await anyio.sleep_forever()  # nobody reads, so `serve` ends

    async def send(self, message: Json) -> None:
        await self.write(json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")

    @abstractmethod
    async def _take(self, line: bytes) -> None:
        """Take a line of the client."""

    @abstractmethod
    def forget(self) -> None:
        """Wait for nothing that was asked in the turn that is over."""

    async def play(self, turn: Turn) -> None:
        scene = self._scenes[min(self.prompts, len(self._scenes) - 1)]
        self.prompts += 1
        try:
            result = await scene(turn)
        except Reported as exc:
            await turn.fail(str(exc))
        except HangUp:
            await self._transport.aclose()
        else:
            await turn.end(result)
        self.forget()


# Lines


class LineTalker(Talker):
    """Writes one JSON object a line."""

    def __init__(self, transport: Transport, scenes: Sequence[Scene]) -> None:
        super().__init__(transport, scenes)
        self._open: defaultdict[str, deque[tuple[object, Asked]]] = defaultdict(deque)
        self._crossing: defaultdict[str, deque[tuple[object, Asked]]] = defaultdict(deque)

    async def _take(self, line: bytes) -> None:
        if not line.startswith(b'{"type":"response"'):
            self._crossing.clear()
            self._tasks.start_soon(self.play, LineTurn(self, line.decode()))
            return
        message = json.loads(line)
        self.answers.append(message)
        for waiting in (self._open[message["in_reply_to"]], self._crossing[message["in_reply_to"]]):
            for entry in waiting:
                if entry[0] == message.get("id"):
                    waiting.remove(entry)
                    entry[1].tell(message["value"])
                    return
        self.strays.append(message)

    def forget(self) -> None:
        # Until the next prompt, answers may come that were written before the end of the turn was read.
        self._crossing, self._open = self._open, defaultdict(deque)

    async def ask(self, kind: str, id_: object, /, **fields: object) -> Asked:
        asked = Asked(str(next(iter(fields.values()))))
        self.asked.append(asked)
        self._open[kind].append((id_, asked))
        await self.send({"type": kind, **fields, **({} if id_ is None else {"id": id_})})
        return asked


class LineTurn(Turn):
    def __init__(self, talker: LineTalker, prompt: str) -> None:
        super().__init__(prompt)
        self._talker = talker

    @property
    def talker(self) -> Talker:
        return self._talker

    async def asks(self, question: str, *, options: Sequence[str] = (), id: object = None) -> Asked:  # noqa: A002
        chosen: Json = {"options": list(options)} if options else {}
        return await self._talker.ask("question", id, question=question, **chosen)

    async def asks_for(self, description: str, *, id: object = None) -> Asked:  # noqa: A002
        return await self._talker.ask("approval", id, description=description)

    async def asks_else(self, kind: str, /, *, id: object = None, **fields: object) -> Asked:  # noqa: A002
        """Ask something of a type of its own."""
        return await self._talker.ask(kind, id, **fields)

    async def progress(self, message: str) -> None:
        await self._talker.send({"type": "progress", "message": message})

    async def partial(self, text: str) -> None:
        await self._talker.send({"type": "partial", "text": text})

    async def end(self, result: str | Json | None) -> None:
        fields = {"text": result} if isinstance(result, str) else result or {}
        await self._talker.send({"type": "result", **fields})

    async def fail(self, message: str) -> None:
        await self._talker.send({"type": "error", "message": message})


# ACP


class AcpTalker(Talker):
    """Speaks the Agent Client Protocol."""

    def __init__(self, transport: Transport, scenes: Sequence[Scene]) -> None:
        super().__init__(transport, scenes)
        self._numbers = count(1)
        self._open: dict[object, Asked] = {}
        self._tools: dict[str, str] = {}
        self._turns: dict[str, anyio.CancelScope] = {}

    async def _take(self, line: bytes) -> None:
        message = json.loads(line)
        if "method" not in message:
            self.answers.append(message)
            asked = self._open.pop(message["id"], None)
            if asked is None:
                self.strays.append(message)
            else:
                asked.tell(_said(message))
            return
        params = message["params"]
        match message["method"]:
            case "initialize":
                self.offered = params["clientCapabilities"]
                capabilities = {"mcpCapabilities": {"acp": True}}
                await self.answer(message, {"protocolVersion": 1, "agentCapabilities": capabilities})
            case "session/new":
                self._tasks.start_soon(self._open_session, message)
            case "session/prompt":
                self._turns[params["sessionId"]] = scope = anyio.CancelScope()
                self._tasks.start_soon(self._prompt, message, scope)
            case "session/cancel":
                if params["sessionId"] in self._turns:
                    self._turns[params["sessionId"]].cancel()
            case _:
                pass

    def forget(self) -> None:
        pass  # each answer says what it answers

    async def answer(self, request: Json, result: Json) -> None:
        await self.send({"jsonrpc": "2.0", "id": request["id"], "result": result})

    async def request(self, method: str, params: Json) -> tuple[int, Asked]:
        number = next(self._numbers)
        asked = self._open[number] = Asked(method)
        await self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return number, asked

    async def notify(self, method: str, params: Json) -> None:
        await self.send({"jsonrpc": "2.0", "method": method, "params": params})

    async def _open_session(self, request: Json) -> None:
        self.sessions += 1
        session = f"session-{self.sessions}"
        for server in request["params"]["mcpServers"]:
            if server.get("type") == "acp":
                _, connected = await self.request("mcp/connect", {"serverId": server["serverId"]})
                self._tools[session] = (await connected.answer())["connectionId"]
                hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": _SELF}
                await self.call_mcp(session, "initialize", hello)
                await self.call_mcp(session, "tools/list", {})
        await self.answer(request, {"sessionId": session})

    async def call_mcp(self, session: str, method: str, params: Json) -> Any:
        message: Json = {"connectionId": self._tools[session], "method": method, "params": params}
        _, asked = await self.request("mcp/message", message)
        return await asked.answer()

    async def _prompt(self, request: Json, scope: anyio.CancelScope) -> None:
        with scope:
            await self.play(AcpTurn(self, request))
        if scope.cancelled_caught:
            await self.answer(request, {"stopReason": "cancelled"})


class AcpTurn(Turn):
    def __init__(self, talker: AcpTalker, request: Json) -> None:
        super().__init__("".join(block.get("text", "") for block in request["params"]["prompt"]))
        self._talker = talker
        self._request = request
        self.session_id: str = request["params"]["sessionId"]
        self.meta: Json = {}
        """Goes along with what is asked."""
        self._step = ""

    @property
    def talker(self) -> Talker:
        return self._talker

    async def asks(self, question: str, *, options: Sequence[str] = (), id: object = None) -> Asked:  # noqa: A002
        return await self.asks_form(
            question, answer={"type": "string", **({"enum": list(options)} if options else {})}
        )

    async def asks_form(self, question: str, **fields: Json) -> Asked:
        """Ask for a form."""
        schema = {"type": "object", "properties": fields, "required": list(fields)}
        return await self._ask(
            "elicitation/create", question, mode="form", message=question, requestedSchema=schema
        )

    async def asks_for(self, description: str, *, id: object = None) -> Asked:  # noqa: A002
        return await self.offers(description, OPTIONS)

    async def offers(self, description: str, options: Sequence[Json]) -> Asked:
        """Ask for approval by options of its own."""
        call = {"toolCallId": f"call-{len(self._talker.asked)}", "title": description, "kind": "other"}
        return await self._ask(
            "session/request_permission", description, toolCall=call, options=list(options)
        )

    async def _ask(self, method: str, what: str, **params: object) -> Asked:
        whole = {"sessionId": self.session_id, **params, **({"_meta": self.meta} if self.meta else {})}
        self.last_request, asked = await self._talker.request(method, whole)
        asked.what = what
        self._talker.asked.append(asked)
        return asked

    async def withdraw(self, request: int) -> None:
        """Take back a question, by the number of its request."""
        await self._talker.notify("$/cancel_request", {"requestId": request})

    async def progress(self, message: str) -> None:
        await self._close_step("completed")
        self._step = message
        call = {"toolCallId": message, "title": message, "kind": "other", "status": "in_progress"}
        await self.update({"sessionUpdate": "tool_call", **call})

    async def _close_step(self, status: str) -> None:
        if self._step:
            update = {"sessionUpdate": "tool_call_update", "toolCallId": self._step, "status": status}
            await self.update(update)
            self._step = ""

    async def partial(self, text: str) -> None:
        content = {"type": "text", "text": text}
        await self.update({"sessionUpdate": "agent_message_chunk", "content": content, "messageId": "m"})

    async def update(self, update: Json) -> None:
        """Send a session update."""
        await self._talker.notify("session/update", {"sessionId": self.session_id, "update": update})

    async def end(self, result: str | Json | None) -> None:
        await self._close_step("completed")
        if isinstance(result, dict):
            arguments = {"name": "return_result", "arguments": result}
            returned = await self._talker.call_mcp(self.session_id, "tools/call", arguments)
            assert not returned.get("isError"), returned
        elif result:
            content = {"type": "text", "text": result}
            update = {"sessionUpdate": "agent_message_chunk", "content": content, "messageId": "result"}
            await self.update(update)
        await self._talker.answer(self._request, {"stopReason": "end_turn"})

    async def fail(self, message: str) -> None:
        await self._close_step("failed")
        error = {"code": -32603, "message": message}
        await self._talker.send({"jsonrpc": "2.0", "id": self._request["id"], "error": error})


_ALLOWED = {"allow": True, "reject": False}

_SELF = {"name": "talker", "version": "1"}


def _said(message: Json) -> Any:
    """Return what an answer says, in the form that lines have for it."""
    if "error" in message:
        return None
    result: Json = message["result"]
    if "action" in result:
        content: Json = result.get("content") or {}
        whole = content.get("answer") if content.keys() == {"answer"} else content
        return whole if result["action"] == "accept" else None
    if "outcome" in result:
        option = result["outcome"].get("optionId")
        return _ALLOWED.get(option, option)
    return result


async def hanging(began: anyio.Event, log: list[str], word: str = "cancelled") -> None:
    """Do what a handler does that never ends: set an event at once, and log this when it is cancelled."""
    began.set()
    try:
        await anyio.sleep_forever()
    finally:
        log.append(word)


TALKERS: dict[Protocol, Callable[[Transport, Sequence[Scene]], Talker]] = {
    "acp": AcpTalker,
    "ndjson": LineTalker,
}


@asynccontextmanager
async def talking(protocol: Protocol, *scenes: Scene, **options: Any) -> AsyncGenerator[tuple[Agent, Talker]]:
    """Open an agent in memory that plays these scenes."""
    from thinkwell import open_agent  # the programs need none of it

    ours, theirs = memory_transport_pair()
    talker = TALKERS[protocol](theirs, scenes)
    options.setdefault("permissions", "ask")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(talker.serve)
        async with open_agent(transport=ours, protocol=protocol, **options) as agent:
            yield agent, talker


def answering(value: object, **options: Any) -> Handlers:
    """Return handlers that answer every question so, and say yes to everything."""
    from thinkwell.listen import Handlers  # the programs need none of it

    handlers = Handlers(**options)

    @handlers.on("question")
    async def _(_question: object) -> object:
        return value

    @handlers.on("approval")
    async def _(_approval: object) -> bool:
        return True

    return handlers
