"""Tools over pipes: a small program, started by the agent, connects to a private socket."""

from __future__ import annotations

import hmac
import os
import secrets
import shutil
import socket
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio import AsyncContextManagerMixin
from anyio.abc import Listener, SocketAttribute, SocketStream

from thinkwell_acp._tasks import background_tasks
from thinkwell_acp.interpreter import python_command
from thinkwell_acp.mcp._sockets import Stream, UnixStream, accept_forever
from thinkwell_acp.mcp._stdio import LineSession
from thinkwell_acp.schema import EnvVariable, McpServerStdio

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from thinkwell_acp.mcp._server import ToolServer
    from thinkwell_acp.mcp._session import ToolSession

SHIM = Path(__file__).with_name("shim.py")
SECRET_VARIABLE = "THINKWELL_MCP_SECRET"  # noqa: S105 - the name of the variable
MAX_PATH = 100
"""Most bytes of a Unix socket's path. The strictest system allows 103."""
GREETING_TIME = 10.0
"""Seconds for a connection to send the secret. The shim sends it at once."""
MAX_GREETING = 256
"""Most bytes of a connection's greeting."""


class ShimToolHost(AsyncContextManagerMixin):
    """Makes tool servers reachable for agents that start their MCP servers. It listens while its block runs.

    The socket is in a folder that only this user can enter; without Unix sockets it is a loopback port.
    Either way, a connection must first send the server's secret, which is passed in the shim's environment.

    Args:
        unix: Whether to use a Unix socket. Otherwise, or if the path would be too long, a loopback port is
            used.
        greeting_time: Seconds for a connection to send the secret.
    """

    def __init__(
        self, *, unix: bool = hasattr(socket, "AF_UNIX"), greeting_time: float = GREETING_TIME
    ) -> None:
        self._unix = unix
        self._greeting_time = greeting_time
        self._servers: dict[str, ToolServer] = {}
        self._sessions: set[ToolSession] = set()
        self._address = ""

    @asynccontextmanager
    async def __asynccontextmanager__(self) -> AsyncGenerator[ShimToolHost]:
        folder, process = Path(tempfile.mkdtemp(prefix="thinkwell-")), os.getpid()
        try:
            async with await self._listen(folder / "mcp") as listener, background_tasks() as tasks:
                tasks.start_soon(accept_forever, listener, self._serve)
                try:
                    yield self
                finally:
                    for session in tuple(self._sessions):
                        session.close()
                    self._servers.clear()
        finally:
            if os.getpid() == process:  # pragma: no branch - else in a fork, and its parent is still there
                shutil.rmtree(folder, ignore_errors=True)

    async def _listen(self, path: Path) -> Listener[SocketStream]:
        if self._unix and len(bytes(path)) <= MAX_PATH:
            self._address = str(path)
            return await anyio.create_unix_listener(path)
        listeners = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
        (listener,) = listeners.listeners
        self._address = str(listener.extra(SocketAttribute.local_port))  # noqa: S610 - no Django
        return listener

    def add(self, server: ToolServer) -> McpServerStdio:
        """Make a server reachable at once, and return its declaration for the agent.

        Raises:
            ProgramNotStarted: No Python can run the program that the agent has to start.
        """
        command, *arguments = python_command("-I", "-S", str(SHIM), self._address)
        secret = secrets.token_urlsafe(32)
        self._servers[secret] = server
        return McpServerStdio(
            name=server.name,
            command=command,
            args=tuple(arguments),
            env=(EnvVariable(name=SECRET_VARIABLE, value=secret),),
        )

    def remove(self, server: ToolServer) -> None:
        """End the server's sessions here, and accept no more. An unknown server is ignored."""
        self._servers = {secret: known for secret, known in self._servers.items() if known is not server}
        for session in tuple(self._sessions):
            if session.server is server:
                session.close()

    async def _serve(self, accepted: SocketStream) -> None:
        unix = not self._address.isdecimal()
        stream: Stream = UnixStream(accepted) if unix else accepted
        greeting = b""
        with anyio.move_on_after(self._greeting_time):
            while b"\n" not in greeting and len(greeting) < MAX_GREETING:
                greeting += await stream.receive()
        secret, _, rest = greeting.partition(b"\n")
        server = self._find(secret)
        if server is None:
            return
        lines = LineSession(stream, server)
        self._sessions.add(lines.session)
        try:
            await lines.run(rest)
        finally:
            self._sessions.discard(lines.session)

    def _find(self, secret: bytes) -> ToolServer | None:
        found: ToolServer | None = None
        for known, server in self._servers.items():
            if hmac.compare_digest(known.encode(), secret):
                found = server
        return found
