"""An MCP client for agents: it lists a server's tools and calls them, over any transport.

The server is not trusted. Its names and texts are limited in size and freed of control characters, a
malformed answer is an error like any other, and every wait is limited, except calls of a client's own tools,
which the client ends itself.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import anyio
import msgspec
from msgspec import Raw, Struct, field

from thinkwell_acp.errors import AcpError, RpcError
from thinkwell_acp.mcp._session import HANDSHAKE_REVISIONS
from thinkwell_acp.schema import (
    ConnectMcpRequest,
    ConnectMcpResponse,
    DecodeError,
    DisconnectMcpRequest,
    JsonObject,
    JsonValue,
    McpServerAcp,
    MessageMcpNotification,
    MessageMcpRequest,
    decode,
)

if TYPE_CHECKING:
    from thinkwell_acp.connection import Connection

T = TypeVar("T")

REVISION: Final = "2025-06-18"
"""The requested revision of MCP."""

MAX_PAGES: Final = 20
"""Most pages of a list of tools."""

MAX_TOOLS: Final = 1000
"""Most tools of a server."""

MAX_NAME: Final = 128
"""Most characters of a tool's name (MCP 2025-11-25, server/tools)."""

MAX_TEXT: Final = 100_000
"""Most characters of text that are kept of one answer."""

MAX_DATA: Final = 1024 * 1024
"""Most bytes of an answer whose structured part is kept."""

MAX_REASON: Final = 300
"""Most characters of the server's words in a reason."""

ANSWER_TIMEOUT: Final = 60.0
"""Seconds for the answer to any request except a tool call. Servers that are still being installed when they
are started were seen to take half of that."""

DISCONNECT_TIMEOUT: Final = 1.0
"""Seconds for the answer to ``mcp/disconnect``. Nothing depends on it."""

_UNPRINTABLE: Final = re.compile(r"[^\n\t\x20-\x7e\xa0-\u2027\u202f-\u2065\u206a-\U0010ffff]|[\ud800-\udfff]")


class McpTrouble(AcpError):  # noqa: N818 - says what happened
    """A server failed to do what was asked. The text can be shown, as part of a sentence."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


class McpLink(Protocol):
    """Carries messages to a server."""

    async def request(self, method: str, params: JsonObject) -> Raw:
        """Send a request and return its result. Cancelling the call withdraws the request.

        Raises:
            AcpError: The request failed, or there will be no answer.
            TimeoutError: The answer took too long.
        """
        ...

    def notify(self, method: str, params: JsonObject) -> None:
        """Send a notification."""
        ...

    def ended(self, error: AcpError) -> str:
        """Return a text for the end of the link."""
        ...


class ToolInfo(Struct, frozen=True, kw_only=True):
    """A tool of a server."""

    name: str
    description: str
    schema: JsonObject
    """JSON Schema of the arguments, unchanged from the server."""


class ToolOutcome(Struct, frozen=True, kw_only=True):
    """The outcome of a call."""

    text: str
    failed: bool
    structured: JsonValue = None


class _Initialized(Struct, frozen=True):
    revision: str | None = field(default=None, name="protocolVersion")
    capabilities: JsonObject | None = None


class _Page(Struct, frozen=True):
    tools: list[Raw] = field(default_factory=list[Raw])
    cursor: str | None = field(default=None, name="nextCursor")


class _Tool(Struct, frozen=True):
    name: str
    description: str | None = None
    schema: JsonObject | None = field(default=None, name="inputSchema")


class _Block(Struct, frozen=True):
    type: str = ""
    text: str = ""


class _Result(Struct, frozen=True):
    content: list[Raw] | None = None
    is_error: bool | None = field(default=None, name="isError")
    structured: JsonValue = field(default=None, name="structuredContent")


class McpClient:
    """A conversation with one MCP server.

    Args:
        name: The server's name.
        link: Carries the messages.
        identity: Name and version of this program.
    """

    def __init__(self, name: str, link: McpLink, identity: JsonObject) -> None:
        self.name = name
        self._link = link
        self._identity = identity
        self._lists = True
        self.tools: tuple[ToolInfo, ...] = ()
        """The tools as last listed."""

    async def start(self, *, lists: bool = True) -> None:
        """Shake hands and, unless `lists` is false, list the tools.

        Raises:
            McpTrouble: The server failed.
        """
        params: JsonObject = {
            "protocolVersion": REVISION,
            "capabilities": {},
            "clientInfo": self._identity,
        }
        answer = await self._ask("initialize", params, _Initialized)
        if answer.revision not in (None, *HANDSHAKE_REVISIONS):
            raise McpTrouble(
                f"it speaks MCP {printable(answer.revision or '', 20)}, and this client does not"
            )
        self._lists = answer.capabilities is None or "tools" in answer.capabilities
        self._link.notify("notifications/initialized", {})
        if lists:
            await self.list_tools()

    async def list_tools(self) -> None:
        """Fetch the list of tools, at most `MAX_TOOLS`. Those whose name cannot be shown are left out.

        Raises:
            McpTrouble: The server failed.
        """
        found: dict[str, ToolInfo] = {}
        params: JsonObject = {}
        for _ in range(MAX_PAGES if self._lists else 0):
            page = await self._ask("tools/list", params, _Page)
            for raw in page.tools:
                tool = _read_tool(raw)
                if tool is not None and len(found) < MAX_TOOLS:
                    found.setdefault(tool.name, tool)
            if not page.cursor or len(found) >= MAX_TOOLS:
                break
            params = {"cursor": page.cursor}
        self.tools = tuple(found.values())

    async def call(self, name: str, arguments: JsonObject) -> ToolOutcome:
        """Call a tool.

        Raises:
            McpTrouble: The server failed to run it.
        """
        raw = await self._request("tools/call", {"name": name, "arguments": arguments})
        result = _read(raw, _Result, "tools/call")
        blocks = [_read(block, _Block, "tools/call") for block in result.content or ()]
        text = "\n".join(block.text for block in blocks if block.type == "text")
        structured = result.structured if len(bytes(raw)) <= MAX_DATA else None
        return ToolOutcome(
            text=printable(text, MAX_TEXT), failed=bool(result.is_error), structured=structured
        )

    async def _ask(self, method: str, params: JsonObject, kind: type[T]) -> T:
        try:
            with anyio.fail_after(ANSWER_TIMEOUT):
                return _read(await self._request(method, params), kind, method)
        except TimeoutError:
            raise McpTrouble(f"it did not answer {method} within {ANSWER_TIMEOUT:g} seconds") from None

    async def _request(self, method: str, params: JsonObject) -> Raw:
        """Send a request, and translate all failures into `McpTrouble`."""
        try:
            return await self._link.request(method, params)
        except RpcError as exc:
            raise McpTrouble(printable(exc.message, MAX_TEXT) or f"it refused {method}") from exc
        except AcpError as exc:
            raise McpTrouble(self._link.ended(exc)) from exc
        except TimeoutError as exc:
            raise McpTrouble(str(exc)) from exc


def _read(raw: Raw, kind: type[T], method: str) -> T:
    try:
        return msgspec.json.decode(raw, type=kind)
    except (ValueError, RecursionError) as exc:
        raise McpTrouble(f"its answer to {method} is malformed ({printable(str(exc), 100)})") from exc


def _read_tool(raw: Raw) -> ToolInfo | None:
    """Return a tool, if its name can be called and shown."""
    try:
        tool = msgspec.json.decode(raw, type=_Tool)
    except (ValueError, RecursionError):
        return None
    if not tool.name.isprintable() or not 0 < len(tool.name) <= MAX_NAME:
        return None
    return ToolInfo(
        name=tool.name, description=printable(tool.description or "", MAX_TEXT), schema=tool.schema or {}
    )


def printable(text: str, limit: int) -> str:
    """Return a foreign text in a form to show: limited in length, without control characters."""
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", cut.replace("\r\n", "\n"))


class AcpLink:
    """The link over the ACP connection itself (`mcp/connect`, `mcp/message`, `mcp/disconnect`; unstable).

    The other end is the client itself, so the client limits the time of a call.
    """

    def __init__(self, connection: Connection, connection_id: str) -> None:
        self._connection = connection
        self.connection_id = connection_id

    @classmethod
    async def connect(cls, connection: Connection, server: McpServerAcp) -> AcpLink:
        """Open a link to a server of the client.

        Raises:
            McpTrouble: The client refuses, or has closed the connection.
        """
        request = ConnectMcpRequest(server_id=server.server_id)
        try:
            opened = decode(ConnectMcpResponse, await connection.request("mcp/connect", request))
        except RpcError as exc:
            raise McpTrouble(printable(exc.message, MAX_REASON)) from exc
        except (AcpError, DecodeError) as exc:
            raise McpTrouble(printable(str(exc), MAX_REASON)) from exc
        return cls(connection, opened.connection_id)

    async def request(self, method: str, params: JsonObject) -> Raw:
        """Send a request and return its result."""
        request = MessageMcpRequest(connection_id=self.connection_id, method=method, params=params)
        return await self._connection.request("mcp/message", request)

    def notify(self, method: str, params: JsonObject) -> None:
        """Send a notification."""
        message = MessageMcpNotification(connection_id=self.connection_id, method=method, params=params)
        self._connection.notify("mcp/message", message)

    def ended(self, error: AcpError) -> str:
        """Return a text for the end of the link."""
        return printable(str(error), MAX_REASON)

    async def close(self) -> None:
        """End the conversation, even if cancelled. A client that does not support it is not an error."""
        request = DisconnectMcpRequest(connection_id=self.connection_id)
        with anyio.move_on_after(DISCONNECT_TIMEOUT, shield=True):
            try:
                await self._connection.request("mcp/disconnect", request)
            except AcpError:
                return
