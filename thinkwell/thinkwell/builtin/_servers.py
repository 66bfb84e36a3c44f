"""The MCP servers of a session. Each is connected in its own task, which lasts as long as the connection."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Final

import anyio
from anyio.lowlevel import cancel_shielded_checkpoint

from thinkwell._version import VERSION
from thinkwell_acp import schema as s
from thinkwell_acp.mcp._client import AcpLink, McpClient, McpTrouble
from thinkwell_acp.mcp._stdio_client import StdioLink, stdio_link

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkwell.builtin._files import Folder
    from thinkwell_acp import AgentSide
    from thinkwell_acp._tasks import BackgroundTasks
    from thinkwell_acp.mcp._client import McpLink, ToolInfo, ToolOutcome

logger = logging.getLogger("thinkwell.builtin")

IDENTITY: Final[s.JsonObject] = {"name": "thinkwell-builtin", "version": VERSION}

SESSION_WAIT: Final = 10.0
"""Seconds that the answer to ``session/new`` waits for servers. The tools of slower ones are available from
the next turn on."""

_REWRITTEN: Final = re.compile(r"[^A-Za-z0-9_-]")


class Server:
    """An MCP server, working or not."""

    def __init__(self, given: s.McpServer) -> None:
        self.given = given
        self.name = given.name
        self.ours = isinstance(given, s.McpServerAcp)
        """Whether the client runs the tools itself, so that it need not be asked first."""
        self.client: McpClient | None = None
        """Set while it is connected."""
        self.trouble = "it is still starting"
        """Why it is not connected: a part of a sentence."""
        self.connection_id: str | None = None
        """Its id, if it is on the client's connection."""
        self.settled = anyio.Event()
        self.ended = anyio.Event()
        self.scope = anyio.CancelScope()
        self._stale = anyio.Event()

    @property
    def tools(self) -> tuple[ToolInfo, ...]:
        """The tools as last listed."""
        return () if self.client is None else self.client.tools

    def title(self, tool: ToolInfo) -> str:
        """Return the displayed name of a tool: with that of a foreign server, as usual."""
        return tool.name if self.ours else f"mcp__{_REWRITTEN.sub('_', self.name)}__{tool.name}"

    async def call(self, name: str, arguments: s.JsonObject) -> ToolOutcome:
        """Call a tool.

        Raises:
            McpTrouble: The server does not run it, or has disconnected.
        """
        if self.client is None:
            await cancel_shielded_checkpoint()
            raise McpTrouble(self.trouble)
        return await self.client.call(name, arguments)

    def changed(self) -> None:
        """Request the list of tools again, once for all changes until then."""
        self._stale.set()

    async def run(self, agent_side: AgentSide, folder: Folder) -> None:
        """Connect, and stay connected until the server or the session ends."""
        try:
            with self.scope:
                match self.given:
                    case s.McpServerAcp() as given:
                        await self._run_over_acp(agent_side, given)
                    case s.McpServerStdio() as given:
                        async with stdio_link(given, folder.root, self.changed) as link:
                            await self._talk(link)
                    case _:
                        self.trouble = "I take MCP servers over stdio and over ACP only"
        except McpTrouble as exc:
            self.trouble = exc.reason
        finally:
            self.client = None
            self.settled.set()
            self.ended.set()

    async def _run_over_acp(self, agent_side: AgentSide, given: s.McpServerAcp) -> None:
        link = await AcpLink.connect(agent_side.connection, given)
        self.connection_id = link.connection_id
        try:
            await self._talk(link)
        finally:
            await link.close()

    async def _talk(self, link: McpLink) -> None:
        """Initialize, and list the tools whenever they change, until the server has disconnected."""
        try:
            client = McpClient(self.name, link, IDENTITY)
            await client.start()
            self.client = client
            self.settled.set()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._relist, client)
                if isinstance(link, StdioLink):
                    self.trouble = await link.wait_ended()
                    tasks.cancel_scope.cancel()
        except McpTrouble as exc:
            self.trouble = exc.reason
        finally:  # before the process is ended, which takes a moment
            self.client = None
            self.settled.set()

    async def _relist(self, client: McpClient) -> None:
        while True:
            await self._stale.wait()
            self._stale = anyio.Event()
            try:
                await client.list_tools()
            except McpTrouble as exc:
                logger.debug("tools/list of %s: %s", self.name, exc)


class SessionServers:
    """The MCP servers of one session.

    Args:
        given: What the client gave.
    """

    def __init__(self, given: Sequence[s.McpServer]) -> None:
        self._servers = tuple(Server(server) for server in given)

    @property
    def reached(self) -> tuple[Server, ...]:
        """The connected ones, in the client's order."""
        return tuple(server for server in self._servers if server.client is not None)

    @property
    def troubles(self) -> tuple[str, ...]:
        """The others, each with the reason: parts of sentences."""
        return tuple(f"{server.name}: {server.trouble}" for server in self._servers if server.client is None)

    async def open(self, tasks: BackgroundTasks, agent_side: AgentSide, folder: Folder) -> None:
        """Connect to all of them at once, and wait for the quick ones. `close` must be called."""
        for server in self._servers:
            tasks.start_soon(server.run, agent_side, folder, never=server.ended.set)
        with anyio.move_on_after(SESSION_WAIT):
            for server in self._servers:
                await server.settled.wait()

    def changed(self, connection_id: str) -> None:
        """Note that the tools behind a connection of the client have changed."""
        for server in self._servers:
            if server.connection_id == connection_id:
                server.changed()

    def cancel(self) -> None:
        """End all connections, without waiting."""
        for server in self._servers:
            server.scope.cancel()

    async def close(self) -> None:
        """End all connections and processes, in bounded time."""
        self.cancel()
        for server in self._servers:
            await server.ended.wait()
