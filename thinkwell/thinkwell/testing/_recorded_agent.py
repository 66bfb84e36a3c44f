"""An agent that repeats a recording, in memory or as a process."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
import msgspec

from thinkwell._core.schema.json_schema import is_array, is_object
from thinkwell._recording._reading import read_recording
from thinkwell._recording._replay import check_speed
from thinkwell.testing import _recorded as did
from thinkwell.testing._journal import Tap
from thinkwell.testing._memory import PlayedAgent
from thinkwell_acp import ConnectionClosed, RpcError
from thinkwell_acp.connection import open_connection
from thinkwell_acp.errors import INTERNAL_ERROR
from thinkwell_acp.interpreter import python_command
from thinkwell_acp.mcp._client import AcpLink, McpClient
from thinkwell_acp.schema import McpServerAcp, convert
from thinkwell_acp.stdio import own_stdio

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from anyio.abc import TaskGroup

    from thinkwell.events import JsonValue
    from thinkwell_acp import AcpError, Transport
    from thinkwell_acp import schema as s
    from thinkwell_acp._jsonrpc import Malformed, Request, RequestId
    from thinkwell_acp.connection import Connection, Outcome
    from thinkwell_acp.schema import JsonObject

IDENTITY: Final[JsonObject] = {"name": "recorded", "version": "1"}


def replay_agent(path: str | os.PathLike[str], *, speed: float = 0) -> tuple[str, ...]:
    """Return the command of an agent that answers as it did in a recording.

    Each request gets the next recorded answer of its kind in its session. The agent ignores the content of
    what it is sent: it continues after any answer to its questions and calls. Your tools are called over
    the connection itself, whichever transport was recorded. A request beyond the end of the recording
    gets an error that says so.

    Args:
        path: A file written by ``open_agent(record=…)``.
        speed: 1 for the original speed, 2 for twice as fast, 0 for as fast as possible.

    Raises:
        RecordingError: The file is not a recording.
        OSError: The file cannot be read.
        ProgramNotStarted: No Python is available to run it, as in a frozen program.
        TypeError: The speed is not a number.
        ValueError: The speed is not a number from 0 on.
    """
    check_speed(speed, "replay_agent")
    recording = Path(read_recording(path).path).absolute()  # the process may start in another folder
    return tuple(python_command("-P", "-m", "thinkwell.testing", str(recording), str(speed)))


async def serve_recording(path: str, speed: float, transport: Transport | None = None) -> int | None:
    """Run as the agent until the client leaves.

    Returns:
        The exit code with which the agent ended in the recording, if it ended now.
    """
    plan = did.Plan(read_recording(path))
    exit_code: int | None = None
    async with anyio.create_task_group() as tasks:
        agent = partial(_Repeater, plan=plan, speed=speed, tasks=tasks)
        async with open_connection(transport or own_stdio(), agent) as connection:
            await connection.wait_closed()
            exit_code = connection.handler.exit_code
        tasks.cancel_scope.cancel()
    return exit_code


class _Repeater:
    def __init__(self, connection: Connection, plan: did.Plan, speed: float, tasks: TaskGroup) -> None:
        self._connection = connection
        self._plan = plan
        self._speed = speed
        self._tasks = tasks
        self._answers: dict[object, anyio.Event] = {}
        self._ids: dict[object, int] = {}
        self._outcomes: dict[object, Outcome] = {}
        self._terminals: dict[str, str] = {}
        """The client's current names, by those in the recording."""
        self._turns: dict[str | None, anyio.CancelScope] = {}
        self._mcp: dict[str, str] = {}
        """MCP connections of the sessions."""
        self.exit_code: int | None = None

    # Messages of the client

    def updates(self, batch: list[s.SessionNotification], /) -> None:
        """Ignore updates, which only an agent may send."""

    def arrived(self, request: Request, /) -> None:
        """Note a turn before its task runs: its cancellation may be read together with it."""
        if request.method == "session/prompt":
            self._turns[did.session_of(msgspec.json.decode(request.params))] = anyio.CancelScope()

    def notification(self, method: str, params: msgspec.Raw, /) -> None:
        """Cancel a turn."""
        if method == "session/cancel":
            scope = self._turns.get(did.session_of(msgspec.json.decode(params)))
            if scope is not None:
                scope.cancel()

    def malformed(self, report: Malformed, /) -> None:
        """Ignore malformed input."""

    def closed(self, reason: AcpError, /) -> None:
        """Ignore the end."""

    async def request(self, id: RequestId, method: str, params: msgspec.Raw, /) -> object:  # noqa: A002
        """Answer a request as recorded."""
        given = msgspec.json.decode(params)
        session = did.session_of(given)
        exchange = self._plan.next(method, session)
        if exchange is None:
            if self._plan.exit_code is not None:
                await self._end()
            raise RpcError(
                INTERNAL_ERROR, f"The recording {self._plan.path} holds no more {method}{_of(session)}"
            )
        scope = self._turns[session] if method == "session/prompt" else anyio.CancelScope()
        with scope:
            return await self._play(exchange, given)
        return {"stopReason": "cancelled"}

    async def _play(self, exchange: did.Exchange, params: JsonValue) -> object:
        await self._perform(exchange.acts, exchange.session, exchange.at)
        answer = exchange.answer
        if answer is None:
            await self._end()
            return None  # pragma: no cover - that does not return
        await self._pause(answer.at - (exchange.acts[-1].at if exchange.acts else exchange.at))
        if answer.error is not None:
            raise _error(answer.error)
        if exchange.method in did.OPENINGS:
            await self._connect_tools(exchange.session or did.session_of(answer.result) or "", params)
        # It runs after the answer was sent: there is no checkpoint before that.
        self._tasks.start_soon(self._perform, exchange.late, exchange.session, answer.at)
        return _with_our_way(answer.result) if exchange.method == "initialize" else answer.result

    async def _end(self) -> None:
        """Act as the agent did when it sent no answer: end, or hang."""
        if self._plan.cut is not None:
            raise RpcError(INTERNAL_ERROR, f"The recording {self._plan.path} is cut: {self._plan.cut}")
        if self._plan.exit_code is not None:
            self.exit_code = self._plan.exit_code
            await self._connection.flush()
            self._connection.end(ConnectionClosed())
        await anyio.sleep_forever()

    async def _perform(self, acts: list[did.Act], session: str | None, before: float) -> None:
        for act in acts:
            await self._pause(act.at - before)
            before = act.at
            await self._act(act, session)

    async def _pause(self, seconds: float) -> None:
        await anyio.sleep(seconds / self._speed if self._speed else 0)

    async def _act(self, act: did.Act, session: str | None) -> None:
        connection = self._connection
        match act:
            case did.Tells(method="$/cancel_request", params={"requestId": key}):
                connection.abandon(self._ids.get(key, -1))
                self._answers[key].set()
            case did.Tells():
                connection.notify(act.method, self._renamed(act.params))
                await connection.drain()
            case did.Asks(method="mcp/message"):
                connected = {"connectionId": self._mcp.get(session or "", "")}
                self._call(act.key, act.method, connected | act.params)
            case did.Asks():
                self._call(act.key, act.method, self._renamed(act.params))
            case did.IsAnswered():  # pragma: no branch - the last of the union
                await self._answers[act.key].wait()
                self._learn_terminal(act)

    def _call(self, key: object, method: str, params: JsonValue) -> None:
        answered = self._answers[key] = anyio.Event()

        def settle(outcome: Outcome) -> None:
            self._outcomes[key] = outcome
            answered.set()

        self._ids[key] = self._connection.call(method, params, settle)

    def _learn_terminal(self, answered: did.IsAnswered) -> None:
        """Note the current name of a terminal of the recording."""
        outcome, then = self._outcomes.get(answered.key), answered.result
        if isinstance(outcome, msgspec.Raw) and is_object(then) and "terminalId" in then:
            self._terminals[then["terminalId"]] = msgspec.json.decode(outcome).get("terminalId")

    def _renamed(self, value: JsonValue) -> JsonValue:
        """Return the value to send, with the current names of terminals."""
        if not self._terminals:
            return value
        if is_object(value):
            return {
                key: self._terminals.get(item, item) if key == "terminalId" else self._renamed(item)
                for key, item in value.items()
            }
        return [self._renamed(item) for item in value] if is_array(value) else value

    async def _connect_tools(self, session: str, params: JsonValue) -> None:
        """Fetch the client's tools, as any agent does when a session is opened."""
        for server in params.get("mcpServers", ()):
            if server.get("type") != "acp":
                continue
            link = await AcpLink.connect(self._connection, convert(McpServerAcp, server))
            self._mcp[session] = link.connection_id
            await McpClient(server["name"], link, IDENTITY).start()


def _with_our_way(result: JsonValue) -> JsonValue:
    """Return the agent's capabilities, plus calls of tools over the connection."""
    capabilities = dict(result.get("agentCapabilities") or {})
    capabilities["mcpCapabilities"] = {**(capabilities.get("mcpCapabilities") or {}), "acp": True}
    return {**result, "agentCapabilities": capabilities}


def _error(error: Mapping[str, JsonValue]) -> RpcError:
    return RpcError(error.get("code", INTERNAL_ERROR), error.get("message", ""), error.get("data"))


def _of(session: str | None) -> str:
    return f" in session {session!r}" if session else ""


class RecordedAgent(PlayedAgent):
    """An agent that answers as it did in a recording; see `replay_agent`.

    Each connection starts at the beginning of the recording.

    Args:
        path: A file written by ``open_agent(record=…)``.
        speed: 1 for the original speed, 2 for twice as fast, 0 for as fast as possible.

    Raises:
        RecordingError: The file is not a recording.
        OSError: The file cannot be read.
        TypeError: The speed is not a number.
        ValueError: The speed is not a number from 0 on.
    """

    name = "recorded"

    def __init__(self, path: str | os.PathLike[str], *, speed: float = 0) -> None:
        super().__init__()
        check_speed(speed, "RecordedAgent")
        self._command = replay_agent(path, speed=speed)
        self._path = Path(path).absolute()
        self._speed = speed

    def __repr__(self) -> str:
        return f"<RecordedAgent of {str(self._path)!r}>"

    async def serve(self, transport: Transport) -> None:
        tap = Tap(transport, self._journal, self._journal.claim("connection"))
        await serve_recording(str(self._path), self._speed, tap)

    def program(self) -> tuple[str, ...]:
        """Return the command of a process that does the same, for ``open_agent(command=…)``.

        Messages to the process are not in `sent`.
        """
        return self._command
