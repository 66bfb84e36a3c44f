"""How our tools reach an agent: one tool server for each session, over the way that the agent offers."""

from __future__ import annotations

import secrets
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, TypeAlias

import anyio

from thinkwell import _version
from thinkwell.errors import CapabilityMissing
from thinkwell_acp import ConnectionClosed
from thinkwell_acp.mcp import AcpToolHost, ShimToolHost, ToolServer, ToolSpec

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from thinkwell.agents._profile import Way
    from thinkwell_acp import AcpError, Client
    from thinkwell_acp import schema as s
    from thinkwell_acp._tasks import BackgroundTasks
    from thinkwell_acp.mcp import CallTool, HttpToolHost

Host: TypeAlias = "AcpToolHost | HttpToolHost | ShimToolHost"

LIST_TIMEOUT: Final = 5.0
"""Seconds that the first prompt of a session waits for the agent to fetch our tools. Those seen took two at
most; one that prompts without waiting loses the tools half of the time."""

RELIST_TIMEOUT: Final = 0.3
"""Seconds that an agent gets to fetch a changed list again. Those that do took a few milliseconds."""

RELIST_GRACE: Final = 0.1
"""Seconds between the new list and the prompt: agents take a moment to work it in."""


PLAINEST_FIRST: Final[tuple[Way, ...]] = ("acp", "http", "stdio")


def offered_ways(capabilities: s.AgentCapabilities) -> tuple[Way, ...]:
    """Return the ways that the agent offers, the plainest first.

    Every agent can start a program (ACP, Session Setup).
    """
    flags = capabilities.mcp_capabilities
    offered = {"acp": flags.acp, "http": flags.http, "stdio": True}
    return tuple(way for way in PLAINEST_FIRST if offered[way])


class ToolHosts:
    """The ways of one agent process, each opened when it is first needed.

    Args:
        tasks: Where they are kept open.
        way: The way to go, whether the agent offers it or not.
        preferred: Without that, the ways to prefer of those that it offers; then the plainest.
    """

    def __init__(self, tasks: BackgroundTasks, way: Way | None, preferred: Sequence[Way] = ()) -> None:
        self._tasks = tasks
        self._chosen: Way | None = way
        self._preferred = tuple(preferred)
        self._settled: Way | None = None
        """The way that was found to work, where others were tried before, or the first where none did."""
        self._lock = anyio.Lock()
        self._client: Client | None = None
        self._hosts: dict[Way, Host] = {}

    def attach(self, client: Client) -> None:
        """Take the connection over which ``mcp/message`` goes."""
        self._client = client

    @property
    def way(self) -> Way:
        """The way for all who ask for no other."""
        return self._chosen or self._settled or self._ways()[0]

    def next_way(self, tried: Sequence[Way]) -> Way | None:
        """Return another way that the agent offers; ``None`` where there is none, or one was settled for.

        None is better than the agent's own connection: it works as long as the agent does.
        """
        if self._chosen is not None or self._settled is not None or "acp" in tried:
            return None
        return next((way for way in self._ways() if way not in tried), None)

    def settle(self, way: Way) -> None:
        """Go this way from now on."""
        self._settled = way

    def _ways(self) -> tuple[Way, ...]:
        """Return the ways that the agent offers, the preferred first."""
        assert self._client is not None
        offered = offered_ways(self._client.capabilities)
        ways: list[Way] = [way for way in self._preferred if way in offered]
        return tuple(dict.fromkeys([*ways, *offered]))

    @property
    def acp(self) -> AcpToolHost | None:
        """The host that serves ``mcp/*``, where that is a way."""
        host = self._hosts.get("acp")
        return host if isinstance(host, AcpToolHost) else None

    async def add(self, server: ToolServer, way: Way | None = None) -> s.McpServer:
        """Make a server reachable and return what to tell the agent. It listens before this returns.

        Args:
            server: The server.
            way: The way to go, whether the agent offers it or not.
        """
        way = way or self.way
        async with self._lock:
            host = self._hosts.get(way)
            if host is None:
                host = self._hosts[way] = await self._open(way)
        return host.add(server)

    def remove(self, server: ToolServer, way: Way | None = None) -> None:
        """Make a server unreachable: over one way, or over all of them."""
        for name, host in self._hosts.items():
            if way in (None, name):
                host.remove(server)

    async def _open(self, way: Way) -> Host:
        host: Host
        if way == "acp":
            host = AcpToolHost(self._send)
        elif way == "http":
            from thinkwell_acp.mcp import HttpToolHost  # loads an HTTP parser, for those who need it

            host = HttpToolHost()
        else:
            host = ShimToolHost()
        opening = _Opening()
        self._tasks.start_soon(opening.keep_open, host, never=opening.give_up)
        with anyio.CancelScope(shield=True):  # it takes no time to speak of
            await opening.over.wait()
        if opening.error is not None:
            raise opening.error
        return host

    async def _send(self, notification: s.MessageMcpNotification) -> None:
        assert self._client is not None
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
        """Fail: the agent's block has ended before."""
        self.error = ConnectionClosed()
        self.over.set()


def new_server(call: CallTool) -> ToolServer:
    """Return a tool server with a name that nobody can guess: by it a permission request is known as ours.

    The name has no sign that agents rewrite, and leaves room for a tool's name within the 64 characters of
    most models.
    """
    return ToolServer(f"thinkwell{secrets.token_hex(6)}", call, version=_version.VERSION)


class SessionTools:
    """The tools of one session, whatever turn it is in.

    Args:
        hosts: The ways to the agent.
        call: Runs a tool.
        way: The way to go, where it is not the agent's.
    """

    def __init__(self, hosts: ToolHosts, call: CallTool, way: Way | None = None) -> None:
        self._hosts = hosts
        self._call = call
        self._way: Way | None = way
        self.tried: tuple[Way, ...] = ()
        """The ways on which the tools were offered, in order. The last one is that of the session."""
        self._known: dict[str, ToolSpec] = {}
        self._seen = False
        """Whether it has fetched them of a server before this one."""
        self.waited = False
        """Whether the agent has had its time to fetch them."""
        self.server = new_server(call)
        self.config: s.McpServer | None = None

    def reserve(self, tools: Sequence[ToolSpec]) -> None:
        """Check that no tool is offered under a name that this session has known with another schema.

        Raises:
            ValueError: One is. Agents keep the first schema that they saw under a name.
        """
        for tool in tools:
            known = self._known.get(tool.name)
            if known is not None and known.input_schema != tool.input_schema:
                raise ValueError(
                    f"this session has offered a tool {tool.name!r} with other parameters before, and "
                    "agents keep what they saw first; give this one another name: .tool(fn, name=…)"
                )
        self._known.update({tool.name: tool for tool in tools})

    async def open(self, tools: Sequence[ToolSpec]) -> s.McpServer:
        """Offer the first tools and return what to tell the agent."""
        self.server.set_tools(tools)
        return await self._offer_over(self._way or self._hosts.way)

    async def _offer_over(self, way: Way) -> s.McpServer:
        self.config = await self._hosts.add(self.server, way)
        self.tried = (*self.tried, way)
        return self.config

    @asynccontextmanager
    async def moved(self, way: Way) -> AsyncGenerator[None]:
        """Offer the tools over another way, once the block has opened the session anew; else stay."""
        config, tried = self.config, self.tried
        await self._offer_over(way)
        try:
            yield
        except BaseException:
            self.config, self.tried = config, tried
            self._hosts.remove(self.server, way)
            raise
        self._hosts.remove(self.server, tried[-1])  # what comes there late is of a session that is gone

    async def renew(self) -> None:
        """Offer the tools by a server of another name: some agents keep what they fetched under a name."""
        server = new_server(self._call)
        server.set_tools(self.server.tools)
        config = await self._hosts.add(server, self.tried[-1])
        self._seen = self.seen
        old, self.server, self.config = self.server, server, config
        self._hosts.remove(old)
        old.close()

    def next_way(self, refused: Sequence[Way]) -> Way | None:
        """Return another way to try, of those that were not refused."""
        return None if self._way is not None else self._hosts.next_way((*self.tried, *refused))

    def settle(self) -> None:
        """Have other sessions begin with the way that works, or with the first one where none does."""
        if self._way is None:
            self._hosts.settle(self.tried[-1 if self.reached else 0])

    async def offer(self, tools: Sequence[ToolSpec]) -> None:
        """Offer these tools for the next turn and wait, not for ever, until the agent has fetched them."""
        relists = self.seen
        self.server.set_tools(tools)
        if self.server.listed_generation == self.server.generation:
            return
        await self._wait_listed(RELIST_TIMEOUT if self.waited or relists else LIST_TIMEOUT)
        if relists and not self.outdated:
            await anyio.sleep(RELIST_GRACE)

    async def reopened(self) -> None:
        """Wait again for the first list: the agent has opened the session anew."""
        await self._wait_listed(LIST_TIMEOUT)

    async def _wait_listed(self, seconds: float) -> None:
        with anyio.move_on_after(seconds):
            await self.server.wait_listed()
        self.waited = True  # not where the wait was cancelled

    @property
    def seen(self) -> bool:
        """Whether the agent has ever fetched our tools."""
        return self._seen or self.server.list_count > 0

    @property
    def reached(self) -> bool:
        """Whether the agent has ever come for our tools: one that is slow to list them needs no other way."""
        return self.server.reached

    @property
    def outdated(self) -> bool:
        """Whether the agent has fetched our tools once, but not all of those that are offered now."""
        return self.seen and any(tool.name not in self.server.listed_names for tool in self.server.tools)

    def withdraw(self) -> None:
        """Offer nothing more, and tell the agent."""
        self.server.set_tools(())

    async def close(self) -> None:
        """Cancel what runs and end the sessions."""
        self._hosts.remove(self.server)
        await self.server.aclose()


def tools_cannot_change(*, reopened: bool = False) -> CapabilityMissing:
    """Return the error for an agent that does not fetch changed tools.

    Args:
        reopened: Whether it did not do so either when the session was opened anew.
    """
    way_out = "Offer the same tools on every turn, or use a session for each set of tools"
    if reopened:
        return CapabilityMissing(
            "tools/list",
            "changing the tools of a session: it has not fetched the changed list, and not when the session "
            f"was opened anew either. {way_out}",
        )
    return CapabilityMissing(
        "sessionCapabilities.close and sessionCapabilities.resume",
        "changing the tools of a session, since it has not fetched the changed list by itself. " + way_out,
    )
