"""`Session`: many turns in one conversation."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, overload

import anyio
from msgspec import Struct

from thinkwell import events as ev
from thinkwell._core.agent.arguments import check_model
from thinkwell._core.agent.opening import Hold, Opening
from thinkwell._core.agent.starters import SessionStarter, check_system
from thinkwell._core.protocol.mcp_servers import check_reachable
from thinkwell._core.schema.arguments import check_seconds
from thinkwell._core.schema.misuse import refuse_prompt
from thinkwell._core.schema.output import output_type
from thinkwell._core.session.session import How, WireSession
from thinkwell._core.task.builder import Spec, ThinkBuilder
from thinkwell._core.task.system_prompt import SystemPrompt, session_system
from thinkwell._values.folders import existing_folder
from thinkwell.errors import (
    AgentReported,
    SessionNotOpened,
    SessionOpenTimeout,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from pydantic import TypeAdapter
    from typing_extensions import TypeForm

    from thinkwell._core.agent.agent import RunningAgent
    from thinkwell._core.schema.output import Form, JsonSchema, Output
    from thinkwell._core.session.history import HistoryMessage
    from thinkwell._core.session.state import SessionMode, SessionUsage
    from thinkwell._mcp.servers import McpServer
    from thinkwell._values.session_options import OptionChoice, SessionOption
    from thinkwell.agents._profile import ToolTransport
    from thinkwell.questions import Answer
    from thinkwell_acp import schema as s
    from thinkwell_acp.mcp import ToolSpec

T = TypeVar("T")

OPEN_TIMEOUT: Final = 90.0
"""Seconds for an agent to open a session. Some hang when they load an old one; the slowest that were seen to
succeed took about a minute."""


class SessionPlan(Struct, frozen=True, kw_only=True):
    """How to open a session."""

    cwd: str
    mcp_servers: tuple[s.McpServer, ...] = ()
    directories: tuple[str, ...] = ()
    how: How = "new"
    source: str | None = None
    """The session to load, resume or fork."""
    result: Output[Any] | None = None
    """The output type of every typed turn, if it is always the same."""
    open_timeout: float = OPEN_TIMEOUT
    tools_via: ToolTransport | None = None
    """The transport for our tools, if it differs from the agent's."""
    model: str | None = None
    """The model to set; ``None``: the agent's own choice."""
    system: SystemPrompt | None = None
    """Instructions for the whole session."""
    bare: bool = False
    """Whether the agent is offered none of our tools. There can be no turns then."""


class Session:
    """A conversation with an agent. Created by `Agent.session`.

    Turns run one at a time, in the order in which you start them. Each may have its own tools and output
    type.
    """

    def __init__(self, starter: SessionStarter, hold: Hold) -> None:
        self._starter = starter
        self._wire = starter.wire
        self._hold = hold

    def __repr__(self) -> str:
        return f"<Session {self.id} of {self._starter.agent.host.name}>"

    @property
    def id(self) -> str:
        """The agent's id for the session.

        It may change before the first turn begins, but not later: if the agent does not fetch changed
        tools, thinkwell opens another session with the same modes and options.
        """
        assert self._wire.id is not None
        return self._wire.id

    @property
    def cwd(self) -> str:
        """The session's folder."""
        return self._wire.cwd

    @property
    def title(self) -> str | None:
        """The agent's title for the conversation."""
        return self._wire.state.title

    @property
    def commands(self) -> tuple[ev.Command, ...]:
        """The commands that you can prompt as ``/name``."""
        return self._wire.state.commands

    @property
    def usage(self) -> SessionUsage | None:
        """Tokens and cost, as last reported by the agent; ``None`` if never."""
        return self._wire.state.usage

    @property
    def modes(self) -> tuple[SessionMode, ...]:
        """The modes that the agent offers."""
        return self._wire.state.modes

    @property
    def mode(self) -> str | None:
        """The id of the current mode; ``None`` if the agent has no modes."""
        return self._wire.state.mode

    @property
    def options(self) -> tuple[SessionOption, ...]:
        """The options that you can set, in the agent's order."""
        return self._wire.state.options

    @property
    def models(self) -> tuple[OptionChoice, ...]:
        """The models that the agent offers; empty if it offers no choice."""
        return self._wire.state.models

    @property
    def model(self) -> str | None:
        """The name of the current model; ``None`` if the agent does not report it."""
        return self._wire.state.model

    async def set_model(self, model: str) -> None:
        """Change the model, even while a turn runs. If it is already set, nothing is sent.

        Args:
            model: The ``value`` or the ``name`` of one of `models`.

        Raises:
            ModelNotOffered: The agent does not offer it, or offers no choice.
            AgentError: The agent did not change it.
        """
        self._starter.check_open()
        await self._starter.agent.host.errors.call(self._wire.settings.set_model(model))

    async def set_mode(self, mode_id: str) -> None:
        """Change the mode, even while a turn runs.

        If one of the `options` is the mode, this sets that option.

        Raises:
            ValueError: The mode does not exist.
            CapabilityMissing: The agent has no modes.
            AgentError: The agent did not change it.
        """
        self._starter.check_open()
        await self._starter.agent.host.errors.call(self._wire.settings.set_mode(mode_id))

    async def set_option(self, option_id: str, value: str | bool) -> None:
        """Change an option, even while a turn runs.

        Args:
            option_id: The id of one of the `options`.
            value: The value of one of its choices, or a bool for a switch.

        Raises:
            ValueError: The option or the value does not exist.
            TypeError: The option takes a value of another type.
            CapabilityMissing: The agent has no options.
            AgentError: The agent did not change it.
        """
        self._starter.check_open()
        await self._starter.agent.host.errors.call(self._wire.settings.set_option(option_id, value))

    def fork(
        self,
        *,
        cwd: str | os.PathLike[str] | None = None,
        mcp_servers: Sequence[McpServer] = (),
        additional_directories: Sequence[str | os.PathLike[str]] = (),
        model: str | None = None,
        output: object = None,
        system: str | None = None,
        system_mode: Literal["append", "replace"] = "append",
        system_fallback: Literal["prompt"] | None = None,
        open_timeout: float = OPEN_TIMEOUT,
    ) -> Opening[Session]:
        """Open another session that begins with a copy of this conversation; see `Agent.session`.

        Args:
            cwd: The folder to work in; by default that of this session.
            mcp_servers: MCP servers for the agent, in addition to those of `open_agent`.
            additional_directories: More folders to work in.
            model: Its model, by id or name; by default that of this session.
            output: The output type, if all typed turns have the same one.
            system: Instructions for the whole session; by default those of this session.
            system_mode: See `Agent.session`.
            system_fallback: See `Agent.session`.
            open_timeout: Seconds for the agent to open the session.

        Raises:
            CapabilityMissing: The agent does not advertise this.
            McpServerError: The program of an MCP server is missing.
            ModelNotOffered: The agent does not offer that model.
            AgentError: The agent did not open it.
            NotADirectoryError: The folder does not exist.
            TypeError: The output type cannot be used.
        """
        self._starter.check_open()
        agent = self._starter.agent
        instructions = session_system(system, system_mode, system_fallback)
        if instructions is None and not agent.host.keeps_system:
            instructions = self._wire.system
        plan = session_plan(
            agent,
            cwd=self.cwd if cwd is None else cwd,
            mcp_servers=mcp_servers,
            additional_directories=additional_directories,
            sources={"fork": self.id},
            model=self._wire.state.model_id if model is None else model,
            output=output,
            system=instructions,
            open_timeout=open_timeout,
        )
        return open_session(agent, plan)

    def history(self) -> tuple[HistoryMessage, ...]:
        """Return the conversation so far as messages: prompts, thoughts, answers and tool calls, in order.

        It is complete whatever a turn's ``stream(include=…)`` keeps. Of a loaded session it contains what the
        agent repeats.
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

    def think(self, output: object = None, /, *prompt: object) -> ThinkBuilder[Any]:
        """Begin a turn; see `Agent.think`.

        Raises:
            TypeError: The output type cannot be used, or is not that of the session.
        """
        refuse_prompt(prompt, "think")
        prepared = output_type(output, "think({})")
        result = self._starter.result
        if result is not None and prepared.schema not in (None, result.schema):
            raise TypeError(
                f"this session was opened with output={result.name}; every typed turn returns that"
            )
        return ThinkBuilder(self._starter, Spec(output=prepared))

    def answer(self, question_id: str, answer: Answer, *, by: str = "human") -> None:
        """Answer any open question of the session. `ThoughtStream.answer` only takes questions of its run.

        Raises:
            QuestionNotOpen: The session has no such open question.
            AnswerInvalid: The answer does not fit the question, which stays open.
        """
        questions = self._starter.agent.questions.asker.open
        questions.answer(question_id, answer, by, session=self.id)

    async def close(self) -> None:
        """Close the session, as leaving its block does. No effect if it is already closed.

        Raises:
            WrongEventLoop: You called this outside the agent's event loop.
        """
        await self._hold.close()

    def events(self, *, include: ev.Include = "all", after: int = 0) -> AsyncIterator[ev.ThoughtEvent]:
        """Return a reader of the events between turns. It ends with the session."""
        return self._wire.outside.log.reader(ev.included(include), after)


def session_plan(
    agent: RunningAgent,
    *,
    cwd: str | os.PathLike[str] | None,
    mcp_servers: Sequence[McpServer],
    additional_directories: Sequence[str | os.PathLike[str]],
    sources: Mapping[How, str | None],
    model: str | None,
    output: object,
    system: SystemPrompt | None,
    open_timeout: float,
) -> SessionPlan:
    """Check the arguments. `sources` are the sessions to load, resume or fork, at most one of them.

    Raises:
        NotADirectoryError: The folder does not exist.
        CapabilityMissing: The agent does not support one of the MCP servers, or the system prompt.
        McpServerError: The program of an MCP server is missing.
        TypeError: The output type cannot be used, or an argument has the wrong type.
        ValueError: More than one source is given, or an argument is out of range.
    """
    result = None if output is None else output_type(output, "session(output={})")
    if result is not None and result.schema is None:
        raise TypeError("session(output=str): text needs no output type; leave it out")
    check_seconds("open_timeout", open_timeout)
    chosen: list[tuple[How, object]] = [pair for pair in sources.items() if pair[1] is not None]
    if len(chosen) > 1:
        raise ValueError(f"session({'=…, '.join(how for how, _ in chosen)}=…): give only one")
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
    if system is not None:
        check_system(agent, system, old=how != "new")
    return SessionPlan(
        cwd=folder,
        mcp_servers=servers,
        directories=tuple(path for path in dict.fromkeys(more) if path != folder),
        how=how,
        source=source,
        result=result,
        system=system,
        open_timeout=open_timeout,
        model=check_model("session", model),
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
        model=plan.model,
        system=plan.system,
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
