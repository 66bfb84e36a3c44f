"""A session of an agent: its tools, its updates, and the order of its turns."""

from __future__ import annotations

import logging
import math
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import anyio

from thinkwell import events as ev
from thinkwell._core.log.log_lines import log_fields
from thinkwell._core.policy.remember import Remembered
from thinkwell._core.protocol.own_tools import OwnCalls
from thinkwell._core.protocol.prompt import wire_system_prompt
from thinkwell._core.protocol.tool_calls import ToolCalls
from thinkwell._core.session.calls import SessionCalls
from thinkwell._core.session.outside_turns import OutsideTurns
from thinkwell._core.session.session_life import SessionLife
from thinkwell._core.session.settings import SessionSettings
from thinkwell._core.session.state import SessionState
from thinkwell._core.session.tools import SessionTools, tools_cannot_change
from thinkwell._core.session.turn_queue import Turns
from thinkwell.errors import SessionIdReused, SessionInUse
from thinkwell_acp import DecodeError, RpcError
from thinkwell_acp import schema as s
from thinkwell_acp.mcp import ToolOutput

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from thinkwell._core.protocol.updates import Mapper
    from thinkwell._core.session.host import SessionHost
    from thinkwell._core.task.system_prompt import SystemPrompt
    from thinkwell._core.turn.run_record import RunRecord
    from thinkwell.agents._profile import ToolTransport
    from thinkwell_acp.mcp import CallContext, ToolSpec

How: TypeAlias = Literal["new", "load", "resume", "fork"]
Opened: TypeAlias = (
    s.NewSessionResponse | s.LoadSessionResponse | s.ResumeSessionResponse | s.ForkSessionResponse
)

logger = logging.getLogger("thinkwell")

OTHER_WAY_TIMEOUT: Final = 30.0
"""Seconds for an agent to open a session with another transport for our tools. It has already opened one."""


class WireSession:
    """One session of an agent.

    Args:
        host: State shared with other sessions of its agent.
        cwd: The folder to work in.
        mcp_servers: MCP servers besides ours.
        directories: More folders to work in.
        how: The way it is opened.
        source: The session to load, resume or fork.
        tools_via: The transport for our tools, if it differs from the agent's.
        model: The model to set, by id or name; ``None``: the agent's own choice.
        system: Instructions for the whole session.

    Raises:
        CapabilityMissing: The agent does not support such a system prompt.
    """

    def __init__(
        self,
        host: SessionHost,
        cwd: str,
        mcp_servers: Sequence[s.McpServer] = (),
        *,
        directories: Sequence[str] = (),
        how: How = "new",
        source: str | None = None,
        tools_via: ToolTransport | None = None,
        model: str | None = None,
        system: SystemPrompt | None = None,
    ) -> None:
        self._host = host
        self._model = model
        self.cwd = cwd
        self.how: How = how
        self.source = source
        self.id: str | None = None
        """The agent's id for it: the last one, until there is another."""
        self.life: SessionLife = SessionLife.NEW
        self.state: SessionState = SessionState()
        self.settings: SessionSettings = SessionSettings(self, host.client)
        self.occupant: RunRecord[Any] | None = None
        """The run whose turn it is; set before the session is opened, so that early updates belong to the
        run."""
        self.turns: Turns = Turns()
        """The queue for the session; the run that has it has entered its ticket."""
        self._observers = host.observers.session(how)
        self.calls: ToolCalls = ToolCalls()
        """The calls since the last turn began."""
        self.outside: OutsideTurns = OutsideTurns(
            again=how != "new",
            listeners=self._observers.listeners,
            owner=host.owner,
            calls=self.calls,
            note_call=self.note_call,
            note_state=self.note_state,
            report=host.dialect.report,
        )
        """The updates outside every turn."""
        self.tools: SessionTools = SessionTools(host.tool_hosts, self._call_tool, tools_via)
        self.own_calls: OwnCalls = OwnCalls(self.tools.server, self.calls)
        """Recognises calls of our own tools."""
        self.system = system
        wire = None
        if system is not None:
            kept = host.keeps_system and how != "new"
            wire = wire_system_prompt(system, host.client.capabilities.session_capabilities, kept=kept)
        self._calls = SessionCalls(
            host.client, cwd, mcp_servers, directories, self.tools, wire, self._observers
        )
        self.preface: str = "" if system is None or wire is not None else system.text
        """The system prompt, as long as it must precede the next prompt."""
        self.remembered: Remembered = Remembered()
        """Answers for the whole session."""

    def leave(self) -> None:
        """Begin to leave it: its runs are being stopped."""
        self.life = self.life.to(SessionLife.LEAVING)

    def stuck(self) -> None:
        """Accept no more turns: one in it could not be ended."""
        if self.life is SessionLife.OPEN:
            self.life = SessionLife.STUCK

    def release(self, record: RunRecord[Any]) -> None:
        """Let later updates belong to no run, if they belonged to this one."""
        if self.occupant is record:
            self.occupant = None

    def standing_still(self) -> AbstractContextManager[None]:
        """Stop the clock for silence of the run whose turn it is."""
        return nullcontext() if self.occupant is None else self.occupant.standing_still()

    @property
    def mode_ids(self) -> frozenset[str]:
        """The ids of the session's modes: some agents offer them as options of a question."""
        return frozenset(mode.id for mode in self.state.modes)

    @property
    def server_name(self) -> str | None:
        """Name of our MCP server, if the agent may show the tools of other sessions besides ours.

        Some agents show those of closed sessions too. The name is also returned if the tools' names contain
        it.
        """
        return self.tools.server.name if self._host.routes.begun > 1 else self.tools.marked_server

    # Opening and closing

    async def open(self, tools: Sequence[ToolSpec]) -> None:
        """Open the session, with our tools if there are any.

        Raises:
            AcpError, DecodeError: The agent did not open it.
            SessionInUse: It is already open.
            SessionIdReused: The agent gave it the id of another open session.
            ModelNotOffered: The agent does not offer its model.
        """
        if tools and self.tools.config is None:
            await self.tools.open(tools)
        self.life = self.life.to(SessionLife.OPENING)
        try:
            if self.how in ("new", "fork"):
                await self._open_new()
            else:
                await self._open_old()
        except BaseException as exc:
            if self.life is SessionLife.OPENING:
                self.life = self.life.to(SessionLife.NEW)
            self._observers.closed(exc)
            raise
        if self._model is not None:
            await self.settings.set_model(self._model)

    async def _open_new(self) -> None:
        """Open a session whose id comes with the agent's answer."""
        with self._host.routes.opening(self, known=False):
            response: s.NewSessionResponse | s.ForkSessionResponse
            if self.source is None:
                response = await self._calls.new(self._opened_new)
            else:
                response = await self._calls.fork(self.source, self._opened_new)
        if self.id != response.session_id:
            raise SessionIdReused(self._host.name, response.session_id)

    def _opened_new(self, response: s.NewSessionResponse | s.ForkSessionResponse) -> None:
        if self._host.routes.in_use(response.session_id):
            return
        self.id, self.state = response.session_id, SessionState()
        self._observers.opened(response.session_id)
        self._host.routes.claim(self)  # also applies earlier updates; the answer overrides them
        self._opened(response)

    def _opened(self, response: Opened) -> None:
        opening = (SessionLife.OPENING, SessionLife.OPEN, SessionLife.REOPENING)
        if self.life in opening:  # pragma: no branch - else it is left in the moment in which it opens
            self.life = self.life.to(SessionLife.OPEN)
        self.state.opened(response)

    async def _open_old(self) -> None:
        """Open a session whose id is known. Updates are routed from now on: a replay precedes the answer."""
        assert self.source is not None
        if self._host.routes.in_use(self.source):
            raise SessionInUse(self.source)
        self.id = self.source
        with self._host.routes.opening(self, known=True):
            self._host.routes.claim(self)
            try:
                if self.how == "load":
                    self.outside.begin_replay()
                    await self._calls.load(self.source, self._opened_old)
                else:
                    await self._calls.resume(self.source, self._opened_old)
            except BaseException:
                self.id = None  # it is not open, so it must not be closed
                await self._forget(self.source)
                raise

    def _opened_old(self, response: s.LoadSessionResponse | s.ResumeSessionResponse) -> None:
        assert self.id is not None
        self._observers.opened(self.id)
        self.outside.end_replay()
        self._opened(response)

    async def offer(self, tools: Sequence[ToolSpec], *, needed: bool) -> None:
        """Offer these tools from the next prompt on, and wait for the agent to fetch them.

        Args:
            tools: All of them.
            needed: Whether the turn cannot succeed without them. If it can, it does not wait for them.

        Raises:
            CapabilityMissing: The agent keeps its old tools, and cannot reopen the session.
        """
        first = needed and self.how in ("new", "fork") and not self.tools.waited
        await self.tools.offer(tools, needed=needed)
        if first and not self.tools.reached and not self.outside.history.turns:
            await self._try_other_ways()
        if not (needed and self.tools.outdated) and not self.settings.outstanding:
            return
        async with self.settings.lock:
            await self._open_anew()
        await self.tools.reopened()
        if self.tools.outdated:
            raise tools_cannot_change(reopened=True)

    async def _try_other_ways(self) -> None:
        """Replace the session by one with another transport for our tools, until the agent fetches them.

        Some agents advertise a transport that does not work, or was switched off.
        """
        refused: list[ToolTransport] = []
        while not self.tools.reached and (way := self.tools.next_way(refused)) is not None:
            logger.info(
                "Agent %s did not fetch our tools over %s; trying %s",
                self._host.name,
                self.tools.tried[-1],
                way,
                extra=log_fields(agent=self._host.name, session=self.id),
            )
            old = self.id
            assert old is not None
            async with self.settings.lock:
                self.settings.keep()
                try:
                    async with self.tools.moved(way):
                        with anyio.fail_after(OTHER_WAY_TIMEOUT):
                            await self._open_new()
                except (RpcError, DecodeError, SessionIdReused, TimeoutError) as exc:
                    about, name = "Agent %s opens no session with tools over %s: %s", self._host.name
                    logger.debug(about, name, way, exc, extra=log_fields(agent=name))
                    refused.append(way)
                    await self.settings.restore()  # nothing has changed
                    continue
                if self.id != old:  # otherwise it is the same session, and would be closed
                    await self._forget(old)
                    await self._calls.close(old)
                await self.settings.restore()
            await self.tools.reopened()
        self.tools.give_up()

    async def _open_anew(self) -> None:
        """Let the agent reopen the session, or open another one, so that it fetches our tools again.

        Steps that are cancelled or fail are repeated before the next prompt: a session that is closed, or not
        set as it was, gets no prompt.
        """
        if self.tools.outdated and self.life is not SessionLife.REOPENING:
            await self._shut()
        if self.life is SessionLife.REOPENING:
            if self._begun:
                assert self.id is not None
                await self._calls.resume(self.id, self._opened)
            else:
                await self.tools.renew()
                self.own_calls = OwnCalls(self.tools.server, self.calls)
                await self._open_new()
        await self.settings.restore()

    @property
    def _begun(self) -> bool:
        """Whether the session has had a turn: agents can resume no other."""
        return self.outside.begun or self.how in ("load", "resume")

    async def _shut(self) -> None:
        """Close the session to reopen it."""
        flags = self._host.client.capabilities.session_capabilities
        if self._begun and (flags.close is None or flags.resume is None):
            raise tools_cannot_change()
        assert self.id is not None
        self.settings.keep()
        self.life = self.life.to(SessionLife.REOPENING)
        if self._begun:  # wait for its end, or it might affect the reopened session
            await self._calls.close(self.id, math.inf)
        else:
            await self._forget(self.id)
            await self._calls.close(self.id)

    async def _forget(self, session_id: str) -> None:
        """Stop using an id."""
        self._host.routes.forget(session_id)
        self._host.withdraw(session_id)
        if self._host.workspace is not None:
            await self._host.workspace.close_session(session_id)

    async def close(self) -> None:
        """Close the session if the agent can, and end our tools."""
        self.life = self.life.to(SessionLife.CLOSING)
        if self.id is not None:
            self._host.withdraw(self.id)
        try:
            # Not if the session was to be replaced by another, which was never opened.
            if self.id is not None and self._host.routes.get(self.id) is self:
                if self._host.workspace is not None:
                    await self._host.workspace.close_session(self.id)
                if self.tools.config is not None and self._calls.can_close:
                    # Some agents show the tools of a session that was left to the others in its folder.
                    self.tools.withdraw()
                await self._calls.close(self.id)
        finally:
            try:
                if self.tools.config is not None:
                    await self.tools.close()
            finally:
                self.life = self.life.to(SessionLife.CLOSED)
                self._observers.closed(None)

    # The agent's updates

    def updates(self, batch: Sequence[s.SessionNotification]) -> None:
        """Handle updates: they belong to the current run, or to no run."""
        self.outside.expect(batch)
        self.mapper.extend(batch)

    def take(self, record: RunRecord[Any]) -> int:
        """Give the session to a run, and return how many runs had it before."""
        place = self.outside.taken(record.log)
        self.calls.forget()
        self.occupant = record
        return place

    def note_call(self, call: s.ToolCallStart | s.ToolCallProgress) -> bool:
        """Recognise calls of our own tools, and return whether this one is."""
        return self.tools.config is not None and self.own_calls.note(call)

    def note_state(self, update: s.SessionUpdate) -> None:
        """Keep the session's state, and report a mode that was changed by its option."""
        mode = self.state.mode
        self.state.note(update)
        if isinstance(update, s.ConfigOptionUpdate) and self.state.mode not in (None, mode):
            self.mapper.log.add(ev.ModeUpdate, mode_id=self.state.mode)

    @property
    def cost(self) -> float | None:
        """The session's cost before; ``None`` if unknown."""
        usage = self.state.usage
        if usage is not None and usage.cost is not None:
            return usage.cost.amount
        return 0.0 if self.how == "new" else None

    @property
    def mapper(self) -> Mapper:
        """The current translator of updates to events: the current run's, or the one between runs."""
        return self.outside.mapper if self.occupant is None else self.occupant.mapper

    async def _call_tool(
        self, name: str, arguments: dict[str, ev.JsonValue], context: CallContext
    ) -> ToolOutput:
        answered = self._observers.called(name, arguments)
        if self.occupant is None:
            output = ToolOutput.text(
                "No task is running in this session, so no tool can be called.", is_error=True
            )
        else:
            output = await self.occupant.tools.call(name, arguments, context)
        answered(output)
        return output
