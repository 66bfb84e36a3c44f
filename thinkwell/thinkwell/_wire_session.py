"""A session as it is on the wire: its tools, its updates, and whose turn it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import anyio

from thinkwell import events as ev
from thinkwell._convert import Mapper
from thinkwell._log import RunLog
from thinkwell._tooling import SessionTools, tools_cannot_change
from thinkwell._turns import Turns
from thinkwell.permissions import is_own_tool
from thinkwell_acp import AcpError, DecodeError
from thinkwell_acp import schema as s
from thinkwell_acp.mcp import ToolOutput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkwell._link import Link
    from thinkwell_acp.mcp import CallContext, ToolSpec

CLOSE_TIMEOUT: Final = 2.0
"""Seconds that closing a session waits for the agent's answer."""


class Occupant(Protocol):
    """A run while the turns of a session are its own."""

    mapper: Mapper

    async def call_tool(
        self, name: str, arguments: dict[str, ev.JsonValue], context: CallContext
    ) -> ToolOutput:
        """Run a tool for the agent."""
        ...


class WireSession:
    """One session of an agent."""

    def __init__(self, link: Link, cwd: str, mcp_servers: Sequence[s.McpServer] = ()) -> None:
        self._link = link
        self._cwd = cwd
        self._mcp_servers = tuple(mcp_servers)
        self.id: str | None = None
        self.occupant: Occupant | None = None
        """The run whose turn it is; set before the session is opened, so that early updates are the run's."""
        self.turns = Turns()
        """Whoever has the session has entered a ticket of these."""
        self.between = RunLog(ev.ALL_TYPES)
        """What came outside of every turn."""
        self._between_mapper = Mapper(self.between, self.note_call)
        self.turn_marks: list[int] = []
        """How many events `between` had when each run took the session: what lies between two marks came
        late."""
        self.tools = SessionTools(link.hosts, self._call_tool)
        self.own_calls: set[str] = set()
        """Ids of tool calls that are known to be of our own tools."""
        self.usable = True
        """False once a turn could not be ended."""

    # Opening and closing

    async def open(self, tools: Sequence[ToolSpec]) -> None:
        """Open the session, with our tools where there are any.

        Raises:
            AcpError, DecodeError: The agent did not open it.
        """
        servers = list(self._mcp_servers)
        if tools:
            servers.append(await self.tools.open(tools))
        with self._link.opening() as claim:
            response = await self._link.client.new_session(
                s.NewSessionRequest(cwd=self._cwd, mcp_servers=tuple(servers))
            )
            self.id = response.session_id
            claim(self)

    async def offer(self, tools: Sequence[ToolSpec]) -> None:
        """Offer these tools from the next prompt on, and wait for the agent to see them.

        Raises:
            CapabilityMissing: The agent keeps its old tools, and cannot open the session anew.
        """
        await self.tools.offer(tools)
        if not self.tools.outdated:
            return
        flags = self._link.client.capabilities.session_capabilities
        if flags.close is None or flags.resume is None:
            raise tools_cannot_change()
        assert self.id is not None
        assert self.tools.config is not None
        await self._link.client.close_session(s.CloseSessionRequest(session_id=self.id))
        await self._link.client.resume_session(
            s.ResumeSessionRequest(
                session_id=self.id, cwd=self._cwd, mcp_servers=(*self._mcp_servers, self.tools.config)
            )
        )
        await self.tools.reopened()
        if self.tools.outdated:
            raise tools_cannot_change()

    async def close(self) -> None:
        """Close the session where the agent can, and end our tools."""
        if self.tools.config is not None:
            await self.tools.close()
        if self.id is None or self._link.client.connection.error is not None:
            return
        if self._link.client.capabilities.session_capabilities.close is not None:
            with anyio.move_on_after(CLOSE_TIMEOUT):
                try:
                    await self._link.client.close_session(s.CloseSessionRequest(session_id=self.id))
                except (AcpError, DecodeError) as exc:
                    self._link.logger.debug("session/close of %s: %s", self.id, exc)

    # What the agent sends

    def updates(self, batch: Sequence[s.SessionNotification]) -> None:
        """Take updates: they are the run's whose turn it is, or nobody's."""
        self.mapper.extend(batch)

    def note_call(self, call: s.ToolCallStart | s.ToolCallProgress) -> None:
        """Know our own calls by their ids, as long as they last: some agents use an id again."""
        if self.tools.config is None:
            return
        if isinstance(call, s.ToolCallStart) and self.is_own(call):
            self.own_calls.add(call.tool_call_id)
        elif isinstance(call, s.ToolCallStart) or call.status in ("completed", "failed"):
            self.own_calls.discard(call.tool_call_id)

    def is_own(self, call: s.ToolCallFields | s.ToolCallPatch) -> bool:
        """Return whether a call is of a tool of ours."""
        return is_own_tool(call, self.tools.server.name, self.tools.server.tools)

    @property
    def mapper(self) -> Mapper:
        """What turns updates into events now: that of the run whose turn it is, or of what comes between."""
        return self._between_mapper if self.occupant is None else self.occupant.mapper

    async def _call_tool(
        self, name: str, arguments: dict[str, ev.JsonValue], context: CallContext
    ) -> ToolOutput:
        if self.occupant is None:
            return ToolOutput.text(
                "No task is running in this session, so no tool can be called.", is_error=True
            )
        return await self.occupant.call_tool(name, arguments, context)
