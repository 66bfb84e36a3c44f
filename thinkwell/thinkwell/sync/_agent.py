"""`open_agent` and `Agent`: a running agent for callers who block."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, cast, overload

from thinkwell import Agent as AsyncAgent
from thinkwell import ThinkBuilder as AsyncThinkBuilder
from thinkwell import open_agent as open_async_agent
from thinkwell._core.exit import OPEN_TIMEOUT, QUESTION_TIMEOUT
from thinkwell._core.schema.misuse import refuse_prompt
from thinkwell.sync._builder import Starter, ThinkBuilder
from thinkwell.sync._loop import hold
from thinkwell.sync._opening import Opened, Opener
from thinkwell.sync._outcomes import Outcomes
from thinkwell.sync._session import Session, start_session
from thinkwell.sync._supervisor import async_handlers

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from pydantic import TypeAdapter
    from typing_extensions import TypeForm, Unpack

    from thinkwell import AgentStatistics, AuthStatus, Opening, Provider, RunOptions, SessionInfo
    from thinkwell import events as ev
    from thinkwell._core.schema.output import Form, JsonSchema
    from thinkwell._lines.words import PromptFormat, Protocol
    from thinkwell.agents import AgentName, AgentProfile, ToolTransport
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
In = TypeVar("In")

Task: TypeAlias = "ThinkBuilder[T] | AsyncThinkBuilder[T]"
"""A task of this API, or one of `thinkwell.think`, which has no agent yet."""


def _unwrapped(task: Task[T]) -> AsyncThinkBuilder[T]:
    if isinstance(task, ThinkBuilder):
        return AsyncThinkBuilder(task._starter._starter, task._spec)
    return task


def _made(function: Callable[[In], Task[T]], given: In) -> AsyncThinkBuilder[T]:
    return _unwrapped(function(given))


class Agent(Opened[AsyncAgent]):
    """A running agent. Created by `open_agent`. You can use it from several threads at once."""

    def __init__(self, held: Held[AsyncAgent], agent: AsyncAgent) -> None:
        super().__init__(held)
        self._agent = agent

    def __repr__(self) -> str:
        return repr(self._agent)

    @property
    def name(self) -> str:
        """The name under which you opened the agent, such as ``claude``, or the name of its program."""
        return self._agent.name

    @property
    def info(self) -> s.Implementation | None:
        """The name and version that the agent reports."""
        return self._agent.info

    @property
    def capabilities(self) -> s.AgentCapabilities:
        """The capabilities that the agent advertises."""
        return self._agent.capabilities

    @property
    def launch_phases(self) -> tuple[PhaseView, ...]:
        """The phases of the agent's launch, with times in seconds since its block was entered."""
        return self._agent.launch_phases

    @property
    def auth_methods(self) -> tuple[AuthMethod, ...]:
        """The login methods that the agent offers, whether or not it requires a login."""
        return self._agent.auth_methods

    @property
    def questions(self) -> tuple[Question, ...]:
        """The open questions of the agent, in all its sessions."""
        return self._held.loop.ask(lambda: self._agent.questions)

    def statistics(self) -> AgentStatistics:
        """Return statistics of the agent's current work: its runs, their events, and its open questions."""
        return self._held.loop.ask(lambda: self._agent.statistics())

    def answer(self, question_id: str, answer: Answer, *, by: str = "human") -> None:
        """Answer any open question of the agent. `ThoughtStream.answer` only takes questions of its run.

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

    def think(self, output: object = None, /, *prompt: object) -> ThinkBuilder[Any]:
        """Begin a task in a new session.

        Args:
            output: The type of the result: a pydantic model, dataclass, TypedDict, list, scalar, Literal or
                union of those; a `pydantic.TypeAdapter`, for type checkers that do not know `TypeForm`; a
                `JsonSchema`; or nothing (or ``str``) for the text of the agent's last message.
            prompt: Nothing. The prompt follows, as in ``think(Model).text("…")``.

        Raises:
            TypeError: The output type cannot be used; the message says what to give instead.
        """
        refuse_prompt(prompt, "think")
        builder = self._agent.think(cast("type[Any]", output))
        return ThinkBuilder(Starter(self._held.loop, builder._starter, self), builder._spec)

    def map(
        self,
        task: Task[T] | Callable[[In], Task[T]],
        inputs: Iterable[In],
        *,
        limit: int = 4,
        ordered: bool = False,
        **options: Unpack[RunOptions],
    ) -> Outcomes[In, T]:
        """Run a task for each of many inputs, each in a session of its own, and return their outcomes.

        For example:

            for outcome in agent.map(thinkwell.think(Review).text("Review "), files):
                print(outcome.input, outcome.error or outcome.result)

        Args:
            task: The task, to which each input is added by ``.text(str(input))``; or a function that returns
                the task of an input. It is called in the library's thread.
            inputs: The inputs. They are read as runs start, in the library's thread: a generator must not
                block.
            limit: How many runs go on at a time.
            ordered: Deliver the outcomes in the order of the inputs; by default as the runs end.
            options: Those of `ThinkBuilder.stream`, for each run. All share the `budget`.

        Raises:
            TypeError: An argument has the wrong type.
            ValueError: The limit is less than 1.
            AgentClosed: The agent was closed.
        """
        loop, agent = self._held.loop, self._agent
        made = partial(_made, task) if callable(task) else _unwrapped(task)
        outcomes = loop.ask(lambda: agent.map(made, inputs, limit=limit, ordered=ordered, **options))
        return Outcomes(loop, outcomes, self)

    def session(
        self,
        *,
        cwd: str | os.PathLike[str] | None = None,
        mcp_servers: Sequence[McpServer] = (),
        additional_directories: Sequence[str | os.PathLike[str]] = (),
        load: str | None = None,
        resume: str | None = None,
        fork: str | None = None,
        model: str | None = None,
        output: object = None,
        system: str | None = None,
        system_mode: Literal["append", "replace"] = "append",
        system_fallback: Literal["prompt"] | None = None,
        open_timeout: float = OPEN_TIMEOUT,
    ) -> Opener[Session]:
        """Open a session of many turns: a new one, or one that the agent remembers.

        Open it with ``with agent.session(…) as session:`` or ``agent.session(…).start()``, which raise its
        errors. If an old session cannot be opened, this raises an error; it never opens a new one instead.

        Args:
            cwd: The folder to work in; by default that of `open_agent`. For an old session, the folder in
                which it began.
            mcp_servers: MCP servers for the agent, in addition to those of `open_agent`.
            additional_directories: More folders to work in. An agent does not remember them: pass them
                again for an old session.
            load: The id of an old session to continue. The agent repeats what was said, on
                `Session.events`.
            resume: The same, without repeating it.
            fork: The id of a session to copy.
            output: The output type, if all typed turns have the same one: the agent then sees its schema in
                the tool instead of in each prompt.
            model: The model, by id or name, even for an old session; by default that of `open_agent`, else
                the agent's own choice. `Session.models` lists the offered ones.
            system: Instructions for the whole session (ACP's system prompt). Give them again for an old
                session, unless the agent is known to keep them: then that is an error.
            system_mode: ``append`` adds them to the agent's own; ``replace`` uses them instead of its own.
            system_fallback: ``prompt`` puts them before the first prompt if the agent does not support them
                in this mode. Without it, that is an error.
            open_timeout: Seconds for the agent to open the session.

        Raises:
            CapabilityMissing: The agent does not advertise this. Nothing was sent.
            ModelNotOffered: The agent does not offer that model. No prompt was sent.
            McpServerError: The program of an MCP server is missing.
            SessionNotOpened: The agent answered with an error.
            SessionOpenTimeout: The agent did not answer in time.
            SessionInUse: The old session is already open.
            AgentError: The agent did not open it for another reason.
            NotADirectoryError: The folder does not exist.
            TypeError: The output type cannot be used, or an argument has the wrong type.
            ValueError: An argument is invalid, or you passed more than one of `load`, `resume` and `fork`.
        """
        manager = partial(
            self._agent.session,
            cwd=cwd,
            mcp_servers=mcp_servers,
            additional_directories=additional_directories,
            load=load,
            resume=resume,
            fork=fork,
            model=model,
            output=output,
            system=system,
            system_mode=system_mode,
            system_fallback=system_fallback,
            open_timeout=open_timeout,
        )
        return Opener(partial(start_session, manager, self._held, self))

    def kill(self) -> None:
        """Kill the agent's processes at once. Use it if closing the agent takes too long.

        Its runs fail with `AgentExited`. If thinkwell did not start the agent, it closes the connection.
        """
        self._held.loop.ask(self._agent.kill)

    def list_sessions(self, cwd: str | os.PathLike[str] | None = None) -> list[SessionInfo]:
        """Return the sessions that the agent remembers, in the agent's order.

        Args:
            cwd: Only sessions of this folder.

        Raises:
            CapabilityMissing: The agent does not advertise this. Nothing was sent.
            AgentError: The agent did not list them.
        """
        return self._call(lambda: self._agent.list_sessions(cwd))

    def delete_session(self, session_id: str) -> None:
        """Make the agent forget a session. An unknown session is not an error (ACP, Session Delete).

        Raises:
            CapabilityMissing: The agent does not advertise this. Nothing was sent.
            AgentError: The agent did not delete it.
        """
        self._call(lambda: self._agent.delete_session(session_id))

    def auth_status(self) -> AuthStatus | None:
        """Return the agent's login status, as last reported; ``None`` if it was never reported.

        Agents report it when a session is opened, and when it changes.

        Raises:
            CapabilityMissing: The agent does not advertise ``_meta.authStatus``, which is not part of ACP.
        """
        return self._held.loop.ask(self._agent.auth_status)

    def logout(self) -> None:
        """Log out of the model service. Requests that need a login are refused from then on.

        Raises:
            CapabilityMissing: The agent does not advertise this. Nothing was sent.
            AgentError: The agent did not log out.
        """
        self._call(self._agent.logout)

    def providers(self) -> list[Provider]:
        """Return the model services that the agent can use.

        Raises:
            CapabilityMissing: The agent does not advertise this. Nothing was sent.
            AgentError: The agent did not list them.
        """
        return self._call(self._agent.providers)

    def use_provider(
        self, provider_id: str, /, *, api_type: str, base_url: str, headers: Mapping[str, str] | None = None
    ) -> None:
        """Set the address to which the agent sends a provider's requests, from its next session on.

        Args:
            provider_id: The id of one of the `providers`.
            api_type: The API there: one of its ``api_types``.
            base_url: The address.
            headers: Sent with each request; they replace all earlier ones.

        Raises:
            CapabilityMissing: The agent does not advertise this. Nothing was sent.
            AgentError: The agent did not change it.
        """
        self._call(
            lambda: self._agent.use_provider(
                provider_id, api_type=api_type, base_url=base_url, headers=headers
            )
        )

    def authenticate(self, method_id: str) -> None:
        """Log in with a method of type ``agent``, such as in a browser.

        Args:
            method_id: Its id, as in `LoginRequired.methods`.

        Raises:
            CapabilityMissing: The agent does not offer the method, or it is for a terminal: see `login`.
            LoginFailed: The login failed.
            AgentError: The agent has ended.
        """
        self._call(lambda: self._agent.authenticate(method_id))


def open_agent(
    agent: AgentName | str | AgentProfile | None = None,
    /,
    *,
    command: str | Sequence[str] | None = None,
    transport: Transport | AbstractAsyncContextManager[Transport] | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | AbstractAsyncContextManager[str | os.PathLike[str]] | None = None,
    permissions: PermissionMode | PermissionPolicy | None = None,
    on_question: QuestionHandler | Sequence[QuestionHandler] | None = None,
    question_timeout: float = QUESTION_TIMEOUT,
    workspace: Workspace | None = None,
    mcp_servers: Sequence[McpServer] = (),
    tools_via: ToolTransport | None = None,
    login: str | None = None,
    model: str | None = None,
    startup_timeout: float = 60,
    keep_daemons: bool = False,
    record: str | os.PathLike[str] | None = None,
    on_phase: Callable[[ev.PhaseChanged], None] | None = None,
    protocol: Protocol = "acp",
    init: Mapping[str, ev.JsonValue] | None = None,
    prompt_format: PromptFormat = "text",
    fallback: Sequence[AgentName | str | AgentProfile | Opening[object]] | None = None,
    fallback_after_effects: bool = False,
) -> Opener[Agent]:
    """Start an agent, or connect to one, with a ``with`` block or ``open_agent(…).start()``.

    Leaving the block, or `Agent.close`, cancels the runs and ends the agent's process with everything it
    started. At the latest, this happens when the main thread ends.

    The arguments and errors are those of `thinkwell.open_agent`; the errors are raised when you open it.
    Plain functions that you pass (`on_question`, tools) may block; ``async`` ones and `on_phase` must not.
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
        model=model,
        startup_timeout=startup_timeout,
        keep_daemons=keep_daemons,
        record=record,
        on_phase=on_phase,
        protocol=protocol,
        init=init,
        prompt_format=prompt_format,
        fallback=fallback,
        fallback_after_effects=fallback_after_effects,
    )
    return Opener(partial(_start, manager))


def _start(manager: Callable[[], AbstractAsyncContextManager[AsyncAgent]]) -> Agent:
    return Agent(*hold(manager, kill=AsyncAgent.kill))
