"""An MCP server for tools in this process, with three transports to an agent.

`ToolServer` has the tools and is independent of the transport. A host carries many servers to one agent:
`AcpToolHost` over the ACP connection itself, `HttpToolHost` over loopback HTTP, `ShimToolHost` over a small
program that the agent starts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from thinkwell_acp.mcp._acp import AcpToolHost
from thinkwell_acp.mcp._progress import CallContext
from thinkwell_acp.mcp._server import ToolServer
from thinkwell_acp.mcp._types import CallTool, McpError, ToolOutput, ToolSpec

if TYPE_CHECKING:
    from thinkwell_acp.mcp._http_connection import HttpLimits
    from thinkwell_acp.mcp._http_host import HttpToolHost
    from thinkwell_acp.mcp._shim_host import ShimToolHost

__all__ = (
    "AcpToolHost",
    "CallContext",
    "CallTool",
    "HttpLimits",
    "HttpToolHost",
    "McpError",
    "ShimToolHost",
    "ToolOutput",
    "ToolServer",
    "ToolSpec",
)


def __getattr__(name: str) -> object:
    """Import the hosts for HTTP and for a program on first use."""
    if name == "HttpToolHost":
        from thinkwell_acp.mcp._http_host import HttpToolHost

        return HttpToolHost
    if name == "HttpLimits":
        from thinkwell_acp.mcp._http_connection import HttpLimits

        return HttpLimits
    if name == "ShimToolHost":
        from thinkwell_acp.mcp._shim_host import ShimToolHost

        return ShimToolHost
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
