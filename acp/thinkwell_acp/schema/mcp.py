"""MCP: the servers of a session, and MCP messages inside the protocol (unstable)."""

from typing import TYPE_CHECKING, Annotated, TypeAlias

from thinkwell_acp.schema._base import Alias, Choice, Extensible, JsonObject, JsonValue, Model, Strict

__all__ = (
    "ConnectMcpRequest",
    "ConnectMcpResponse",
    "DisconnectMcpRequest",
    "DisconnectMcpResponse",
    "EnvVariable",
    "HttpHeader",
    "McpServer",
    "McpServerAcp",
    "McpServerHttp",
    "McpServerSse",
    "McpServerStdio",
    "MessageMcpNotification",
    "MessageMcpRequest",
    "MessageMcpResponse",
)


class _Named(Extensible, frozen=True, kw_only=True):
    """A named value. The value may be a key, so `repr` does not show it."""

    name: str
    value: str

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name!r}, value=…)"

    def __rich_repr__(self) -> list[tuple[str, JsonValue]]:
        return [("name", self.name), ("value", "…")]


class EnvVariable(_Named, frozen=True, kw_only=True):
    """An environment variable. Its `repr` does not show the value."""


class HttpHeader(_Named, frozen=True, kw_only=True):
    """A header of an HTTP request. Its `repr` does not show the value."""


class _McpServer(Choice):
    __slots__ = ()

    @classmethod
    def choose(cls, raw: JsonObject) -> type[Model]:
        match raw.get("type"):
            case "http":
                return McpServerHttp
            case "sse":
                return McpServerSse
            case "acp":
                return McpServerAcp
            case _:
                return McpServerStdio


class McpServerStdio(Extensible, _McpServer, frozen=True, kw_only=True):
    """A server that the agent starts and uses over pipes. It has no `type` on the wire.

    Attributes:
        command: absolute path.
    """

    name: str
    command: str
    args: tuple[str, ...]
    env: tuple[EnvVariable, ...]


class McpServerHttp(Extensible, _McpServer, frozen=True, kw_only=True, tag_field="type", tag="http"):
    """A server behind streamable HTTP. Needs `mcpCapabilities.http`."""

    name: str
    url: str
    headers: tuple[HttpHeader, ...]


class McpServerSse(Extensible, _McpServer, frozen=True, kw_only=True, tag_field="type", tag="sse"):
    """A server behind the old HTTP with SSE. Needs `mcpCapabilities.sse`."""

    name: str
    url: str
    headers: tuple[HttpHeader, ...]


class McpServerAcp(Extensible, _McpServer, frozen=True, kw_only=True, tag_field="type", tag="acp"):
    """A server in the client, reached through `mcp/*` (unstable). Needs `mcpCapabilities.acp`.

    Attributes:
        server_id: chosen by the client, unique on the connection. Older peers write it as `id` or `acpId`.
    """

    name: str
    server_id: Annotated[str, Alias("id"), Alias("acpId")]


if TYPE_CHECKING:
    McpServer: TypeAlias = McpServerStdio | McpServerHttp | McpServerSse | McpServerAcp
else:
    McpServer = _McpServer


class ConnectMcpRequest(Extensible, frozen=True, kw_only=True):
    """Parameters of `mcp/connect`: each call opens a new MCP session."""

    server_id: Annotated[str, Alias("id"), Alias("acpId")]


class ConnectMcpResponse(Extensible, frozen=True, kw_only=True):
    """Result of `mcp/connect`."""

    connection_id: str


class MessageMcpRequest(Extensible, frozen=True, kw_only=True):
    """Parameters of `mcp/message` as a request: one MCP request without its id."""

    connection_id: str
    method: str
    params: Strict[JsonObject | None] = None


class MessageMcpNotification(Extensible, frozen=True, kw_only=True):
    """Parameters of `mcp/message` as a notification: one MCP notification."""

    connection_id: str
    method: str
    params: JsonObject | None = None


MessageMcpResponse: TypeAlias = JsonValue
"""Result of `mcp/message`: the bare result of the MCP request."""


class DisconnectMcpRequest(Extensible, frozen=True, kw_only=True):
    """Parameters of `mcp/disconnect`."""

    connection_id: str


class DisconnectMcpResponse(Extensible, frozen=True, kw_only=True):
    """Result of `mcp/disconnect`."""
