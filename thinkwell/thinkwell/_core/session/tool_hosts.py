"""The transports of our tools to an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import anyio

from thinkwell.errors import CapabilityMissing
from thinkwell_acp import ConnectionClosed
from thinkwell_acp.interpreter import why_no_interpreter
from thinkwell_acp.mcp import AcpToolHost, ToolServer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkwell.agents._profile import ToolTransport
    from thinkwell_acp import AcpError, Client
    from thinkwell_acp import schema as s
    from thinkwell_acp._tasks import BackgroundTasks
    from thinkwell_acp.mcp import HttpToolHost, ShimToolHost

Host: TypeAlias = "AcpToolHost | HttpToolHost | ShimToolHost"

PLAINEST_FIRST: Final[tuple[ToolTransport, ...]] = ("acp", "http", "stdio")


def offered_ways(capabilities: s.AgentCapabilities) -> tuple[ToolTransport, ...]:
    """Return the transports that the agent offers, the simplest first.

    Every agent can start a program (ACP, Session Setup). Ours needs a Python to run it.
    """
    flags = capabilities.mcp_capabilities
    offered = {"acp": flags.acp, "http": flags.http, "stdio": not why_no_interpreter()}
    return tuple(way for way in PLAINEST_FIRST if offered[way])


class ToolHosts:
    """The transports of one agent process, each opened on first use.

    Args:
        client: The connection to the agent.
        tasks: The tasks that keep them open.
        way: The transport to use, whether the agent offers it or not.
        preferred: Without that, the preferred ones of those that it offers; then the simplest.
        bare_names: Whether the agent is known to show calls by the tool's name alone.
    """

    def __init__(
        self,
        client: Client,
        tasks: BackgroundTasks,
        way: ToolTransport | None,
        preferred: Sequence[ToolTransport] = (),
        *,
        bare_names: bool = False,
    ) -> None:
        self.bare_names = bare_names
        """Whether the agent shows calls by the tools' names alone: known before, or seen once."""
        self._client = client
        self._tasks = tasks
        self._chosen: ToolTransport | None = way
        self._preferred = tuple(preferred)
        self._works: ToolTransport | None = None
        """The last transport over which the agent fetched our tools."""
        self._none_works = False
        """Whether all transports were tried once, and the agent fetched over none."""
        self._lock = anyio.Lock()
        self._hosts: dict[ToolTransport, Host] = {}

    @property
    def way(self) -> ToolTransport:
        """The default transport."""
        return self._chosen or self._works or self._ways()[0]

    def next_way(self, tried: Sequence[ToolTransport]) -> ToolTransport | None:
        """Return another transport to try: the one that is known to work, else any that the agent offers.

        ``None``: there is none, or all were tried before. The agent's own connection is the best one: it
        works as long as the agent does.
        """
        if self._chosen is not None or "acp" in tried:
            return None
        if self._works is not None:
            return None if self._works in tried else self._works
        return next((way for way in self._ways() if way not in tried and not self._none_works), None)

    def learn(self, way: ToolTransport) -> None:
        """Use this transport first from now on: the agent fetched over it."""
        self._works = way

    def give_up(self) -> None:
        """Try no more transports until one is known to work: the agent fetched over none of them."""
        self._none_works = True

    def _ways(self) -> tuple[ToolTransport, ...]:
        """Return the transports that the agent offers, the preferred first.

        Raises:
            CapabilityMissing: There is none.
        """
        offered = offered_ways(self._client.capabilities)
        if not offered:
            raise CapabilityMissing(
                "mcpCapabilities.http", f"tools and typed results: {why_no_interpreter()}"
            )
        ways: list[ToolTransport] = [way for way in self._preferred if way in offered]
        return tuple(dict.fromkeys([*ways, *offered]))

    @property
    def acp(self) -> AcpToolHost | None:
        """The host that serves ``mcp/*``, if that transport is used."""
        host = self._hosts.get("acp")
        return host if isinstance(host, AcpToolHost) else None

    async def add(self, server: ToolServer, way: ToolTransport) -> s.McpServer:
        """Make a server reachable, and return its declaration for the agent. It listens before this returns.

        Args:
            server: The server.
            way: The transport to use, whether the agent offers it or not.
        """
        async with self._lock:
            host = self._hosts.get(way)
            if host is None:
                host = self._hosts[way] = await self._open(way)
        return host.add(server)

    def remove(self, server: ToolServer, way: ToolTransport | None = None) -> None:
        """Make a server unreachable: over one transport, or over all of them."""
        for name, host in self._hosts.items():
            if way in (None, name):
                host.remove(server)

    async def _open(self, way: ToolTransport) -> Host:
        host: Host
        if way == "acp":
            host = AcpToolHost(self._send)
        elif way == "http":
            from thinkwell_acp.mcp import HttpToolHost  # imports an HTTP parser

            host = HttpToolHost()
        else:
            from thinkwell_acp.mcp import ShimToolHost  # imports modules that few agents need

            host = ShimToolHost()
        opening = _Opening()
        self._tasks.start_soon(opening.keep_open, host, never=opening.give_up)
        with anyio.CancelScope(shield=True):  # it takes almost no time
            await opening.over.wait()
        if opening.error is not None:
            raise opening.error
        return host

    async def _send(self, notification: s.MessageMcpNotification) -> None:
        self._client.notify_mcp(notification)


class _Opening:
    """A host that is opened in the background, and lives as long as the agent."""

    def __init__(self) -> None:
        self.over = anyio.Event()
        self.error: OSError | AcpError | None = None

    async def keep_open(self, host: Host) -> None:
        try:
            async with host:
                self.over.set()
                await anyio.sleep_forever()
        except OSError as exc:
            self.error = exc
            self.over.set()

    def give_up(self) -> None:
        """Fail: the agent's block has already ended."""
        self.error = ConnectionClosed()
        self.over.set()
