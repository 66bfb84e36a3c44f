"""The tools of one session: one tool server, over the way that the agent offers."""

from __future__ import annotations

import logging
import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import anyio
from msgspec.structs import replace

from thinkwell._core.protocol.own_tools import marked_name, plain_name
from thinkwell._version import VERSION
from thinkwell.errors import CapabilityMissing
from thinkwell_acp.mcp import ToolServer

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from thinkwell._core.session.tool_hosts import ToolHosts
    from thinkwell.agents._profile import ToolTransport
    from thinkwell.events import JsonValue
    from thinkwell_acp import schema as s
    from thinkwell_acp.mcp import CallContext, CallTool, ToolOutput, ToolSpec

logger = logging.getLogger("thinkwell")

LIST_TIMEOUT: Final = 5.0
"""Seconds that the first prompt of a session that needs our tools waits for the agent to fetch them. Those
seen took two at most; one that is prompted before loses the tools half of the time."""

RELIST_TIMEOUT: Final = 0.3
"""Seconds that an agent gets to fetch a changed list again. Those that do took a few milliseconds."""

RELIST_GRACE: Final = 0.1
"""Seconds between the new list and the prompt: agents take a moment to work it in."""


def new_server(call: CallTool, on_reached: Callable[[], None]) -> ToolServer:
    """Return a tool server with a name that cannot be guessed: by it a permission request is known as ours.

    The name has no sign that agents rewrite, and leaves room for a tool's name within the 64 characters of
    most models.
    """
    name = f"thinkwell{os.urandom(6).hex()}"
    return ToolServer(name, call, version=VERSION, on_reached=on_reached)


class SessionTools:
    """The tools of one session, whatever turn it is in.

    Args:
        hosts: The ways to the agent.
        call: Runs a tool.
        way: The way to go, where it is not the agent's.
    """

    def __init__(self, hosts: ToolHosts, call: CallTool, way: ToolTransport | None = None) -> None:
        self._hosts = hosts
        self._call = call
        self._marks_names = False
        """Whether the tools' names are marked as ours: for each server once, as agents keep what they saw."""
        self._way: ToolTransport | None = way
        self.tried: tuple[ToolTransport, ...] = ()
        """The ways on which the tools were offered, in order. The last one is that of the session."""
        self._known: dict[str, ToolSpec] = {}
        self._tools: tuple[ToolSpec, ...] = ()
        """Those that are offered, by the names that the user gave them."""
        self._seen = False
        """Whether it has fetched them of a server before this one."""
        self.waited: bool = False
        """Whether the agent has had its time to fetch them."""
        self.server: ToolServer = new_server(self._call_tool, self._learn_way)
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
        self._marks_names = self._hosts.bare_names
        self._set_tools(tools)
        return await self._offer_over(self._way or self._hosts.way)

    async def _offer_over(self, way: ToolTransport) -> s.McpServer:
        self.config = await self._hosts.add(self.server, way)
        self.tried = (*self.tried, way)
        return self.config

    @asynccontextmanager
    async def moved(self, way: ToolTransport) -> AsyncGenerator[None]:
        """Offer the tools over another transport, if the block reopens the session; else keep this one."""
        config, tried = self.config, self.tried
        await self._offer_over(way)
        try:
            yield
        except BaseException:
            self.config, self.tried = config, tried
            self._hosts.remove(self.server, way)
            self._learn_way()  # the agent may have come by the way before while this one was opened
            raise
        self._hosts.remove(self.server, tried[-1])  # what comes there late is of a session that is gone

    async def renew(self) -> None:
        """Offer the tools by a server of another name: some agents keep what they fetched under a name."""
        server = new_server(self._call_tool, self._learn_way)
        self._marks_names = self._hosts.bare_names
        server.set_tools(self._named(self._tools, server))
        config = await self._hosts.add(server, self.tried[-1])
        self._seen = self.seen
        old, self.server, self.config = self.server, server, config
        self._hosts.remove(old)
        old.close()

    def next_way(self, refused: Sequence[ToolTransport]) -> ToolTransport | None:
        """Return another way to try, of those that were not refused."""
        return None if self._way is not None else self._hosts.next_way((*self.tried, *refused))

    def _learn_way(self) -> None:
        """Have other sessions begin with the way by which the agent came, whenever that is."""
        if self._way is None and self.reached:
            self._hosts.learn(self.tried[-1])

    def give_up(self) -> None:
        """Have other sessions not try all ways again, where the agent came by none."""
        if self._way is None and not self.reached:
            self._hosts.give_up()

    async def offer(self, tools: Sequence[ToolSpec], *, needed: bool) -> None:
        """Offer these tools for the next turn and wait, not forever, until the agent has fetched them.

        Args:
            tools: All of them.
            needed: Whether the turn needs any of them. Else nothing is waited for.
        """
        relists = self.seen
        self._set_tools(tools)
        if not needed or self.server.listed_generation == self.server.generation:
            return
        await self._wait_listed(RELIST_TIMEOUT if self.waited or relists else LIST_TIMEOUT)
        if relists and not self.outdated:
            await anyio.sleep(RELIST_GRACE)

    async def reopened(self) -> None:
        """Wait again for the first list: the agent has reopened the session."""
        await self._wait_listed(LIST_TIMEOUT)

    async def _wait_listed(self, seconds: float) -> None:
        with anyio.move_on_after(seconds) as limit:
            await self.server.wait_listed()
        self.waited = True  # not where the wait was cancelled
        if limit.cancelled_caught:
            logger.info("The agent has not fetched our tools within %g s; it is prompted without", seconds)

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

    @property
    def marked_server(self) -> str | None:
        """Our server's name, where the names of the tools are marked with it."""
        return self.server.name if self._marks_names else None

    def learn_bare_names(self) -> None:
        """Have later sessions mark the names of their tools: this agent shows nothing but those."""
        self._hosts.bare_names = True

    def _set_tools(self, tools: Sequence[ToolSpec]) -> None:
        self._tools = tuple(tools)
        self.server.set_tools(self._named(tools, self.server))

    def _named(self, tools: Sequence[ToolSpec], server: ToolServer) -> list[ToolSpec]:
        """Return the tools with the names that the agent sees."""
        if not self._marks_names:
            return list(tools)
        return [replace(tool, name=marked_name(tool.name, server.name)) for tool in tools]

    async def _call_tool(
        self, name: str, arguments: dict[str, JsonValue], context: CallContext
    ) -> ToolOutput:
        return await self._call(plain_name(name, self.server.name), arguments, context)

    def withdraw(self) -> None:
        """Offer nothing more, and tell the agent."""
        self._set_tools(())

    async def close(self) -> None:
        """Cancel what runs and end the sessions."""
        self._hosts.remove(self.server)
        await self.server.aclose()


def tools_cannot_change(*, reopened: bool = False) -> CapabilityMissing:
    """Return the error for an agent that does not fetch changed tools.

    Args:
        reopened: Whether it did not do so either when the session was reopened.
    """
    way_out = "Offer the same tools on every turn, or use a session for each set of tools"
    if reopened:
        return CapabilityMissing(
            "tools/list",
            "changing the tools of a session: it has not fetched the changed list, and not when the session "
            f"was reopened either. {way_out}",
        )
    return CapabilityMissing(
        "sessionCapabilities.close and sessionCapabilities.resume",
        "changing the tools of a session, since it has not fetched the changed list by itself. " + way_out,
    )
