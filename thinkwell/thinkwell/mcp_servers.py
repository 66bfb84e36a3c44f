"""MCP servers for an agent to use, besides the one that serves our own tools.

Give them to `open_agent` for every session, or to `Agent.session` and `Session.fork` for one. The agent
starts or calls them itself (Agent Client Protocol, Session Setup, MCP Servers). Every agent takes those that
it starts (`McpStdio`); the others are checked against what it advertises before anything is sent.

No `repr` shows the value of a variable or a header, an argument, or more of an address than its host: they
may hold keys.
"""

from thinkwell._mcp.servers import McpHttp, McpServer, McpSse, McpStdio, load_mcp_servers

__all__ = (
    "McpHttp",
    "McpServer",
    "McpSse",
    "McpStdio",
    "load_mcp_servers",
)
