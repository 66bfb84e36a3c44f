"""Shorthand over `thinkwell.testing.ScriptedAgent`: an agent whose turns are functions of a `Turn`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio
from msgspec.structs import replace

from thinkwell.testing import ScriptedAgent, ScriptedTurn, script
from thinkwell_acp import schema as s
from thinkwell_acp.schema.methods import REQUESTS

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from thinkwell import Agent
    from thinkwell_acp import Transport

ONLY_TOOLS = s.AgentCapabilities(mcp_capabilities=s.McpCapabilities(acp=True))

EVERY_SESSION_CALL = s.AgentCapabilities(
    load_session=True,
    mcp_capabilities=s.McpCapabilities(acp=True),
    session_capabilities=s.SessionCapabilities(
        list=s.SessionListCapabilities(),
        delete=s.SessionDeleteCapabilities(),
        additional_directories=s.SessionAdditionalDirectoriesCapabilities(),
        resume=s.SessionResumeCapabilities(),
        close=s.SessionCloseCapabilities(),
        fork=s.SessionForkCapabilities(),
    ),
)
"""What an agent advertises that can do everything with its sessions."""


class Turn:
    """What a scripted turn can do."""

    def __init__(self, agent: Played, turn: ScriptedTurn) -> None:
        self.agent = agent
        self.request = turn.request
        self.session_id = turn.session_id
        self.client = turn.client
        self.text = turn.text
        self.update = turn.update
        self.mcp_connections = turn.mcp_connections

    @property
    def server(self) -> str:
        """The name of thinkwell's MCP server in the session that was opened last."""
        name: str = self.agent.sent.sessions[-1].mcp_servers[-1]["name"]
        return name

    def say(self, text: str, message_id: str | None = None) -> None:
        self.update(s.AgentMessageChunk(content=s.TextContent(text=text), message_id=message_id))

    def think(self, text: str, message_id: str | None = None) -> None:
        self.update(s.AgentThoughtChunk(content=s.TextContent(text=text), message_id=message_id))

    async def mcp(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send a request of MCP to thinkwell's tools, and return its result as it is."""
        return await self.agent.mcp(self, method, params)

    async def call(self, name: str, arguments: dict[str, object]) -> dict[str, Any]:
        """Call a tool of thinkwell's, offered or not, and return its MCP result."""
        return await self.mcp("tools/call", {"name": name, "arguments": arguments})

    async def returns(self, **arguments: object) -> dict[str, Any]:
        """Call `return_result`."""
        return await self.call("return_result", arguments)

    async def list_tools(self) -> list[dict[str, Any]]:
        tools: list[dict[str, Any]] = (await self.mcp("tools/list"))["tools"]
        return tools


Script: TypeAlias = Callable[[Turn], Awaitable[str | None]]
"""A turn. It returns the stop reason; `None` is `end_turn`."""

Proceed: TypeAlias = Callable[[Any], Awaitable[Any]]
Answers: TypeAlias = Mapping[str, Callable[[Any, Proceed], Awaitable[Any]]]


class Played(ScriptedAgent):
    """Plays one script for each prompt, in order; the last one again and again.

    `answers` come before those of this class, which know of modes and options, and of sessions to list.
    """

    def __init__(
        self,
        scripts: Sequence[Script] = (),
        *,
        answers: Answers | None = None,
        capabilities: s.AgentCapabilities = ONLY_TOOLS,
        relists: bool = False,
        **options: Any,
    ) -> None:
        self.capabilities = capabilities
        told = script
        for function in scripts:
            told = told.does(self._turn_of(function)).stops()
        self.replay: list[s.SessionUpdate] = []
        """What is repeated of a session that is loaded."""
        self.modes: s.SessionModeState | None = None
        self.models: s.SessionModelState | None = None
        self.options: list[s.SessionConfigOption] = []
        self.known: list[s.SessionInfo] = []
        """The sessions that are listed, two on a page."""
        table: dict[str, Any] = {
            "initialize": self.initialize,
            **dict.fromkeys(
                ("session/new", "session/load", "session/resume", "session/fork"), self.open_session
            ),
            "session/list": self.list_sessions,
            "session/delete": self.delete_session,
            "session/set_mode": self.set_mode,
            "session/set_model": self.set_model,
            "session/set_config_option": self.set_option,
        }
        for method, answer in (answers or {}).items():
            table[method] = _before(answer, table[method]) if method in table else answer
        super().__init__(
            told,
            answers=table,
            relists=relists,
            repeats=True,
            complete=False,
            **options,
        )

    def _turn_of(self, function: Script) -> Callable[[ScriptedTurn], Awaitable[str | None]]:
        return lambda turn: function(Turn(self, turn))

    def requests(self, *methods: str) -> list[Any]:
        """What was asked by these methods, as values of the schema."""
        return [
            s.convert(REQUESTS[message.method].params, message.params)
            for message in self.sent.messages
            if message.method in methods
        ]

    @property
    def asked(self) -> list[str]:
        """The requests of sessions, prompts left out: methods, with the mode or the option that is set."""
        asked: list[str] = []
        for message in self.sent.messages:
            params = message.params
            match message.method:
                case "session/set_mode":
                    asked.append(f"session/set_mode {params['modeId']}")
                case "session/set_model":
                    asked.append(f"session/set_model {params['modelId']}")
                case "session/set_config_option":
                    asked.append(f"session/set_config_option {params['configId']}={params['value']}")
                case "session/prompt" | "session/cancel":
                    pass
                case method if method.startswith("session/"):
                    asked.append(method)
                case _:
                    pass
        return asked

    async def mcp(self, turn: Turn, method: str, params: dict[str, Any] | None) -> dict[str, Any]:
        """Send a request of MCP to thinkwell's tools."""
        (connection,) = turn.mcp_connections
        request = s.MessageMcpRequest(connection_id=connection, method=method, params=params)
        result: dict[str, Any] = await turn.client.message_mcp(request)
        return result

    async def initialize(self, request: Any, proceed: Proceed) -> Any:
        return replace(await proceed(request), agent_capabilities=self.capabilities)

    async def open_session(self, request: Any, proceed: Proceed) -> Any:
        """Answer ``session/new`` and its like."""
        opened = await proceed(request)
        for update in self.replay if isinstance(request, s.LoadSessionRequest) else ():
            self.client.update(request.session_id, update)
        options = tuple(self.options) or None
        return replace(opened, modes=self.modes, models=self.models, config_options=options)

    async def list_sessions(
        self, request: s.ListSessionsRequest, _proceed: Proceed
    ) -> s.ListSessionsResponse:
        known = [info for info in self.known if request.cwd in (None, info.cwd)]
        start = int(request.cursor or 0)
        end = start + 2
        return s.ListSessionsResponse(
            sessions=tuple(known[start:end]), next_cursor=str(end) if end < len(known) else None
        )

    async def delete_session(
        self, request: s.DeleteSessionRequest, _proceed: Proceed
    ) -> s.DeleteSessionResponse:
        self.known = [info for info in self.known if info.session_id != request.session_id]
        return s.DeleteSessionResponse()

    async def set_mode(
        self, _request: s.SetSessionModeRequest, _proceed: Proceed
    ) -> s.SetSessionModeResponse:
        return s.SetSessionModeResponse()

    async def set_model(
        self, _request: s.SetSessionModelRequest, _proceed: Proceed
    ) -> s.SetSessionModelResponse:
        return s.SetSessionModelResponse()

    async def set_option(
        self, request: s.SetSessionConfigOptionRequest, _proceed: Proceed
    ) -> s.SetSessionConfigOptionResponse:
        self.options = [
            replace(option, current_value=request.value) if option.id == request.config_id else option
            for option in self.options
        ]
        return s.SetSessionConfigOptionResponse(config_options=tuple(self.options))


def _before(first: Callable[[Any, Proceed], Awaitable[Any]], then: Callable[[Any, Proceed], Any]) -> Any:
    async def both(request: Any, proceed: Proceed) -> Any:
        async def go_on(passed: Any) -> Any:
            return await then(passed, proceed)

        return await first(request, go_on)

    return both


async def never(_request: object, _proceed: Proceed) -> None:
    """Answer nothing."""
    await anyio.sleep_forever()


@asynccontextmanager
async def playing(transport: Transport, agent: ScriptedAgent) -> AsyncGenerator[None]:
    """Let an agent play on a transport for the time of a block."""
    failed: Exception | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(agent.serve, transport)
        try:
            yield
        except Exception as exc:  # which the group would wrap
            failed = exc
        finally:
            with anyio.CancelScope(shield=True):
                await transport.aclose()
    if failed is not None:
        raise failed


def scripted(
    *scripts: Script, agent: ScriptedAgent | None = None, **options: Any
) -> AbstractAsyncContextManager[Agent]:
    """Open an agent that plays these scripts."""
    return (agent or Played(scripts)).open(**options)
