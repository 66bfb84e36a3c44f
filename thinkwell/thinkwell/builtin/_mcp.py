"""A small MCP client over ``mcp/connect`` and ``mcp/message``: it lists tools and calls them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from msgspec import Struct

from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from thinkwell_acp import AgentSide

REVISION: Final = "2025-06-18"
"""The revision of MCP that is asked for."""

MAX_PAGES: Final = 20
"""How many pages of a list of tools are fetched."""


class ToolInfo(Struct, frozen=True, kw_only=True):
    """A tool that a server offers."""

    name: str
    description: str
    schema: s.JsonObject
    """JSON Schema of the arguments."""


class ToolOutcome(Struct, frozen=True, kw_only=True):
    """What a call came to."""

    text: str
    failed: bool
    structured: s.JsonValue = None


class McpClient:
    """A connection to one MCP server of the client's."""

    def __init__(self, client: AgentSide, connection_id: str) -> None:
        self._client = client
        self.connection_id = connection_id
        self.tools: tuple[ToolInfo, ...] = ()
        """The tools as last listed."""

    @classmethod
    async def open(cls, client: AgentSide, server: s.McpServerAcp, version: str) -> McpClient:
        """Connect to a server and list its tools.

        Raises:
            RpcError: The client refuses.
        """
        connection = await client.connect_mcp(s.ConnectMcpRequest(server_id=server.server_id))
        mcp = cls(client, connection.connection_id)
        info = {"name": "thinkwell-builtin", "version": version}
        await mcp._ask("initialize", {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": info})
        client.notify_mcp(
            s.MessageMcpNotification(connection_id=mcp.connection_id, method="notifications/initialized")
        )
        await mcp.list_tools()
        return mcp

    async def list_tools(self) -> None:
        """Fetch the list of tools.

        Raises:
            RpcError: The server refuses.
        """
        found: list[ToolInfo] = []
        params: s.JsonObject = {}
        for _ in range(MAX_PAGES):
            page = await self._ask("tools/list", params)
            found += [self._tool(tool) for tool in page.get("tools", ())]
            if not page.get("nextCursor"):
                break
            params = {"cursor": page["nextCursor"]}
        self.tools = tuple(found)

    def _tool(self, raw: s.JsonObject) -> ToolInfo:
        return ToolInfo(
            name=raw["name"],
            description=raw.get("description") or "",
            schema=raw.get("inputSchema") or {},
        )

    async def call(self, name: str, arguments: s.JsonObject) -> ToolOutcome:
        """Call a tool.

        Raises:
            RpcError: There is no such tool.
        """
        result = await self._ask("tools/call", {"name": name, "arguments": arguments})
        blocks = cast("list[s.JsonObject]", result.get("content") or [])
        text = "\n".join(block["text"] for block in blocks if block.get("type") == "text")
        return ToolOutcome(
            text=text, failed=bool(result.get("isError")), structured=result.get("structuredContent")
        )

    async def close(self) -> None:
        """End the connection.

        Raises:
            RpcError: The client refuses.
        """
        await self._client.disconnect_mcp(s.DisconnectMcpRequest(connection_id=self.connection_id))

    async def _ask(self, method: str, params: s.JsonObject) -> s.JsonObject:
        request = s.MessageMcpRequest(connection_id=self.connection_id, method=method, params=params)
        result = await self._client.message_mcp(request)
        return cast("s.JsonObject", result) if isinstance(result, dict) else {}
