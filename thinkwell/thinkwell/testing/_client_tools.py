"""The client's tools, for an agent that plays a script. Errors are raised unchanged."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from thinkwell._version import VERSION
from thinkwell_acp import AcpError, DecodeError, RpcError
from thinkwell_acp.errors import INTERNAL_ERROR
from thinkwell_acp.mcp._client import AcpLink, McpClient, McpTrouble

if TYPE_CHECKING:
    from collections.abc import Generator

    from thinkwell_acp.connection import Connection
    from thinkwell_acp.mcp._client import ToolInfo, ToolOutcome
    from thinkwell_acp.schema import JsonObject, McpServerAcp

IDENTITY: Final[JsonObject] = {"name": "scripted", "version": VERSION}


class ClientTools:
    """The tools of one MCP server in the client. Made by `open`."""

    def __init__(self, client: McpClient, connection_id: str, server: str) -> None:
        self._client = client
        self.server: str = server
        """The server's name."""
        self._mark = f"{server}_"
        """The prefix of tool names, for agents that show nothing else of them."""
        self.connection_id = connection_id

    @classmethod
    async def open(cls, connection: Connection, server: McpServerAcp, *, lists: bool) -> ClientTools:
        """Connect to a server and list its tools, if that is wanted.

        Raises:
            AcpError: The client refuses, or has disconnected.
        """
        with _plain_errors():
            link = await AcpLink.connect(connection, server)
            client = McpClient(server.name, link, IDENTITY)
            await client.start(lists=lists)
        return cls(client, link.connection_id, server.name)

    @property
    def tools(self) -> tuple[ToolInfo, ...]:
        """The tools as last listed, by the client's names."""
        return tuple(replace(tool, name=tool.name.removeprefix(self._mark)) for tool in self._client.tools)

    async def list_tools(self) -> None:
        """Fetch the list of tools.

        Raises:
            AcpError: The client refuses, or has disconnected.
        """
        with _plain_errors():
            await self._client.list_tools()

    async def call(self, name: str, arguments: JsonObject) -> ToolOutcome:
        """Call a tool.

        Raises:
            AcpError: The client refuses, or has disconnected.
        """
        marked = self._mark + name
        listed = any(tool.name == marked for tool in self._client.tools)
        with _plain_errors():
            return await self._client.call(marked if listed else name, arguments)


@contextmanager
def _plain_errors() -> Generator[None]:
    """Raise the cause of an error: a test must tell a client that refuses from one that has disconnected."""
    try:
        yield
    except McpTrouble as exc:
        if isinstance(exc.__cause__, AcpError | DecodeError):
            raise exc.__cause__ from None
        raise RpcError(INTERNAL_ERROR, exc.reason) from exc
