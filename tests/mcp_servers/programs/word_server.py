"""An MCP server of the official package: `word_server.py stdio|http|sse`. By HTTP it prints its port.

It wants the secret of the variable WORD_SECRET: in its own environment over stdio, as a bearer token else.
"""

from __future__ import annotations

import os
import socket
import sys
from typing import TYPE_CHECKING

import uvicorn
from mcp.server.mcpserver import MCPServer
from starlette.responses import PlainTextResponse

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

server = MCPServer("words", log_level="ERROR")


@server.tool()
def count_words(text: str) -> str:
    """Count the words of a text."""
    return f"{len(text.split())} words, by {sys.argv[1]}, with {os.environ.get('WORD_SECRET', 'no secret')}"


def guarded(app: ASGIApp, token: str) -> ASGIApp:
    async def guard(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and dict(scope["headers"]).get(b"authorization") != token.encode():
            await PlainTextResponse("who are you?", 401)(scope, receive, send)
        else:
            await app(scope, receive, send)

    return guard


def serve(app: ASGIApp) -> None:
    app = guarded(app, f"Bearer {os.environ['WORD_SECRET']}")
    listener = socket.create_server(("127.0.0.1", 0))
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])


if __name__ == "__main__":
    match sys.argv[1]:
        case "stdio":
            server.run("stdio")
        case "http":
            serve(server.streamable_http_app())
        case _:
            serve(server.sse_app())
