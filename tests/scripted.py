"""An agent whose turns are Python functions, connected by memory: a real peer for the tests of thinkwell."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

from msgspec.structs import replace

from thinkwell import Agent, open_agent
from thinkwell_acp import AgentHandler, AgentSide, memory_transport_pair, serve_agent
from thinkwell_acp import schema as s

MCP_HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "scripted", "version": "1"},
}

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

    def __init__(self, agent: ScriptedAgent, request: s.PromptRequest) -> None:
        self.agent = agent
        self.request = request
        self.session_id = request.session_id

    @property
    def client(self) -> AgentSide:
        return self.agent.client

    @property
    def text(self) -> str:
        """The text of the prompt."""
        return "".join(block.text for block in self.request.prompt if isinstance(block, s.TextContent))

    def update(self, update: s.SessionUpdate) -> None:
        self.client.update(self.session_id, update)

    def say(self, text: str, message_id: str | None = None) -> None:
        self.update(s.AgentMessageChunk(content=s.TextContent(text=text), message_id=message_id))

    def think(self, text: str, message_id: str | None = None) -> None:
        self.update(s.AgentThoughtChunk(content=s.TextContent(text=text), message_id=message_id))

    async def call(self, name: str, arguments: dict[str, object]) -> dict[str, Any]:
        """Call a tool of thinkwell's over MCP and return its MCP result."""
        return await self.agent.call_tool(self.session_id, name, arguments)

    async def returns(self, **arguments: object) -> dict[str, Any]:
        """Call `return_result`."""
        return await self.call("return_result", arguments)

    async def list_tools(self) -> list[dict[str, Any]]:
        return await self.agent.list_session_tools(self.session_id)


Script: TypeAlias = Callable[[Turn], Awaitable[str | None]]
"""A turn. It returns the stop reason; `None` is `end_turn`."""


class ScriptedAgent(AgentHandler):
    """Plays one script for each prompt, in order; the last one again and again."""

    def __init__(
        self,
        scripts: Sequence[Script],
        *,
        capabilities: s.AgentCapabilities | None = None,
        lists_tools: bool = True,
        before_session: Callable[[AgentSide, str], None] | None = None,
        relists: bool = False,
    ) -> None:
        self.scripts = list(scripts)
        self.capabilities = capabilities or s.AgentCapabilities(mcp_capabilities=s.McpCapabilities(acp=True))
        self.lists_tools = lists_tools
        self.before_session = before_session
        self.client: AgentSide
        self.prompts: list[s.PromptRequest] = []
        self.sessions: list[s.NewSessionRequest] = []
        self.closed_sessions: list[str] = []
        self.asked: list[str] = []
        """The methods that were called, but for prompts."""
        self.opened: list[s.LoadSessionRequest | s.ResumeSessionRequest | s.ForkSessionRequest] = []
        self.replay: list[s.SessionUpdate] = []
        """What is repeated of a session that is loaded."""
        self.modes: s.SessionModeState | None = None
        self.options: list[s.SessionConfigOption] = []
        self.known: list[s.SessionInfo] = []
        """The sessions that are listed, two on a page."""
        self.mcp: dict[str, str] = {}
        self.tools: dict[str, list[dict[str, Any]]] = {}
        self.relists = relists
        self.list_count = 0

    def connected(self, client: AgentSide, /) -> None:
        self.client = client

    async def initialize(self, request: s.InitializeRequest, /) -> s.InitializeResponse:
        self.client_capabilities = request.client_capabilities
        return s.InitializeResponse(
            protocol_version=1,
            agent_capabilities=self.capabilities,
            agent_info=s.Implementation(name="scripted", version="1"),
        )

    async def new_session(self, request: s.NewSessionRequest, /) -> s.NewSessionResponse:
        self.asked.append("session/new")
        self.sessions.append(request)
        session_id = f"session-{len(self.sessions)}"
        if self.before_session is not None:
            self.before_session(self.client, session_id)
        await self._connect_tools(session_id, request.mcp_servers)
        return s.NewSessionResponse(
            session_id=session_id, modes=self.modes, config_options=tuple(self.options) or None
        )

    async def load_session(self, request: s.LoadSessionRequest, /) -> s.LoadSessionResponse:
        self.asked.append("session/load")
        self.opened.append(request)
        await self._connect_tools(request.session_id, request.mcp_servers)
        for update in self.replay:
            self.client.update(request.session_id, update)
        return s.LoadSessionResponse(modes=self.modes, config_options=tuple(self.options) or None)

    async def resume_session(self, request: s.ResumeSessionRequest, /) -> s.ResumeSessionResponse:
        self.asked.append("session/resume")
        self.opened.append(request)
        await self._connect_tools(request.session_id, request.mcp_servers)
        return s.ResumeSessionResponse(modes=self.modes, config_options=tuple(self.options) or None)

    async def fork_session(self, request: s.ForkSessionRequest, /) -> s.ForkSessionResponse:
        self.asked.append("session/fork")
        self.opened.append(request)
        session_id = f"{request.session_id}-fork-{len(self.opened)}"
        await self._connect_tools(session_id, request.mcp_servers)
        return s.ForkSessionResponse(
            session_id=session_id, modes=self.modes, config_options=tuple(self.options) or None
        )

    async def close_session(self, request: s.CloseSessionRequest, /) -> s.CloseSessionResponse:
        self.asked.append("session/close")
        self.closed_sessions.append(request.session_id)
        return s.CloseSessionResponse()

    async def list_sessions(self, request: s.ListSessionsRequest, /) -> s.ListSessionsResponse:
        self.asked.append("session/list")
        known = [info for info in self.known if request.cwd in (None, info.cwd)]
        start = int(request.cursor or 0)
        end = start + 2
        return s.ListSessionsResponse(
            sessions=tuple(known[start:end]), next_cursor=str(end) if end < len(known) else None
        )

    async def delete_session(self, request: s.DeleteSessionRequest, /) -> s.DeleteSessionResponse:
        self.asked.append("session/delete")
        self.known = [info for info in self.known if info.session_id != request.session_id]
        return s.DeleteSessionResponse()

    async def set_session_mode(self, request: s.SetSessionModeRequest, /) -> s.SetSessionModeResponse:
        self.asked.append(f"session/set_mode {request.mode_id}")
        return s.SetSessionModeResponse()

    async def set_session_config_option(
        self, request: s.SetSessionConfigOptionRequest, /
    ) -> s.SetSessionConfigOptionResponse:
        self.asked.append(f"session/set_config_option {request.config_id}={request.value}")
        self.options = [
            replace(option, current_value=request.value) if option.id == request.config_id else option
            for option in self.options
        ]
        return s.SetSessionConfigOptionResponse(config_options=tuple(self.options))

    async def _connect_tools(self, session_id: str, servers: Sequence[s.McpServer]) -> None:
        for server in servers:
            if isinstance(server, s.McpServerAcp):
                connection = await self.client.connect_mcp(s.ConnectMcpRequest(server_id=server.server_id))
                self.mcp[session_id] = connection.connection_id
                await self.client.message_mcp(
                    s.MessageMcpRequest(
                        connection_id=connection.connection_id, method="initialize", params=MCP_HELLO
                    )
                )
                self.client.notify_mcp(
                    s.MessageMcpNotification(
                        connection_id=connection.connection_id, method="notifications/initialized"
                    )
                )
                if self.lists_tools:
                    self.tools[session_id] = await self.list_tools(connection.connection_id)

    async def list_tools(self, connection_id: str) -> list[dict[str, Any]]:
        request = s.MessageMcpRequest(connection_id=connection_id, method="tools/list")
        tools: list[dict[str, Any]] = (await self.client.message_mcp(request))["tools"]
        self.list_count += 1
        return tools

    def notify_mcp(self, notification: s.MessageMcpNotification, /) -> None:
        """Fetch a changed list of tools again, where this agent does such things."""
        if self.relists and notification.method == "notifications/tools/list_changed":
            again = s.MessageMcpRequest(connection_id=notification.connection_id, method="tools/list")
            self.client.connection.call("mcp/message", again, self._relisted)

    def _relisted(self, outcome: object) -> None:
        self.list_count += 1

    async def call_tool(self, session_id: str, name: str, arguments: dict[str, object]) -> dict[str, Any]:
        """Call a tool of a session. Agents with another way to the tools override it, and the next one."""
        request = s.MessageMcpRequest(
            connection_id=self.mcp[session_id],
            method="tools/call",
            params={"name": name, "arguments": arguments},
        )
        result: dict[str, Any] = await self.client.message_mcp(request)
        return result

    async def list_session_tools(self, session_id: str) -> list[dict[str, Any]]:
        return await self.list_tools(self.mcp[session_id])

    async def prompt(self, request: s.PromptRequest, /) -> s.PromptResponse:
        script = self.scripts[min(len(self.prompts), len(self.scripts) - 1)]
        self.prompts.append(request)
        stop_reason = await script(Turn(self, request))
        return s.PromptResponse(stop_reason=stop_reason or "end_turn")


@asynccontextmanager
async def scripted(
    *scripts: Script, agent: ScriptedAgent | None = None, **options: Any
) -> AsyncGenerator[Agent]:
    """Open an agent that plays these scripts."""
    handler = agent or ScriptedAgent(scripts)
    ours, theirs = memory_transport_pair()
    async with serve_agent(theirs, handler), open_agent("scripted", transport=ours, **options) as opened:
        yield opened
