"""`open_agent` and `Agent`: an agent that runs, and what to ask of it, for callers who block."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from thinkwell import Agent as AsyncAgent
from thinkwell import open_agent as open_async_agent
from thinkwell._core.exit import OPEN_TIMEOUT, QUESTION_TIMEOUT
from thinkwell.sync._builder import Starter, ThinkBuilder
from thinkwell.sync._loop import hold
from thinkwell.sync._opening import Opened, Opener
from thinkwell.sync._session import Session, start_session
from thinkwell.sync._supervisor import async_handlers

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from pydantic import TypeAdapter
    from typing_extensions import TypeForm

    from thinkwell import AgentStatistics, SessionInfo
    from thinkwell import events as ev
    from thinkwell._core.schema.output import Form, JsonSchema
    from thinkwell._lines.words import PromptFormat, Protocol
    from thinkwell.agents import AgentProfile, ToolTransport
    from thinkwell.errors import AuthMethod
    from thinkwell.mcp_servers import McpServer
    from thinkwell.permissions import PermissionMode, PermissionPolicy
    from thinkwell.questions import Answer, Question, QuestionHandler
    from thinkwell.sync._loop import Held
    from thinkwell.view import PhaseView
    from thinkwell.workspace import Workspace
    from thinkwell_acp import Transport
    from thinkwell_acp import schema as s

T = TypeVar("T")


class Agent(Opened[AsyncAgent]):
    """A running agent. Made by `open_agent`. It may be used in several threads at once."""

    def __init__(self, held: Held[AsyncAgent], agent: AsyncAgent) -> None:
        super().__init__(held)
        self._agent = agent

    def __repr__(self) -> str:
        return repr(self._agent)

    @property
    def name(self) -> str:
        """What the agent was asked for as, such as ``claude``, or the name of its program."""
        return self._agent.name

    @property
    def info(self) -> s.Implementation | None:
        """Name and version that the agent gives of itself."""
        return self._agent.info

    @property
    def capabilities(self) -> s.AgentCapabilities:
        """What the agent advertises."""
        return self._agent.capabilities

    @property
    def launch_phases(self) -> tuple[PhaseView, ...]:
        """How the agent was launched, with times in seconds from when `open_agent` was entered."""
        return self._agent.launch_phases

    @property
    def auth_methods(self) -> tuple[AuthMethod, ...]:
        """The ways to log in that the agent offers, whether it wants a login or not."""
        return self._agent.auth_methods

    @property
    def questions(self) -> tuple[Question, ...]:
        """What the agent waits to be answered, in all of its sessions."""
        return self._held.loop.ask(lambda: self._agent.questions)

    def statistics(self) -> AgentStatistics:
        """Return what the agent is doing, in figures: its runs, their events, and its open questions."""
        return self._held.loop.ask(lambda: self._agent.statistics())

    def answer(self, question_id: str, answer: Answer, *, by: str = "human") -> None:
        """Answer any open question of the agent's. See `ThoughtStream.answer`, which takes its run's alone.

        Raises:
            QuestionNotOpen: The agent has no such open question.
            AnswerInvalid: The answer does not fit the question, which stays open.
        """
        self._held.loop.ask(lambda: self._agent.answer(question_id, answer, by=by))

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
        """Begin a task, in a session of its own.

        Args:
            output: What the result is: a pydantic model, dataclass, TypedDict, list, scalar, Literal or
                union of those; a `pydantic.TypeAdapter`, for type checkers that do not know `TypeForm`; a
                `JsonSchema`; or nothing (or ``str``) for the text of the agent's last message.

        Raises:
            TypeError: The output type cannot be used; the message says what to give instead.
        """
        builder = self._agent.think(cast("type[Any]", output))
        return ThinkBuilder(Starter(self._held.loop, builder._starter, self), builder._spec)

    def session(
        self,
        *,
        cwd: str | os.PathLike[str] | None = None,
        mcp_servers: Sequence[McpServer] = (),
        additional_directories: Sequence[str | os.PathLike[str]] = (),
        load: str | None = None,
        resume: str | None = None,
        fork: str | None = None,
        output: object = None,
        open_timeout: float = OPEN_TIMEOUT,
    ) -> Opener[Session]:
        """Open a conversation of many turns: a new one, or one that the agent remembers.

        It is opened by ``with agent.session(…) as session:``, or by ``agent.session(…).start()``; what goes
        wrong is raised there. An old one that cannot be opened is an error; it never becomes a new one.

        Args:
            cwd: The folder to work in; by default that of `open_agent`. For an old session it must be the
                folder that it was begun in.
            mcp_servers: MCP servers for the agent, beside those of `open_agent`.
            additional_directories: More folders to work in. An agent does not remember them: give them
                again for an old session.
            load: The id of an old session to go on with. The agent repeats what was said, on
                `Session.events`.
            resume: The same, without repeating it.
            fork: The id of a session to begin with a copy of.
            output: The output type of every typed turn, where it is always the same one: the agent then
                sees its schema in the tool, and not in each prompt.
            open_timeout: Seconds until the agent has opened it.

        Raises:
            CapabilityMissing: The agent does not advertise that. Nothing was sent.
            McpServerError: The program of an MCP server is not there.
            SessionNotOpened: The agent answered with an error.
            SessionOpenTimeout: The agent did not answer in time.
            SessionInUse: The old session is open already.
            AgentError: The agent did not open it for another reason.
            NotADirectoryError: There is no such folder.
            TypeError: The output type cannot be used, or an argument is of another type.
            ValueError: More than one of `load`, `resume` and `fork` is given.
        """
        manager = partial(
            self._agent.session,
            cwd=cwd,
            mcp_servers=mcp_servers,
            additional_directories=additional_directories,
            load=load,
            resume=resume,
            fork=fork,
            output=output,
            open_timeout=open_timeout,
        )
        return Opener(partial(start_session, manager, self._held, self))

    def kill(self) -> None:
        """Kill the agent's processes at once, without asking it: for when closing it takes too long.

        Its runs fail with `AgentExited`. Where it was not started by us, the connection is closed.
        """
        self._held.loop.ask(self._agent.kill)

    def list_sessions(self, cwd: str | os.PathLike[str] | None = None) -> list[SessionInfo]:
        """Return the sessions that the agent remembers, in its order.

        Args:
            cwd: Only those of this folder.

        Raises:
            CapabilityMissing: The agent does not advertise that. Nothing was sent.
            AgentError: It did not tell.
        """
        return self._call(lambda: self._agent.list_sessions(cwd))

    def delete_session(self, session_id: str) -> None:
        """Make the agent forget a session. One that it does not know is no error (ACP, Session Delete).

        Raises:
            CapabilityMissing: The agent does not advertise that. Nothing was sent.
            AgentError: It did not forget it.
        """
        self._call(lambda: self._agent.delete_session(session_id))

    def authenticate(self, method_id: str) -> None:
        """Log in by a way that the agent offers and goes by itself, such as in a browser.

        Args:
            method_id: Its id, as in `LoginRequired.methods`.

        Raises:
            CapabilityMissing: It does not offer that, or the way is one for a terminal: see `login`.
            LoginFailed: It did not work.
            AgentError: The agent is gone.
        """
        self._call(lambda: self._agent.authenticate(method_id))


def open_agent(
    agent: str | AgentProfile | None = None,
    /,
    *,
    command: str | Sequence[str] | None = None,
    transport: Transport | AbstractAsyncContextManager[Transport] | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    permissions: PermissionMode | PermissionPolicy | None = None,
    on_question: QuestionHandler | Sequence[QuestionHandler] | None = None,
    question_timeout: float = QUESTION_TIMEOUT,
    workspace: Workspace | None = None,
    mcp_servers: Sequence[McpServer] = (),
    tools_via: ToolTransport | None = None,
    login: str | None = None,
    startup_timeout: float = 60,
    keep_daemons: bool = False,
    record: str | os.PathLike[str] | None = None,
    on_phase: Callable[[ev.PhaseChanged], None] | None = None,
    protocol: Protocol = "acp",
    init: Mapping[str, ev.JsonValue] | None = None,
    prompt_format: PromptFormat = "text",
) -> Opener[Agent]:
    """Start an agent, or connect to one, for the time of a block; or by ``open_agent(…).start()``.

    Leaving the block, or `Agent.close`, cancels what runs and ends the agent's process with everything that
    it has started. So does the end of the main thread, where it was not done.

    The arguments and errors are those of `thinkwell.open_agent`; the errors are raised when it is opened.
    What is called here (`on_question`, tools) may block, as long as it is not written with ``async``;
    `on_phase` may not.
    """
    manager = partial(
        open_async_agent,
        agent,
        command=command,
        transport=transport,
        env=env,
        cwd=cwd,
        permissions=permissions,
        on_question=async_handlers(on_question),
        question_timeout=question_timeout,
        workspace=workspace,
        mcp_servers=mcp_servers,
        tools_via=tools_via,
        login=login,
        startup_timeout=startup_timeout,
        keep_daemons=keep_daemons,
        record=record,
        on_phase=on_phase,
        protocol=protocol,
        init=init,
        prompt_format=prompt_format,
    )
    return Opener(partial(_start, manager))


def _start(manager: Callable[[], AbstractAsyncContextManager[AsyncAgent]]) -> Agent:
    return Agent(*hold(manager, kill=AsyncAgent.kill))
