"""A session as it is on the wire: its tools, its updates, and whose turn it is."""

from __future__ import annotations

import math
from contextlib import nullcontext
from enum import Enum, auto
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

import anyio

from thinkwell import events as ev
from thinkwell._convert import Mapper
from thinkwell._history import History
from thinkwell._log import RunLog, running_clock
from thinkwell._own_tools import OwnCalls
from thinkwell._session_settings import SessionSettings
from thinkwell._session_state import SessionState
from thinkwell._tooling import SessionTools, tools_cannot_change
from thinkwell._turns import Turns
from thinkwell.errors import SessionInUse
from thinkwell.permissions import Remembered
from thinkwell_acp import AcpError, DecodeError, RpcError
from thinkwell_acp import schema as s
from thinkwell_acp.mcp import ToolOutput

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from thinkwell._history import HistoryMessage
    from thinkwell._link import Link
    from thinkwell._listener import RunListener
    from thinkwell.agents._profile import Way
    from thinkwell.questions import Question
    from thinkwell_acp.mcp import CallContext, ToolSpec

How: TypeAlias = Literal["new", "load", "resume", "fork"]

OTHER_WAY_TIMEOUT: Final = 30.0
"""Seconds that an agent gets to open a session with another way to our tools. It has opened one already."""

CLOSE_TIMEOUT: Final = 2.0
"""Seconds that closing a session waits for the agent's answer."""


_CONVERSATION: Final = (
    s.UserMessageChunk,
    s.AgentMessageChunk,
    s.AgentThoughtChunk,
    s.ToolCallStart,
    s.ToolCallProgress,
    s.AgentPlanUpdate,
    s.PlanUpdate,
)


class Life(Enum):
    """Where a session is in its life."""

    OPEN = auto()
    """It is open, or to be opened for the first time, as long as it has no id."""
    SHUT = auto()
    """The agent has closed it, to open it anew, and has not done that yet."""
    CLOSING = auto()
    """It is left."""
    CLOSED = auto()
    """It was left, so that it can be opened again."""


class Occupant(Protocol):
    """A run while the turns of a session are its own."""

    mapper: Mapper
    listener: RunListener | None
    """Who is asked first."""

    @property
    def id(self) -> str:
        """Name of the run."""
        ...

    def standing_still(self) -> AbstractContextManager[None]:
        """Stop the clock for silence for the time of a block."""
        ...

    def know_own(self, tool_id: str) -> None:
        """Know that a tool call that the agent shows is of a tool of ours."""
        ...

    def asked_too_often(self, question: Question) -> str | None:
        """Count a question, and return why it is one too many."""
        ...

    def stop(self, why: Exception) -> None:
        """End the run."""
        ...

    async def call_tool(
        self, name: str, arguments: dict[str, ev.JsonValue], context: CallContext
    ) -> ToolOutput:
        """Run a tool for the agent."""
        ...


class WireSession:
    """One session of an agent.

    Args:
        link: The line to the agent.
        cwd: The folder to work in.
        mcp_servers: MCP servers beside ours.
        directories: More folders to work in.
        how: How it is opened.
        source: The session to load, resume or fork.
        tools_via: The way for our tools, where it is not the agent's.
    """

    def __init__(
        self,
        link: Link,
        cwd: str,
        mcp_servers: Sequence[s.McpServer] = (),
        *,
        directories: Sequence[str] = (),
        how: How = "new",
        source: str | None = None,
        tools_via: Way | None = None,
    ) -> None:
        self._link = link
        self.cwd = cwd
        self._mcp_servers = tuple(mcp_servers)
        self._directories = tuple(directories)
        self.how: How = how
        self.source = source
        self.id: str | None = None
        """The agent's name for it: the last one, until there is another."""
        self._life = Life.OPEN
        self.state = SessionState()
        self.settings = SessionSettings(link, self)
        self.occupant: Occupant | None = None
        """The run whose turn it is; set before the session is opened, so that early updates are the run's."""
        self.turns = Turns()
        """Whoever has the session has entered a ticket of these."""
        self._observers = link.observers.session(how)
        self.between = RunLog(ev.ALL_TYPES, clock=running_clock(), listeners=self._observers.listeners)
        """What came outside of every turn."""
        self._between_mapper = Mapper(self.between, self.note_call, self.note_state, by_lines=link.by_lines)
        self.history = History(self.between)
        self._may_replay = how != "new"
        """Whether what comes now was said before: until the first turn, since some agents repeat the rest
        after they have answered `session/load`."""
        self._replaying = False
        """Whether the readers of `between` were told so."""
        self.turn_marks: list[int] = []
        """How many events `between` had when each run took the session: what lies between two marks came
        late."""
        self.tools = SessionTools(link.hosts, self._call_tool, tools_via)
        self.own_calls = OwnCalls(self.tools.server)
        """Knows which tool calls are of our own tools."""
        self.leaving = False
        """Whether the session's block is being left."""
        self.remembered = Remembered()
        """What was answered for the whole session."""
        self.usable = True
        """False once a turn could not be ended."""

    @property
    def closed(self) -> bool:
        """Whether the session is left: nobody answers any more what comes in it."""
        return self._life in (Life.CLOSING, Life.CLOSED)

    @property
    def shut(self) -> bool:
        """Whether it has to be opened anew before the agent can be told anything."""
        return self._life is Life.SHUT

    @property
    def run_id(self) -> str | None:
        """Name of the run whose turn it is."""
        return None if self.occupant is None else self.occupant.id

    def standing_still(self) -> AbstractContextManager[None]:
        """Stop the clock for silence of the run whose turn it is."""
        return nullcontext() if self.occupant is None else self.occupant.standing_still()

    @property
    def mode_ids(self) -> frozenset[str]:
        """The ids of the session's modes: some agents offer them as options of a question."""
        return frozenset(mode.id for mode in self.state.modes)

    @property
    def server_name(self) -> str | None:
        """Name of our MCP server, where the agent may show the tools of other sessions beside ours.

        Some show those of sessions that were closed, too.
        """
        return self.tools.server.name if self._link.sessions_begun > 1 else None

    # Opening and closing

    async def open(self, tools: Sequence[ToolSpec]) -> None:
        """Open the session, with our tools where there are any.

        Raises:
            AcpError, DecodeError: The agent did not open it.
            SessionInUse: It is open already.
        """
        if tools and self.tools.config is None:
            await self.tools.open(tools)
        try:
            if self.how in ("new", "fork"):
                await self._open_new()
            else:
                await self._open_old()
        except BaseException as exc:
            self._observers.closed(exc)
            raise

    @property
    def _servers(self) -> tuple[s.McpServer, ...]:
        ours = self.tools.config
        return self._mcp_servers if ours is None else (*self._mcp_servers, ours)

    @property
    def _meta(self) -> dict[str, str] | None:
        return {**self._observers.meta()} or None

    async def _open_new(self) -> None:
        """Open a session whose id comes with the agent's answer."""
        client, cwd, servers, directories = self._link.client, self.cwd, self._servers, self._directories
        with self._link.opening() as claim:
            heard = partial(self._opened_new, claim)
            response: s.NewSessionResponse | s.ForkSessionResponse
            if self.source is None:
                new = s.NewSessionRequest(
                    cwd=cwd, mcp_servers=servers, additional_directories=directories, meta=self._meta
                )
                response = await client.new_session(new, heard)
            else:
                fork = s.ForkSessionRequest(
                    session_id=self.source,
                    cwd=cwd,
                    mcp_servers=servers,
                    additional_directories=directories,
                    meta=self._meta,
                )
                response = await client.fork_session(fork, heard)
        if self.id != response.session_id:
            raise SessionInUse(response.session_id)

    def _opened_new(
        self, claim: Callable[[WireSession], None], response: s.NewSessionResponse | s.ForkSessionResponse
    ) -> None:
        if self._in_use(response.session_id):
            return
        self.id, self._life, self.state = response.session_id, Life.OPEN, SessionState()
        self._observers.opened(response.session_id)
        claim(self)  # and take what was sent before the answer, which knows better
        self.state.opened(response)

    async def _open_old(self) -> None:
        """Open a session whose id is known. It has its updates from now on: a replay precedes the answer."""
        assert self.source is not None
        if self._in_use(self.source):
            raise SessionInUse(self.source)
        self.id = self.source
        client, cwd, servers, directories = self._link.client, self.cwd, self._servers, self._directories
        try:
            with self._link.opening() as claim:
                claim(self)
            if self.how == "load":
                self._begin_replay()
                load = s.LoadSessionRequest(
                    session_id=self.id,
                    cwd=cwd,
                    mcp_servers=servers,
                    additional_directories=directories,
                    meta=self._meta,
                )
                await client.load_session(load, self._opened_old)
            else:
                resume = s.ResumeSessionRequest(
                    session_id=self.id,
                    cwd=cwd,
                    mcp_servers=servers,
                    additional_directories=directories,
                    meta=self._meta,
                )
                await client.resume_session(resume, self._opened_old)
        except BaseException:
            self.id = None  # it is not open, so there is nothing to close
            await self._forget(self.source)
            raise

    def _opened_old(self, response: s.LoadSessionResponse | s.ResumeSessionResponse) -> None:
        assert self.id is not None
        self._observers.opened(self.id)
        self._end_replay()
        self.state.opened(response)

    def _in_use(self, session_id: str) -> bool:
        known = self._link.sessions.get(session_id)
        return known is not None and known._life is not Life.CLOSED

    async def offer(self, tools: Sequence[ToolSpec], *, needed: bool) -> None:
        """Offer these tools from the next prompt on, and wait for the agent to see them.

        Args:
            tools: All of them.
            needed: Whether nothing comes of the turn without them.

        Raises:
            CapabilityMissing: The agent keeps its old tools, and cannot open the session anew.
        """
        new = not self.tools.waited and self.how in ("new", "fork")
        await self.tools.offer(tools)
        if needed and new and not self.tools.reached:
            await self._try_other_ways()
        elif self.tools.reached:
            self.tools.settle()
        if not self.tools.outdated and not self.settings.outstanding:
            return
        async with self.settings.lock:
            await self._open_anew()
        await self.tools.reopened()
        if self.tools.outdated:
            raise tools_cannot_change(reopened=True)

    async def _try_other_ways(self) -> None:
        """Replace the session by one to which our tools go another way, until the agent comes to fetch them.

        Some agents advertise a way that does not work, or has been switched off.
        """
        refused: list[Way] = []
        while not self.tools.reached and (way := self.tools.next_way(refused)) is not None:
            self._link.logger.info(
                "Agent %s did not come for our tools over %s; trying %s",
                self._link.name,
                self.tools.tried[-1],
                way,
            )
            old = self.id
            assert old is not None
            async with self.settings.lock:
                self.settings.keep()
                try:
                    async with self.tools.moved(way):
                        with anyio.fail_after(OTHER_WAY_TIMEOUT):
                            await self._open_new()
                except (RpcError, DecodeError, SessionInUse, TimeoutError) as exc:
                    self._link.logger.debug(
                        "Agent %s opens no session with tools over %s: %s", self._link.name, way, exc
                    )
                    refused.append(way)
                    await self.settings.restore()  # nothing has changed
                    continue
                if self.id != old:  # else it is the same session, and would be closed
                    await self._forget(old)
                    await self._close_on_the_wire(old)
                await self.settings.restore()
            await self.tools.reopened()
        self.tools.settle()

    async def _open_anew(self) -> None:
        """Have the agent open the session again, or another one, so that it fetches our tools again.

        What is cancelled or fails on the way is done before the next prompt: there is none in a session that
        is closed, or not set as it was.
        """
        if self.tools.outdated and not self.shut:
            await self._shut()
        if self.shut and self._begun:
            await self._resume()
        elif self.shut:
            await self.tools.renew()
            self.own_calls = OwnCalls(self.tools.server)
            await self._open_new()
        await self.settings.restore()

    @property
    def _begun(self) -> bool:
        """Whether the session has had a turn: agents can resume no other."""
        return bool(self.turn_marks) or self.how in ("load", "resume")

    async def _shut(self) -> None:
        """Close the session, to open it anew."""
        flags = self._link.client.capabilities.session_capabilities
        if self._begun and (flags.close is None or flags.resume is None):
            raise tools_cannot_change()
        assert self.id is not None
        self.settings.keep()
        self._life = Life.SHUT
        if self._begun:  # the end of it is waited for, or it might hit the session that is open again
            await self._close_on_the_wire(self.id, math.inf)
        else:
            await self._forget(self.id)
            await self._close_on_the_wire(self.id)

    async def _resume(self) -> None:
        assert self.id is not None
        request = s.ResumeSessionRequest(
            session_id=self.id,
            cwd=self.cwd,
            mcp_servers=self._servers,
            additional_directories=self._directories,
            meta=self._meta,
        )
        await self._link.client.resume_session(request, self._resumed)

    def _resumed(self, response: s.ResumeSessionResponse) -> None:
        self._life = Life.OPEN
        self.state.opened(response)

    async def _forget(self, session_id: str) -> None:
        """Have nothing to do any more with an id."""
        del self._link.sessions[session_id]
        self._link.withdraw(lambda question: question.session_id == session_id)
        if self._link.workspace is not None:
            await self._link.workspace.close_session(session_id)

    async def close(self) -> None:
        """Close the session where the agent can, and end our tools."""
        self._life = Life.CLOSING
        if self.id is not None:
            self._link.withdraw(lambda question: question.session_id == self.id)
        try:
            await self._close()
        finally:
            self._life = Life.CLOSED
            self._observers.closed(None)

    async def _close(self) -> None:
        try:
            # Not where the session was to be replaced by another, which never came.
            if self.id is not None and self._link.sessions.get(self.id) is self:
                if self._link.workspace is not None:
                    await self._link.workspace.close_session(self.id)
                if self.tools.config is not None and self._can_close:
                    # Some agents show the tools of a session that was left to the others in its folder.
                    self.tools.withdraw()
                await self._close_on_the_wire(self.id)
        finally:
            if self.tools.config is not None:
                await self.tools.close()

    @property
    def _can_close(self) -> bool:
        client = self._link.client
        return client.connection.error is None and client.capabilities.session_capabilities.close is not None

    async def _close_on_the_wire(self, session_id: str, seconds: float = CLOSE_TIMEOUT) -> None:
        """Close a session where the agent can."""
        if self._can_close:
            with anyio.move_on_after(seconds):
                try:
                    await self._link.client.close_session(s.CloseSessionRequest(session_id=session_id))
                except (AcpError, DecodeError) as exc:
                    self._link.logger.debug(
                        "Agent %s: session/close of %s: %s", self._link.name, session_id, exc
                    )

    # What the agent sends

    def updates(self, batch: Sequence[s.SessionNotification]) -> None:
        """Take updates: they are the run's whose turn it is, or nobody's."""
        if self._may_replay and any(isinstance(note.update, _CONVERSATION) for note in batch):
            self._begin_replay()
        self.mapper.extend(batch)

    def _begin_replay(self) -> None:
        if not self._replaying:  # it is begun already where the opening is tried again after a login
            self._replaying = True
            self.between.add(ev.ReplayStarted)
            self.between.publish()

    def _end_replay(self) -> None:
        if self._replaying:
            self._replaying = False
            self.between.add(ev.ReplayEnded)
            self.between.publish()

    def end(self) -> None:
        """End what came between the turns: the session was left."""
        self._end_replay()
        self.between.end()

    def take(self, occupant: Occupant) -> int:
        """Make the turns a run's own, and return how many runs had the session before."""
        self._end_replay()
        self.history.take(occupant.mapper.log, replayed=self._may_replay)
        self._may_replay = False
        self.turn_marks.append(self.between.seq)
        self.own_calls.forget()
        self.occupant = occupant
        return len(self.turn_marks) - 1

    def messages(self) -> tuple[HistoryMessage, ...]:
        """Return the conversation until now."""
        return self.history.messages(replayed=self._may_replay)

    def note_call(self, call: s.ToolCallStart | s.ToolCallProgress) -> bool:
        """Learn which calls are of our own tools, and return whether this one is."""
        return self.tools.config is not None and self.own_calls.note(call)

    def note_state(self, update: s.SessionUpdate) -> None:
        """Keep the session's state, and tell of a mode that was changed by its option."""
        mode = self.state.mode
        self.state.note(update)
        if isinstance(update, s.ConfigOptionUpdate) and self.state.mode not in (None, mode):
            self.mapper.log.add(ev.ModeUpdate, mode_id=self.state.mode)

    @property
    def cost(self) -> float | None:
        """What the session has cost before; ``None`` where that is not known yet."""
        usage = self.state.usage
        if usage is not None and usage.cost is not None:
            return usage.cost.amount
        return 0.0 if self.how == "new" else None

    @property
    def mapper(self) -> Mapper:
        """What turns updates into events now: that of the run whose turn it is, or of what comes between."""
        return self._between_mapper if self.occupant is None else self.occupant.mapper

    async def _call_tool(
        self, name: str, arguments: dict[str, ev.JsonValue], context: CallContext
    ) -> ToolOutput:
        answered = self._observers.called(name, arguments)
        if self.occupant is None:
            output = ToolOutput.text(
                "No task is running in this session, so no tool can be called.", is_error=True
            )
        else:
            output = await self.occupant.call_tool(name, arguments, context)
        answered(output)
        return output
