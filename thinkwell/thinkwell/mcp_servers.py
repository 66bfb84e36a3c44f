"""MCP servers for an agent to use, besides the one for your own tools.

Pass them to `open_agent` for every session, or to `Agent.session` and `Session.fork` for one. The agent
starts or calls them itself (Agent Client Protocol, Session Setup, MCP Servers). Every agent supports those
that it starts (`McpStdio`); the other kinds are checked against its capabilities before anything is sent.

No `repr` shows values of variables or headers, arguments, or more of an address than its host, because they
may contain keys.
"""

from thinkwell._mcp.files import load_mcp_servers
from thinkwell._mcp.servers import McpHttp, McpServer, McpSse, McpStdio

__all__ = (
    "McpHttp",
    "McpServer",
    "McpSse",
    "McpStdio",
    "load_mcp_servers",
)
