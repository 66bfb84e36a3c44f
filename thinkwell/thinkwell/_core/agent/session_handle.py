"""`Session`: many turns in one conversation."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

import anyio
from msgspec import Struct

from thinkwell import events as ev
from thinkwell._core.agent.agent import AgentLife
from thinkwell._core.agent.opening import Hold, Opening
from thinkwell._core.protocol.mcp_servers import check_reachable
from thinkwell._core.protocol.prompt import ANY_RESULT, prompt_blocks, result_tool, tool_specs
from thinkwell._core.schema.arguments import check_seconds
from thinkwell._core.schema.output import output_type
from thinkwell._core.session.session import How, WireSession
from thinkwell._core.task.builder import Explanation, Spec, ThinkBuilder
from thinkwell._core.task.prompt import ImagePart, Part
from thinkwell._values.folders import existing_folder
from thinkwell.errors import (
    AgentReported,
    CapabilityMissing,
    SessionClosed,
    SessionNotOpened,
    SessionOpenTimeout,
)
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from pydantic import TypeAdapter
    from typing_extensions import TypeForm

    from thinkwell._core.agent.agent import RunningAgent
    from thinkwell._core.log.stream import ThoughtStream
    from thinkwell._core.schema.output import Form, JsonSchema, Output
    from thinkwell._core.session.history import HistoryMessage
    from thinkwell._core.session.state import SessionMode, SessionUsage
    from thinkwell._core.task.builder import Options
    from thinkwell._mcp.servers import McpServer
    from thinkwell._values.session_options import SessionOption
    from thinkwell.agents._profile import ToolTransport
    from thinkwell.questions import Answer
    from thinkwell_acp.mcp import ToolSpec

T = TypeVar("T")

OPEN_TIMEOUT: Final = 90.0
"""Seconds that an agent gets to open a session. Some hang when they load an old one; the slowest that were
seen to succeed took about a minute."""


class SessionPlan(Struct, frozen=True, kw_only=True):
    """How to open a session."""

    cwd: str
    mcp_servers: tuple[s.McpServer, ...] = ()
    directories: tuple[str, ...] = ()
    how: How = "new"
    source: str | None = None
    """The session to load, resume or fork."""
    result: Output[Any] | None = None
    """What every typed turn returns, where it is always the same."""
    open_timeout: float = OPEN_TIMEOUT
    tools_via: ToolTransport | None = None
    """The way for our tools, where it is not the agent's."""
    bare: bool = False
    """Whether none of our tools are offered to the agent. There can be no turns then."""


class SessionStarter:
    """Starts the turns of a session."""

    def __init__(self, agent: RunningAgent, wire: WireSession, result: Output[Any] | None) -> None:
        self.agent = agent
        self.wire = wire
        self.result = result
        self._result_schema = None
        if agent.host.dialect.has_tools:
            self._result_schema = ANY_RESULT if result is None else result.tool_schema()

    @property
    def first_tools(self) -> list[ToolSpec]:
        """What is offered when the session is opened: the tool that returns results, which stays the same."""
        return [] if self._result_schema is None else [result_tool(self._result_schema)]

    def start(self, spec: Spec[T], options: Options) -> ThoughtStream[T]:
        """Start a turn."""
        self.check_open()
        if spec.cwd is not None:
            raise ValueError(
                "a session keeps the folder that it was opened in: agent.session(cwd=…), not .cwd(…)"
            )
        self.agent.host.dialect.check(spec)
        self.wire.tools.reserve(tool_specs(spec, self._result_schema))
        return self.agent.start(spec, options, self.wire, result_schema=self._result_schema, ephemeral=False)

    def explain(self, spec: Spec[T]) -> Explanation:
        """Return what a turn would send."""
        return explain(self.agent, spec, self._result_schema, self.wire.server_name)

    def check(self, part: Part) -> None:
        """Check that the agent takes such a part of a prompt."""
        check_part(self.agent, part)

    def check_open(self) -> None:
        """Check that neither the session's block has been left, nor the agent's.

        Raises:
            AgentClosed: The agent's was left.
            SessionClosed: The session's was left.
            WrongEventLoop: The caller is not in the agent's event loop.
        """
        if self.wire.life.left and self.agent.life is AgentLife.OPEN:
            raise SessionClosed
        self.agent.check_open()


class Session:
    """A conversation with an agent. Made by `Agent.session`.

    Turns run one at a time, in the order in which they were started. Each may have tools and an output type
    of its own.
    """

    def __init__(self, starter: SessionStarter, hold: Hold) -> None:
        self._starter = starter
        self._wire = starter.wire
        self._hold = hold

    def __repr__(self) -> str:
        return f"<Session {self.id} of {self._starter.agent.host.name}>"

    @property
    def id(self) -> str:
        """The agent's name for the session.

        It may change before the first turn has begun, and not after: an agent that does not fetch changed
        tools is given another session then, with the same modes and options.
        """
        assert self._wire.id is not None
        return self._wire.id

    @property
    def cwd(self) -> str:
        """The folder that it works in."""
        return self._wire.cwd

    @property
    def title(self) -> str | None:
        """What the agent calls the conversation."""
        return self._wire.state.title

    @property
    def commands(self) -> tuple[ev.Command, ...]:
        """The commands that can be prompted as ``/name``."""
        return self._wire.state.commands

    @property
    def usage(self) -> SessionUsage | None:
        """Tokens and cost, as the agent reported them last; ``None`` where it has not."""
        return self._wire.state.usage

    @property
    def modes(self) -> tuple[SessionMode, ...]:
        """The modes that the agent offers."""
        return self._wire.state.modes

    @property
    def mode(self) -> str | None:
        """The id of the mode that it is in; ``None`` where the agent has no modes."""
        return self._wire.state.mode

    @property
    def options(self) -> tuple[SessionOption, ...]:
        """What can be set, in the agent's order."""
        return self._wire.state.options

    async def set_mode(self, mode_id: str) -> None:
        """Change the mode, also while a turn runs.

        Where one of the `options` is the mode, that is set.

        Raises:
            ValueError: There is no such mode.
            CapabilityMissing: The agent has no modes.
            AgentError: It did not change it.
        """
        self._starter.check_open()
        await self._starter.agent.host.errors.call(self._wire.settings.set_mode(mode_id))

    async def set_option(self, option_id: str, value: str | bool) -> None:
        """Change an option, also while a turn runs.

        Args:
            option_id: Which of `options`.
            value: The value of one of its choices, or a bool where it is on or off.

        Raises:
            ValueError: There is no such option, or it cannot be that.
            TypeError: It takes a value of another type.
            CapabilityMissing: The agent has no options.
            AgentError: It did not change it.
        """
        self._starter.check_open()
        await self._starter.agent.host.errors.call(self._wire.settings.set_option(option_id, value))

    def fork(
        self,
        *,
        cwd: str | os.PathLike[str] | None = None,
        mcp_servers: Sequence[McpServer] = (),
        additional_directories: Sequence[str | os.PathLike[str]] = (),
        output: object = None,
        open_timeout: float = OPEN_TIMEOUT,
    ) -> Opening[Session]:
        """Open another session that begins with what was said in this one; see `Agent.session`.

        Args:
            cwd: The folder to work in; by default that of this session.
            mcp_servers: MCP servers for the agent, beside those of `open_agent`.
            additional_directories: More folders to work in.
            output: The output type of every typed turn, where it is always the same one.
            open_timeout: Seconds until the agent has opened it.

        Raises:
            CapabilityMissing: The agent does not advertise that.
            McpServerError: The program of an MCP server is not there.
            AgentError: The agent did not open it.
            NotADirectoryError: There is no such folder.
            TypeError: The output type cannot be used.
        """
        self._starter.check_open()
        agent = self._starter.agent
        plan = session_plan(
            agent,
            cwd=self.cwd if cwd is None else cwd,
            mcp_servers=mcp_servers,
            additional_directories=additional_directories,
            sources={"fork": self.id},
            output=output,
            open_timeout=open_timeout,
        )
        return open_session(agent, plan)

    def history(self) -> tuple[HistoryMessage, ...]:
        """Return the conversation until now as messages: prompts, thoughts, answers and tool calls, in order.

        It is complete whatever a turn's ``stream(include=…)`` keeps. What a loaded session said before is in
        it as far as the agent repeats it.
        """
        return self._wire.outside.messages()

    @overload
    def think(self, output: None = None, /) -> ThinkBuilder[str]: ...
    @overload
    def think(self, output: type[T], /) -> ThinkBuilder[T]: ...
    @overload
    def think(self, output: TypeAdapter[T], /) -> ThinkBuilder[T]: ...
    @overload
    def think(self, output: JsonSchema, /) -> ThinkBuilder[ev.JsonValue]: ...
    @overload
    def think(self, output: TypeForm[Form], /) -> ThinkBuilder[Form]: ...

    def think(self, output: object = None, /) -> ThinkBuilder[Any]:
        """Begin a turn; see `Agent.think`.

        Raises:
            TypeError: The output type cannot be used, or is not the one that the session was opened with.
        """
        prepared = output_type(output, "think({})")
        result = self._starter.result
        if result is not None and prepared.schema not in (None, result.schema):
            raise TypeError(
                f"this session was opened with output={result.name}; every typed turn returns that"
            )
        return ThinkBuilder(self._starter, Spec(output=prepared))

    def answer(self, question_id: str, answer: Answer, *, by: str = "human") -> None:
        """Answer any open question of the session. See `ThoughtStream.answer`, which takes its run's alone.

        Raises:
            QuestionNotOpen: The session has no such open question.
            AnswerInvalid: The answer does not fit the question, which stays open.
        """
        questions = self._starter.agent.questions.asker.open
        questions.answer(question_id, answer, by, session=self.id)

    async def close(self) -> None:
        """Close the session, as leaving its block does. Where it is closed, nothing happens.

        Raises:
            WrongEventLoop: The caller is not in the agent's event loop.
        """
        await self._hold.close()

    def events(self, *, include: ev.Include = "all", after: int = 0) -> AsyncIterator[ev.ThoughtEvent]:
        """Return a reader of what the agent sends between the turns. It ends with the session."""
        return self._wire.outside.log.reader(ev.included(include), after)


def session_plan(
    agent: RunningAgent,
    *,
    cwd: str | os.PathLike[str] | None,
    mcp_servers: Sequence[McpServer],
    additional_directories: Sequence[str | os.PathLike[str]],
    sources: Mapping[How, str | None],
    output: object,
    open_timeout: float,
) -> SessionPlan:
    """Check what was asked for. `sources` are the sessions to load, resume or fork, at most one of them.

    Raises:
        NotADirectoryError: There is no such folder.
        CapabilityMissing: The agent does not take one of the MCP servers.
        McpServerError: The program of one is not there.
        TypeError: The output type cannot be used, or an argument is of another type.
        ValueError: More than one source is given, or an argument is out of range.
    """
    result = None if output is None else output_type(output, "session(output={})")
    if result is not None and result.schema is None:
        raise TypeError("session(output=str): text needs no output type; leave it out")
    check_seconds("open_timeout", open_timeout)
    chosen: list[tuple[How, object]] = [pair for pair in sources.items() if pair[1] is not None]
    if len(chosen) > 1:
        raise ValueError(f"session({'=…, '.join(how for how, _ in chosen)}=…): give one of them")
    how: How = "new"
    source: str | None = None
    for how, given in chosen:
        if not isinstance(given, str):
            raise TypeError(f"session({how}={given!r:.100}): give the id of a session, as in SessionInfo.id")
        source = given
    if isinstance(additional_directories, str | os.PathLike):
        raise TypeError("session(additional_directories=…): give a list of folders")
    folder = agent.setup.cwd if cwd is None else existing_folder(cwd, "session(cwd=…)")
    more = [existing_folder(path, "session(additional_directories=…)") for path in additional_directories]
    agent.host.dialect.refuse(folder != agent.setup.cwd, "cwd", "session(cwd=…)")
    servers = agent.setup.mcp_servers.with_more(mcp_servers)
    agent.host.dialect.refuse(servers, "mcpCapabilities", "session(mcp_servers=…)")
    with agent.host.errors.advising():
        check_reachable(servers, agent.client.capabilities.mcp_capabilities)
    return SessionPlan(
        cwd=folder,
        mcp_servers=servers,
        directories=tuple(path for path in dict.fromkeys(more) if path != folder),
        how=how,
        source=source,
        result=result,
        open_timeout=open_timeout,
    )


def open_session(agent: RunningAgent, plan: SessionPlan) -> Opening[Session]:
    """Open a session."""

    def opened(hold: Hold) -> AbstractAsyncContextManager[Session]:
        agent.check_open()
        return _opened(agent, plan, hold)

    return Opening(agent.host.name, opened)


@asynccontextmanager
async def _opened(agent: RunningAgent, plan: SessionPlan, hold: Hold) -> AsyncGenerator[Session]:
    wire = WireSession(
        agent.host,
        plan.cwd,
        plan.mcp_servers,
        directories=plan.directories,
        how=plan.how,
        source=plan.source,
        tools_via=plan.tools_via,
    )
    starter = SessionStarter(agent, wire, plan.result)
    tools = [] if plan.bare else starter.first_tools
    wire.tools.reserve(tools)
    try:
        await _open(agent, wire, tools, plan.open_timeout)
        yield Session(starter, hold)
        with hold.patience:
            await agent.let_finish(wire)
    finally:
        agent.leave_session(wire)
        with anyio.CancelScope(shield=True):  # bounded by the limits of cancelling
            async with wire.turns.ask():
                await wire.close()
                wire.outside.end()


async def _open(agent: RunningAgent, wire: WireSession, tools: Sequence[ToolSpec], seconds: float) -> None:
    with agent.host.errors.advising():
        with anyio.move_on_after(seconds):
            try:
                await agent.host.errors.call(wire.open(tools))
            except AgentReported as exc:
                how, source = wire.how, wire.source
                raise SessionNotOpened(how, source, exc.code, exc.message, exc.data) from exc.__cause__
            return
        raise SessionOpenTimeout(wire.how, wire.source, seconds)


def explain(
    agent: RunningAgent, spec: Spec[Any], result_schema: dict[str, ev.JsonValue] | None, server: str | None
) -> Explanation:
    """Return exactly what a run would send."""
    return Explanation(
        prompt=tuple(
            s.to_builtins(
                prompt_blocks(
                    spec,
                    embeds=agent.client.capabilities.prompt_capabilities.embedded_context,
                    plain=not agent.host.dialect.has_tools,
                    result_schema=result_schema,
                    server=server,
                )
            )
        ),
        tools=tuple(tool.wire() for tool in tool_specs(spec, result_schema)),
    )


def check_part(agent: RunningAgent, part: Part) -> None:
    """Check that the agent takes such a part of a prompt. Files become links where it takes no more.

    Raises:
        CapabilityMissing: It does not.
    """
    if isinstance(part, ImagePart) and not agent.client.capabilities.prompt_capabilities.image:
        with agent.host.errors.advising():
            raise CapabilityMissing("promptCapabilities.image", "an image in a prompt")
