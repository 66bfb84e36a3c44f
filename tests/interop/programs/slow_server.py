"""An MCP server over standard input and output whose one tool never answers: `python slow_server.py CALLED`.

It makes the file CALLED when its tool is called.
"""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
from mcp.server import MCPServer

server = MCPServer("inventory")


@server.tool()
async def ponder() -> str:
    """Ponder over something that has no answer."""
    Path(sys.argv[1]).touch()
    await anyio.sleep_forever()
    return "never"


if __name__ == "__main__":
    server.run("stdio")
