"""An MCP server of a user's, written with the official package: `python user_server.py stdio|http|sse`.

Over HTTP it writes its port to standard output and wants the header that a test was told to send. It makes
the file LISTED, if there is such a variable, when it is asked for its tools.
"""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mcp.server import MCPServer

if TYPE_CHECKING:
    from mcp_types import Tool
    from starlette.types import ASGIApp, Receive, Scope, Send


class Inventory(MCPServer):
    """Tells that it was asked for its tools."""

    async def list_tools(self) -> list[Tool]:
        tools = await super().list_tools()
        if listed := os.environ.get("LISTED"):
            Path(listed).touch()
        return tools


server = Inventory("inventory")


@server.tool()
def stock(part: str) -> str:
    """Tell how many of a part are in stock."""
    return f"{part}: {os.environ['STOCK']}"


def guarded(app: ASGIApp, token: str) -> ASGIApp:
    """Return an app that wants a token."""

    async def guard(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and dict(scope["headers"]).get(b"x-token") != token.encode():
            await send({"type": "http.response.start", "status": 403, "headers": []})
            await send({"type": "http.response.body", "body": b"no token"})
            return
        await app(scope, receive, send)

    return guard


def main(transport: str) -> None:
    if transport == "stdio":
        server.run("stdio")
        return
    import uvicorn

    app = server.sse_app() if transport == "sse" else server.streamable_http_app()
    listener = socket.create_server(("127.0.0.1", 0))
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    config = uvicorn.Config(guarded(app, os.environ["TOKEN"]), log_level="warning")
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main(sys.argv[1])
