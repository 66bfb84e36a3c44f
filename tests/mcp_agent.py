"""A scripted agent that reaches the tools with the official MCP client, by whatever way it is given."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import anyio
from mcp.client.session import ClientSession
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import MCPError
from mcp_support import shake_hands
from scripted import Played, Proceed, Script, Turn, playing

from thinkwell import Agent, open_agent
from thinkwell_acp import memory_transport_pair
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence
    from contextlib import AbstractAsyncContextManager

    from anyio.abc import TaskGroup
    from mcp.client._transport import TransportStreams
    from mcp.client.session import IncomingMessage
    from pydantic import BaseModel

CAPABILITIES = {
    "acp": s.McpCapabilities(acp=True, http=True),
    "http": s.McpCapabilities(http=True),
    "stdio": s.McpCapabilities(),
    "http, sse": s.McpCapabilities(http=True, sse=True),
}
"""What an agent advertises for whom this is the way."""


class McpAgent(Played):
    """Holds an official MCP client for each server of its sessions; the last server is ours."""

    def __init__(
        self, scripts: Sequence[Script], tasks: TaskGroup, capabilities: s.AgentCapabilities
    ) -> None:
        super().__init__(scripts, capabilities=capabilities, relists=True)
        self._tasks = tasks
        self.clients: dict[str, ClientSession] = {}
        self.others: dict[tuple[str, str], ClientSession] = {}
        """Those of the user's servers, by session and name."""
        self.lists: list[list[str]] = []

    async def open_session(self, request: Any, proceed: Proceed) -> Any:
        opened = await super().open_session(request, proceed)
        session_id = getattr(opened, "session_id", None) or request.session_id
        for server in request.mcp_servers:
            if isinstance(server, s.McpServerAcp):
                continue
            client: ClientSession = await self._tasks.start(self._hold, server)
            if server is request.mcp_servers[-1]:
                self.clients[session_id] = client
            else:
                self.others[session_id, server.name] = client
        return opened

    async def _hold(
        self,
        server: s.McpServerHttp | s.McpServerStdio | s.McpServerSse,
        *,
        task_status: anyio.abc.TaskStatus[ClientSession],
    ) -> None:
        transport = _transport(server)
        changed = anyio.Event()

        async def hear(message: IncomingMessage) -> None:
            nonlocal changed
            if getattr(message, "method", "") == "notifications/tools/list_changed":
                changed.set()

        async with transport as (read, write), ClientSession(read, write, message_handler=hear) as client:
            await shake_hands(client, "2025-11-25")
            self.lists.append([tool.name for tool in (await client.list_tools()).tools])
            task_status.started(client)
            while True:
                await changed.wait()
                changed = anyio.Event()
                try:
                    self.lists.append([tool.name for tool in (await client.list_tools()).tools])
                except MCPError:  # the server was ended right after it had told of its last change
                    await anyio.sleep_forever()

    async def mcp(self, turn: Turn, method: str, params: dict[str, Any] | None) -> dict[str, Any]:
        client = self.clients.get(turn.session_id)
        if client is None:
            return await super().mcp(turn, method, params)
        result = cast(
            "BaseModel", await (client.list_tools() if params is None else client.call_tool(**params))
        )
        return result.model_dump(by_alias=True, mode="json", exclude_none=True)


def _transport(
    server: s.McpServerHttp | s.McpServerStdio | s.McpServerSse,
) -> AbstractAsyncContextManager[TransportStreams]:
    match server:
        case s.McpServerHttp():
            return _http(server)
        case s.McpServerSse():
            return sse_client(server.url, {header.name: header.value for header in server.headers})
        case s.McpServerStdio():
            return _stdio(server)


@asynccontextmanager
async def _http(server: s.McpServerHttp) -> AsyncGenerator[TransportStreams]:
    headers = {header.name: header.value for header in server.headers}
    async with (
        create_mcp_http_client(headers) as client,
        streamable_http_client(server.url, http_client=client) as streams,
    ):
        yield streams


def _stdio(server: s.McpServerStdio) -> AbstractAsyncContextManager[TransportStreams]:
    env = {variable.name: variable.value for variable in server.env}
    return stdio_client(StdioServerParameters(command=server.command, args=list(server.args), env=env))


@asynccontextmanager
async def mcp_agent(
    way: str, *scripts: Script, sessions: s.SessionCapabilities | None = None, **options: Any
) -> AsyncGenerator[tuple[Agent, McpAgent]]:
    """Open an agent for whom this is the way."""
    capabilities = s.AgentCapabilities(
        mcp_capabilities=CAPABILITIES[way], session_capabilities=sessions or s.SessionCapabilities()
    )
    ours, theirs = memory_transport_pair()
    async with anyio.create_task_group() as tasks:
        handler = McpAgent(scripts, tasks, capabilities)
        async with playing(theirs, handler), open_agent(way, transport=ours, **options) as agent:
            yield agent, handler
            tasks.cancel_scope.cancel()
