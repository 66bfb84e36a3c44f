"""An agent that plays plans message by message, and can lie where a script cannot."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import anyio

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

    from thinkwell_acp import Transport

Json: TypeAlias = dict[str, Any]

OPTIONS = [
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]

When: TypeAlias = Literal["cancelled", "end_turn", "error", "late", "never"]
"""What becomes of a cancelled turn: how it ends, or that it ends after a while, or never."""


Told: TypeAlias = tuple[Any, bool, str]
"""A value that was returned, whether it was taken, and what was said to that."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """Something that the agent does in a turn."""

    do: str
    """``say``, ``think``, ``plan``, ``tool``, ``unknown``: an update. ``ask``: a permission. ``form``.
    ``return``. ``call``: a tool of the user's. ``pause``. ``hang``. ``crash``: it ends. ``take_back``: the
    last question."""
    token: str = ""
    value: Any = None
    more: tuple[Any, ...] = ()
    """Values that are returned in the same write, behind `value`."""
    waits: bool = True
    """Whether it waits for the answer before it goes on."""


@dataclass(kw_only=True)
class Plan:
    """What the agent does with one prompt, and with its reminder."""

    mark: str
    """What the prompt says."""
    steps: tuple[Step, ...]
    stop: str = "end_turn"
    """The stop reason, or ``error``."""
    reminded: tuple[Step, ...] = ()
    when_cancelled: When = "cancelled"
    minds_questions: bool = False
    """Whether a cancelled turn ends only when its questions are answered."""
    cancel_delay: float = 0.0


@dataclass
class _Session:
    servers: list[Json]
    mark: str = ""
    """Of the last prompt."""
    questions: list[anyio.Event] = field(default_factory=list[anyio.Event])
    """Set when they are answered."""
    mcp: str | None = None
    mcp_ready: anyio.Event = field(default_factory=anyio.Event)
    cancelled: anyio.Event = field(default_factory=anyio.Event)


class Wire(ABC):
    """The agent's end of one connection, message by message.

    Args:
        transport: It.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def serve(self) -> None:
        """Read until the end."""
        begun = b""
        async with anyio.create_task_group() as tasks:
            with suppress(anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
                while True:
                    *lines, begun = (begun + await self._transport.receive()).split(b"\n")
                    for line in lines:
                        await self._take(json.loads(line), tasks)
            tasks.cancel_scope.cancel()
        await self._transport.aclose()

    @abstractmethod
    async def _take(self, message: Json, tasks: TaskGroup) -> None:
        """Take a message."""

    async def _update(self, session_id: str, kind: str, **fields: Any) -> None:
        update = {"sessionUpdate": kind, **fields}
        await self._write({"method": "session/update", "params": {"sessionId": session_id, "update": update}})

    async def _answer(self, request: Json, result: Json) -> None:
        await self._write({"id": request["id"], "result": result})

    async def _write(self, *messages: Json) -> None:
        lines = [json.dumps({"jsonrpc": "2.0", **each}, ensure_ascii=False) + "\n" for each in messages]
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._transport.send("".join(lines).encode())


class Player(Wire):
    """Plays plans on one connection.

    Args:
        transport: It.
        plans: What it does.
        lists_tools: Whether it fetches our tools.
        can_close: Whether it can close sessions.
        prefix: What the names of its sessions begin with.
    """

    def __init__(
        self,
        transport: Transport,
        plans: list[Plan],
        *,
        lists_tools: bool = True,
        can_close: bool = True,
        prefix: str = "s",
    ) -> None:
        super().__init__(transport)
        self._plans = {plan.mark: plan for plan in plans}
        self._lists_tools = lists_tools
        self._can_close = can_close
        self._prefix = prefix
        self._sessions: dict[str, _Session] = {}
        self._waiting: dict[Any, tuple[anyio.Event, list[Json]]] = {}
        self._ids = 0
        self._questions: list[int] = []
        self.relists = True
        """Whether it fetches our tools again when it hears that they have changed."""
        self.returned: dict[str, list[Told]] = {}
        """By mark: each value that was returned."""
        self.at_once: dict[str, list[list[Told]]] = {}
        """By mark: those that were returned in one write, in its order."""
        self.held: dict[str, float] = {}
        """By mark: seconds that a cancelled turn waited for the answers to its questions."""
        self.works_at: Counter[str] = Counter()
        """By mark: how many turns it works at."""
        self.cancelled: set[str] = set()
        """The marks of turns that it was told to end."""
        self.turns: Counter[str] = Counter()
        """By mark: how many prompts came."""

    async def _take(self, message: Json, tasks: TaskGroup) -> None:
        params: Json = message.get("params", {})
        match message.get("method"):
            case None:
                event, answers = self._waiting.pop(message["id"], (anyio.Event(), list[Json]()))
                answers.append(message)
                event.set()
            case "initialize":
                capabilities: Json = {
                    "mcpCapabilities": {"acp": True},
                    "sessionCapabilities": {"close": {}} if self._can_close else {},
                }
                await self._answer(message, {"protocolVersion": 1, "agentCapabilities": capabilities})
            case "session/new":
                id_ = f"{self._prefix}{len(self._sessions) + 1}"
                session = self._sessions[id_] = _Session(params.get("mcpServers", []))
                await self._answer(message, {"sessionId": id_})
                if session.servers and self._lists_tools:
                    tasks.start_soon(self._connect, session)
            case "session/prompt":
                tasks.start_soon(self._prompted, message, tasks)
            case "mcp/message" if params["method"] == "notifications/tools/list_changed" and self.relists:
                session = next(s for s in self._sessions.values() if s.mcp == params["connectionId"])
                tasks.start_soon(self._list_tools, session)
            case "session/cancel":
                session = self._sessions[params["sessionId"]]
                self.cancelled.add(session.mark)
                session.cancelled.set()
            case "session/close":
                self._sessions[params["sessionId"]].cancelled.set()
                await self._answer(message, {})
            case _:
                pass

    async def _connect(self, session: _Session) -> None:
        server = session.servers[-1]
        connected = await self._ask("mcp/connect", {"serverId": server.get("serverId", server.get("id"))})
        if "result" not in connected:
            return
        session.mcp = connected["result"]["connectionId"]
        info = {"name": "player", "version": "1"}
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}
        await self._mcp(session, "initialize", hello)
        outer = {"connectionId": session.mcp, "method": "notifications/initialized"}
        await self._write({"method": "mcp/message", "params": outer})
        await self._list_tools(session)
        session.mcp_ready.set()

    async def _list_tools(self, session: _Session) -> None:
        await self._mcp(session, "tools/list", {})

    # Turns

    async def _prompted(self, message: Json, tasks: TaskGroup) -> None:
        params = message["params"]
        id_, session = params["sessionId"], self._sessions[params["sessionId"]]
        session.cancelled = anyio.Event()
        text = "".join(block.get("text", "") for block in params["prompt"])
        mark = next((mark for mark in self._plans if mark in text), None)
        if mark is None:  # the reminder of the turn before
            mark = session.mark
            steps = self._plans[mark].reminded
        else:
            steps = self._plans[mark].steps
        session.mark = mark
        plan = self._plans[mark]
        self.turns[mark] += 1
        done = anyio.Event()
        scope = anyio.CancelScope()

        async def play() -> None:
            with scope:
                for step in steps:
                    await self._do(step, id_, session, mark, tasks)
            done.set()

        tasks.start_soon(play)
        self.works_at[mark] += 1
        async with anyio.create_task_group() as either:

            async def until(event: anyio.Event) -> None:
                await event.wait()
                either.cancel_scope.cancel()

            either.start_soon(until, done)
            either.start_soon(until, session.cancelled)
        self.works_at[mark] -= 1
        stop = plan.stop
        if not done.is_set():
            scope.cancel()
            stop = plan.when_cancelled
            if plan.minds_questions:
                began = anyio.current_time()
                for answered in session.questions:
                    await answered.wait()
                self.held[mark] = anyio.current_time() - began
            await anyio.sleep({"late": 13.0, "never": 10**6}.get(stop, plan.cancel_delay))
            stop = "cancelled" if stop == "late" else stop
        if stop == "error":
            await self._write({"id": message["id"], "error": {"code": -32603, "message": "it went wrong"}})
        else:
            await self._answer(message, {"stopReason": stop})

    async def _do(self, step: Step, id_: str, session: _Session, mark: str, tasks: TaskGroup) -> None:
        match step.do:
            case "pause":
                await anyio.sleep(step.value)
            case "hang":
                await anyio.sleep_forever()
            case "crash":
                await self._transport.aclose()
                await anyio.sleep_forever()
            case "ask" | "form":
                request = self._question(step, id_)
                if step.waits:
                    await self._ask(*request, session)
                else:
                    tasks.start_soon(self._ask, *request, session)
            case "take_back":
                if self._questions:
                    await self._write(
                        {"method": "$/cancel_request", "params": {"requestId": self._questions[-1]}}
                    )
            case "return":
                await self._return([step.value, *step.more], session, mark)
            case "call":
                if session.mcp_ready.is_set():
                    arguments = {"name": "look", "arguments": {"what": step.token}}
                    await self._mcp(session, "tools/call", arguments)
            case _:
                await self._update(id_, **_update(step))

    async def _return(self, values: list[Json], session: _Session, mark: str) -> None:
        if not session.mcp_ready.is_set():
            return
        calls = [{"name": "return_result", "arguments": value} for value in values]
        answers = await self._mcp(session, "tools/call", *calls)
        told: list[Told] = []
        for value, answer in zip(values, answers, strict=True):
            if "result" in answer:
                taken = not answer["result"].get("isError", False)
                told.append((value, taken, answer["result"]["content"][0]["text"]))
        self.returned.setdefault(mark, []).extend(told)
        self.at_once.setdefault(mark, []).append(told)

    def _question(self, step: Step, session: str) -> tuple[str, Json]:
        if step.do == "form":
            schema = {"type": "object", "properties": {"x": {"type": "string"}}}
            fields = {"mode": "form", "message": step.token, "requestedSchema": schema}
            return "elicitation/create", {"sessionId": session, **fields}
        call = {"toolCallId": f"ask-{step.token}"}
        return "session/request_permission", {"sessionId": session, "toolCall": call, "options": OPTIONS}

    # The wire

    async def _mcp(self, session: _Session, method: str, *params: Json) -> list[Json]:
        """Send requests in one write, and return their answers."""
        outer = {"connectionId": session.mcp, "method": method}
        requests = [self._request("mcp/message", {**outer, "params": each}) for each in params]
        await self._write(*(message for message, _, _ in requests))
        for _, answered, _ in requests:
            await answered.wait()
        return [answers[0] for _, _, answers in requests]

    async def _ask(self, method: str, params: Json, session: _Session | None = None) -> Json:
        message, answered, answers = self._request(method, params)
        if session is not None:
            self._questions.append(message["id"])
            session.questions.append(answered)
        await self._write(message)
        await answered.wait()
        return answers[0]

    def _request(self, method: str, params: Json) -> tuple[Json, anyio.Event, list[Json]]:
        self._ids += 1
        answered, answers = self._waiting[self._ids] = anyio.Event(), list[Json]()
        return {"id": self._ids, "method": method, "params": params}, answered, answers


def _update(step: Step) -> Json:
    text = {"type": "text", "text": step.token}
    match step.do:
        case "say":
            return {"kind": "agent_message_chunk", "content": text, "messageId": "m"}
        case "think":
            return {"kind": "agent_thought_chunk", "content": text}
        case "plan":
            entry = {"content": step.token, "priority": "low", "status": "pending"}
            return {"kind": "plan", "entries": [entry]}
        case "tool":
            id_, status = step.value
            kind = "tool_call" if status == "pending" else "tool_call_update"
            return {"kind": kind, "toolCallId": id_, "title": step.token, "status": status}
        case "unknown":
            return {"kind": "never_heard_of", "token": step.token}
        case other:
            raise AssertionError(other)
