"""The tools of one session: one tool server, over a transport that the agent offers."""

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
"""Seconds that a session's first prompt waits for the agent to fetch the tools that it needs. Agents that
were seen took two at most; one that is prompted earlier loses the tools half of the time."""

RELIST_TIMEOUT: Final = 0.3
"""Seconds for an agent to fetch a changed list again. Those that do took a few milliseconds."""

RELIST_GRACE: Final = 0.1
"""Seconds between the new list and the prompt: agents need a moment to apply it."""


def new_server(call: CallTool, on_reached: Callable[[], None]) -> ToolServer:
    """Return a tool server with a name that cannot be guessed: it marks a permission request as ours.

    The name has no character that agents rewrite, and leaves room for a tool's name within the 64 characters
    of most models.
    """
    name = f"thinkwell{os.urandom(6).hex()}"
    return ToolServer(name, call, version=VERSION, on_reached=on_reached)


class SessionTools:
    """The tools of one session, over all of its turns.

    Args:
        hosts: The transports to the agent.
        call: Runs a tool.
        way: The transport, if it differs from the agent's.
    """

    def __init__(self, hosts: ToolHosts, call: CallTool, way: ToolTransport | None = None) -> None:
        self._hosts = hosts
        self._call = call
        self._marks_names = False
        """Whether the tools' names are marked as ours: decided once for each server, as agents keep what they
        saw."""
        self._way: ToolTransport | None = way
        self.tried: tuple[ToolTransport, ...] = ()
        """The transports over which the tools were offered, in order. The last one is the session's."""
        self._known: dict[str, ToolSpec] = {}
        self._tools: tuple[ToolSpec, ...] = ()
        """The offered tools, by the user's names."""
        self._seen = False
        """Whether the agent has fetched tools of an earlier server."""
        self.waited: bool = False
        """Whether the agent has had its time to fetch them."""
        self.server: ToolServer = new_server(self._call_tool, self._learn_way)
        self.config: s.McpServer | None = None

    def reserve(self, tools: Sequence[ToolSpec]) -> None:
        """Check that no tool has a name that this session has offered with another schema.

        Raises:
            ValueError: A tool does. Agents keep the first schema that they saw of a name.
        """
        for tool in tools:
            known = self._known.get(tool.name)
            if known is not None and known.input_schema != tool.input_schema:
                raise ValueError(
                    f"this session has offered a tool {tool.name!r} with other parameters before, and "
                    "agents keep what they saw first; give this one another name: .tool(fn, name=…)"
                )
        self._known.update({tool.name: tool for tool in tools})

    async def open(self, tools: Sequence[ToolSpec]) -> None:
        """Offer the first tools."""
        self._marks_names = self._hosts.bare_names
        self._set_tools(tools)
        await self._offer_over(self._way or self._hosts.way)

    async def _offer_over(self, way: ToolTransport) -> None:
        self.config = await self._hosts.add(self.server, way)
        self.tried = (*self.tried, way)

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
            self._learn_way()  # the agent may have used the earlier transport while this one was opened
            raise
        self._hosts.remove(self.server, tried[-1])  # late requests there belong to the old session

    async def renew(self) -> None:
        """Offer the tools by a server with another name: some agents cache tools by the server's name."""
        server = new_server(self._call_tool, self._learn_way)
        self._marks_names = self._hosts.bare_names
        server.set_tools(self._named(self._tools, server))
        config = await self._hosts.add(server, self.tried[-1])
        self._seen = self.seen
        old, self.server, self.config = self.server, server, config
        self._hosts.remove(old)
        old.close()

    def next_way(self, refused: Sequence[ToolTransport]) -> ToolTransport | None:
        """Return another transport to try, of those that were not refused."""
        return None if self._way is not None else self._hosts.next_way((*self.tried, *refused))

    def _learn_way(self) -> None:
        """Let other sessions begin with the transport over which the agent fetched, whenever that is."""
        if self._way is None and self.reached:
            self._hosts.learn(self.tried[-1])

    def give_up(self) -> None:
        """Keep other sessions from trying all transports again, if the agent fetched over none."""
        if self._way is None and not self.reached:
            self._hosts.give_up()

    async def offer(self, tools: Sequence[ToolSpec], *, needed: bool) -> None:
        """Offer these tools for the next turn and wait, for a limited time, until the agent has fetched them.

        Args:
            tools: All of them.
            needed: Whether the turn needs any of them. If not, this does not wait.
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
        self.waited = True  # not if the wait was cancelled
        if limit.cancelled_caught:
            logger.info("The agent did not fetch our tools within %g s; it is prompted without them", seconds)

    @property
    def seen(self) -> bool:
        """Whether the agent has ever fetched our tools."""
        return self._seen or self.server.list_count > 0

    @property
    def reached(self) -> bool:
        """Whether the agent has ever connected for our tools: a slow listing needs no other transport."""
        return self.server.reached

    @property
    def outdated(self) -> bool:
        """Whether the agent has fetched our tools once, but not all of the current ones."""
        return self.seen and any(tool.name not in self.server.listed_names for tool in self.server.tools)

    @property
    def marked_server(self) -> str | None:
        """Our server's name, if the names of the tools are marked with it."""
        return self.server.name if self._marks_names else None

    def learn_bare_names(self) -> None:
        """Let later sessions mark the names of their tools: this agent shows only those."""
        self._hosts.bare_names = True

    def _set_tools(self, tools: Sequence[ToolSpec]) -> None:
        self._tools = tuple(tools)
        self.server.set_tools(self._named(tools, self.server))

    def _named(self, tools: Sequence[ToolSpec], server: ToolServer) -> list[ToolSpec]:
        """Return the tools with the names for the agent."""
        if not self._marks_names:
            return list(tools)
        return [replace(tool, name=marked_name(tool.name, server.name)) for tool in tools]

    async def _call_tool(
        self, name: str, arguments: dict[str, JsonValue], context: CallContext
    ) -> ToolOutput:
        return await self._call(plain_name(name, self.server.name), arguments, context)

    def withdraw(self) -> None:
        """Offer no tools any more, and notify the agent."""
        self._set_tools(())

    async def close(self) -> None:
        """Cancel running calls and end the sessions."""
        self._hosts.remove(self.server)
        await self.server.aclose()


def tools_cannot_change(*, reopened: bool = False) -> CapabilityMissing:
    """Return the error for an agent that does not fetch changed tools.

    Args:
        reopened: Whether reopening the session did not help either.
    """
    way_out = "Offer the same tools on every turn, or use a session for each set of tools"
    if reopened:
        return CapabilityMissing(
            "tools/list",
            "changing the tools of a session: it did not fetch the changed list, not even when the session "
            f"was reopened. {way_out}",
        )
    return CapabilityMissing(
        "sessionCapabilities.close and sessionCapabilities.resume",
        "changing the tools of a session, because it did not fetch the changed list by itself. " + way_out,
    )
