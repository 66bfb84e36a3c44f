"""The tools of a tool server, and their results."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import msgspec
from msgspec import Struct

from thinkwell_acp.errors import RpcError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from thinkwell_acp.mcp._progress import CallContext
    from thinkwell_acp.schema import JsonObject, JsonValue


class McpError(RpcError):
    """A request of an MCP client fails with this JSON-RPC error.

    Raised by a tool's handler, it fails the request. Any other exception of a handler becomes a result with
    its text.
    """


class ToolSpec(Struct, frozen=True, kw_only=True):
    """A tool, as sent to the agent (MCP 2025-11-25, server/tools)."""

    name: str
    description: str
    input_schema: Mapping[str, JsonValue]
    """JSON Schema of the arguments. Its root must have the type object."""
    output_schema: Mapping[str, JsonValue] | None = None
    """JSON Schema of the structured result, if there is one."""
    title: str | None = None

    def wire(self) -> JsonObject:
        """Return the tool as an element of the answer to ``tools/list``."""
        tool: JsonObject = {
            "name": self.name,
            "description": self.description,
            "inputSchema": dict(self.input_schema),
        }
        if self.title is not None:
            tool["title"] = self.title
        if self.output_schema is not None:
            tool["outputSchema"] = dict(self.output_schema)
        return tool


class ToolOutput(Struct, frozen=True, kw_only=True):
    """The result of a tool call."""

    content: Sequence[Mapping[str, JsonValue]] = ()
    """MCP content blocks, such as ``{"type": "text", "text": "…"}``."""
    structured: Mapping[str, JsonValue] | None = None
    """The result as data that fits the tool's output schema. Without content it is also sent as text."""
    is_error: bool = False
    """Whether the tool failed. The content then says how, in words that help the agent."""

    @classmethod
    def text(cls, text: str, *, is_error: bool = False) -> ToolOutput:
        """Return a result with one text."""
        return cls(content=({"type": "text", "text": text},), is_error=is_error)

    def wire(self) -> JsonObject:
        """Return the answer as the result of ``tools/call``."""
        result: JsonObject = {"content": list(self.content), "isError": self.is_error}
        if self.structured is not None:
            result["structuredContent"] = self.structured
            if not self.content:
                # Clients older than 2025-06-18 ignore structured content.
                text = msgspec.json.encode(self.structured).decode()
                result["content"] = [{"type": "text", "text": text}]
        return result


CallTool: TypeAlias = "Callable[[str, JsonObject, CallContext], Awaitable[ToolOutput]]"
"""Runs a tool, from its name, its arguments, and the call's context. Exceptions are reported to the agent."""
