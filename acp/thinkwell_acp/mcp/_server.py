"""The tool server: its tools, its sessions, and which tools they have seen."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

import anyio

from thinkwell_acp.errors import INVALID_PARAMS
from thinkwell_acp.mcp._types import CallTool, McpError, ToolSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from thinkwell_acp.schema import JsonObject

KEEPALIVE = 15.0
"""Seconds between signs of life of a running call. The most impatient agent seen gives up after 60 s of
silence."""


class ServerSession(Protocol):
    """A client's session, as seen by the server."""

    def announce(self) -> None:
        """Tell the client that the tools have changed."""
        ...

    def close(self) -> None:
        """End the session."""
        ...


class ToolServer:
    """Offers tools to MCP clients over any transport. A host of this package makes it reachable.

    Args:
        name: The server's name in ``serverInfo``.
        call: Runs a tool. Several calls may run at once.
        tools: The tools at first.
        version: The version in ``serverInfo``.
        instructions: Advice to the model on how to use the server.
        keepalive: Seconds between signs of life of a running call, for callers that gave a progress token.
        discover: Whether to answer ``server/discover``, by which a client of MCP 2026-07-28 finds out that it
            may leave out the handshake. Without an answer, such a client uses its next older revision. Both
            are served.
        on_reached: Called whenever a client begins a session.

    Raises:
        ValueError: Two tools have the same name.
    """

    def __init__(
        self,
        name: str,
        call: CallTool,
        tools: Sequence[ToolSpec] = (),
        *,
        version: str,
        instructions: str | None = None,
        keepalive: float = KEEPALIVE,
        discover: bool = False,
        on_reached: Callable[[], None] | None = None,
    ) -> None:
        self.name = name
        self.version = version
        self.instructions = instructions
        self.call = call
        self.keepalive = keepalive
        self.discover = discover
        self._on_reached = on_reached
        self._tools: dict[str, ToolSpec] = _by_name(tools)
        self.generation: int = 1
        """The number of the current set of tools: one more at every change."""
        self.listed_generation: int = 0
        """The latest set of tools that was sent to an agent by ``tools/list``; 0 for none."""
        self.listed_names: frozenset[str] = frozenset()
        """The names of the tools in that set."""
        self.list_count: int = 0
        """The number of answers to ``tools/list``."""
        self.reached: bool = False
        """Whether a client has ever begun a session here."""
        self.closed: bool = False
        """Whether `close` was called."""
        self._asked: dict[int, frozenset[str]] = {}
        """The names in each set of tools that was requested and may still be sent."""
        self._sessions: set[ServerSession] = set()
        self._running = 0
        self._changed = anyio.Event()

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """The currently offered tools."""
        return tuple(self._tools.values())

    def set_tools(self, tools: Sequence[ToolSpec]) -> None:
        """Replace the offered tools, and notify every client that can be notified. Equal tools are no change.

        Raises:
            ValueError: Two tools have the same name.
        """
        new = _by_name(tools)
        if tuple(new.values()) == self.tools:
            return
        self._tools = new
        self.generation += 1
        for session in tuple(self._sessions):
            session.announce()

    async def wait_listed(self) -> None:
        """Return when an agent has received the current tools. The caller limits the wait."""
        wanted = self.generation
        while self.listed_generation < wanted:
            await self._changed.wait()

    def close(self) -> None:
        """Cancel the running calls, end every session, and refuse later ones. Return at once."""
        self.closed = True
        for session in tuple(self._sessions):
            session.close()

    async def aclose(self) -> None:
        """Close, and return when no tool's handler is running."""
        self.close()
        while self._running:
            await self._changed.wait()

    def find(self, name: str) -> ToolSpec:
        """Return the tool with a name.

        Raises:
            McpError: The tool is unknown; the message names the offered ones.
        """
        if name in self._tools:
            return self._tools[name]
        known = ", ".join(self._tools) or "none"
        raise McpError(INVALID_PARAMS, f"Unknown tool: {name}. Tools offered now: {known}.", {"tool": name})

    def identity(self) -> JsonObject:
        """Return the server's description of itself (``serverInfo``)."""
        return {"name": self.name, "version": self.version}

    def listing(self) -> tuple[int, JsonObject]:
        """Return the number of the current set of tools, and the answer to ``tools/list``."""
        self._asked[self.generation] = frozenset(self._tools)
        return self.generation, {"tools": [tool.wire() for tool in self._tools.values()]}

    def listed(self, generation: int) -> None:
        """Record that an agent received this set of tools."""
        if generation > self.listed_generation:
            self.listed_generation = generation
            self.listed_names = self._asked[generation]
            self._asked = {asked: names for asked, names in self._asked.items() if asked > generation}
        self.list_count += 1
        self._wake()

    def join(self, session: ServerSession) -> None:
        """Add a session, which is notified of later changes."""
        self._sessions.add(session)
        self.reached = True
        if self._on_reached is not None:
            self._on_reached()

    def leave(self, session: ServerSession) -> None:
        """Remove an ended session."""
        self._sessions.discard(session)

    @contextmanager
    def running(self) -> Generator[None]:
        """Count a tool call during the block."""
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1
            self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


def _by_name(tools: Sequence[ToolSpec]) -> dict[str, ToolSpec]:
    named: dict[str, ToolSpec] = {}
    for tool in tools:
        if tool.name in named:
            raise ValueError(f"two tools have the name {tool.name!r}")
        named[tool.name] = tool
    return named
