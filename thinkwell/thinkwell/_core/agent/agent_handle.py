"""`open_agent` and `Agent`: a running agent, and its methods."""

from __future__ import annotations

import logging
import os
import sys
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, overload

import anyio

from thinkwell._core.agent.account import AuthStatus, Provider, as_provider
from thinkwell._core.agent.agent import AgentLine, AgentSetup, RunningAgent
from thinkwell._core.agent.arguments import check_model, check_protocol, check_types, check_way
from thinkwell._core.agent.initialize import initialize
from thinkwell._core.agent.launch import Launcher, LaunchLog
from thinkwell._core.agent.opening import Hold, Opening
from thinkwell._core.agent.outcomes import mapped
from thinkwell._core.agent.runs import Runs
from thinkwell._core.agent.session_handle import (
    OPEN_TIMEOUT,
    Session,
    open_session,
    session_plan,
)
from thinkwell._core.agent.session_list import listed_sessions
from thinkwell._core.agent.starters import AgentStarter
from thinkwell._core.agent.stderr import StderrLines
from thinkwell._core.log.log_lines import log_fields
from thinkwell._core.policy.permissions import PermissionMode, PermissionPolicy
from thinkwell._core.protocol.dialect import Dialect
from thinkwell._core.protocol.mcp_servers import McpServers, check_reachable
from thinkwell._core.questions.asker import QUESTION_TIMEOUT, Asker
from thinkwell._core.schema.arguments import check_seconds
from thinkwell._core.schema.misuse import hints, refuse_prompt
from thinkwell._core.schema.output import output_type
from thinkwell._core.task.builder import Spec, ThinkBuilder
from thinkwell._core.task.system_prompt import session_system
from thinkwell._core.tracing.run_logging import RunLogging, shown
from thinkwell._core.tracing.telemetry import Telemetry
from thinkwell._values.folders import existing_folder
from thinkwell.agents._choosing import TRACE_VARIABLE, choose, environment
from thinkwell.agents._profile import AgentProfile, advising
from thinkwell.errors import AgentReported, AnswerUnreadable, CapabilityMissing, LoginFailed, LoginRequired
from thinkwell_acp import Client, StdioTransport, connect
from thinkwell_acp import schema as s
from thinkwell_acp._framing import MAX_LINE
from thinkwell_acp._tasks import background_tasks

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence

    from pydantic import TypeAdapter
    from typing_extensions import TypeForm, Unpack

    from thinkwell import events as ev
    from thinkwell._core.agent.incoming import Incoming
    from thinkwell._core.agent.outcomes import Outcomes, RunOptions
    from thinkwell._core.agent.runs import AgentStatistics
    from thinkwell._core.log.observers import Observer
    from thinkwell._core.schema.output import Form, JsonSchema
    from thinkwell._core.session.state import SessionInfo
    from thinkwell._core.tracing.content import Redaction
    from thinkwell._lines.words import PromptFormat, Protocol
    from thinkwell._mcp.servers import McpServer
    from thinkwell._recording._recorder import Recorder
    from thinkwell._workspace.workspace import Workspace
    from thinkwell.agents._names import AgentName
    from thinkwell.agents._profile import ToolTransport
    from thinkwell.errors import AuthMethod
    from thinkwell.questions import Answer, Question, QuestionHandler
    from thinkwell.view import PhaseView
    from thinkwell_acp import Transport
    from thinkwell_acp._tasks import BackgroundTasks

logger = logging.getLogger("thinkwell")

T = TypeVar("T")
In = TypeVar("In")


@hints(
    __await__="an agent cannot be awaited: write `await agent.think(…).text(…).run()`",
    __aenter__="the agent is open: use it in the block of `async with open_agent(…) as agent:`",
    __aexit__="",
    __aiter__="an agent has no events: write `async for event in agent.think(…).text(…).stream()`",
)
class Agent:
    """A running agent. Created by `open_agent`."""

    def __init__(self, agent: RunningAgent, hold: Hold) -> None:
        self._agent = agent
        self._hold = hold
        self._starter = AgentStarter(agent)

    def __repr__(self) -> str:
        return f"<Agent {self.name}>"

    @property
    def name(self) -> str:
        """The name under which you opened the agent, such as ``claude``, or the name of its program."""
        return self._agent.host.name

    @property
    def info(self) -> s.Implementation | None:
        """The name and version that the agent reports."""
        return self._agent.client.agent.agent_info

    @property
    def capabilities(self) -> s.AgentCapabilities:
        """The capabilities that the agent advertises."""
        return self._agent.client.capabilities

    @property
    def launch_phases(self) -> tuple[PhaseView, ...]:
        """The phases of the agent's launch, with times in seconds since its block was entered."""
        return self._agent.host.launch_log.views()

    @property
    def auth_methods(self) -> tuple[AuthMethod, ...]:
        """The login methods that the agent offers, whether or not it requires a login."""
        return self._agent.host.errors.methods

    @property
    def questions(self) -> tuple[Question, ...]:
        """The open questions of the agent, in all its sessions."""
        return self._agent.questions.asker.open.waiting

    def statistics(self) -> AgentStatistics:
        """Return statistics of the agent's current work: its runs, their events, and its open questions."""
        return self._agent.statistics()

    def answer(self, question_id: str, answer: Answer, *, by: str = "human") -> None:
        """Answer any open question of the agent. `ThoughtStream.answer` only takes questions of its run.

        Raises:
            QuestionNotOpen: The agent has no such open question.
            AnswerInvalid: The answer does not fit the question, which stays open.
        """
        self._agent.questions.asker.open.answer(question_id, answer, by)

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
        return ThinkBuilder(self._starter, Spec(output=output_type(output, "think({})")))

    def map(
        self,
        task: ThinkBuilder[T] | Callable[[In], ThinkBuilder[T]],
        inputs: Iterable[In],
        *,
        limit: int = 4,
        ordered: bool = False,
        **options: Unpack[RunOptions],
    ) -> Outcomes[In, T]:
        """Run a task for each of many inputs, each in a session of its own, and return their outcomes.

        For example:

            async for outcome in agent.map(thinkwell.think(Review).text("Review "), files):
                print(outcome.input, outcome.error or outcome.result)

        Args:
            task: The task, to which each input is added by ``.text(str(input))``; or a function that returns
                the task of an input.
            inputs: The inputs. They are read as runs start.
            limit: How many runs go on at a time.
            ordered: Deliver the outcomes in the order of the inputs; by default as the runs end.
            options: Those of `ThinkBuilder.stream`, for each run. All share the `budget`.

        Raises:
            TypeError: An argument has the wrong type.
            ValueError: The limit is less than 1.
            AgentClosed: You have left the agent's block.
        """
        return mapped(task, inputs, self._agent, self._starter, options, limit=limit, ordered=ordered)

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
    ) -> Opening[Session]:
        """Open a session of many turns: a new one, or one that the agent remembers.

        If an old session cannot be opened, this raises an error; it never opens a new one instead.

        Args:
            cwd: The folder to work in; by default that of `open_agent`. For an old session, the folder in
                which it began.
            mcp_servers: MCP servers for the agent, in addition to those of `open_agent`.
            additional_directories: More folders to work in. An agent does not remember them: pass them
                again for an old session.
            load: The id of an old session to continue. The agent repeats the conversation on
                `Session.events`.
            resume: The same, without repeating it.
            fork: The id of a session to copy.
            output: The output type, if all typed turns have the same one: the agent then sees its schema in
                the tool instead of in each prompt.
            model: The model, by id or name, even for an old session; by default that of `open_agent`, else
                the agent's own choice. `Session.models` lists the offered ones.
            system: Instructions for the whole session (ACP's system prompt). An agent does not remember
                them: give them again for an old session.
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
        plan = session_plan(
            self._agent,
            cwd=cwd,
            mcp_servers=mcp_servers,
            additional_directories=additional_directories,
            sources={"load": load, "resume": resume, "fork": fork},
            model=self._agent.setup.model if model is None else model,
            output=output,
            system=session_system(system, system_mode, system_fallback),
            open_timeout=open_timeout,
        )
        return open_session(self._agent, plan)

    async def close(self) -> None:
        """Close the agent, as leaving its block does. No effect if it is already closed.

        Raises:
            WrongEventLoop: You called this outside the agent's event loop.
        """
        await self._hold.close()

    def kill(self) -> None:
        """Kill the agent's processes at once. Use it if leaving the block takes too long.

        Its runs fail with `AgentExited`. If thinkwell did not start the agent, it closes the connection.
        """
        if self._agent.client.connection.error is None:
            self._agent.host.owner.check()
        self._agent.kill("agent.kill() was called")

    async def list_sessions(self, cwd: str | os.PathLike[str] | None = None) -> list[SessionInfo]:
        """Return the sessions that the agent remembers, in the agent's order.

        Args:
            cwd: Only sessions of this folder.

        Raises:
            CapabilityMissing: The agent does not advertise this. Nothing was sent.
            AgentError: The agent did not list them.
        """
        self._agent.check_open()
        return await self._agent.host.errors.call(listed_sessions(self._agent, cwd))

    async def delete_session(self, session_id: str) -> None:
        """Make the agent forget a session. An unknown session is not an error (ACP, Session Delete).

        Raises:
            CapabilityMissing: The agent does not advertise this. Nothing was sent.
            AgentError: The agent did not delete it.
        """
        self._agent.check_open()
        await self._agent.host.errors.call(
            self._agent.client.delete_session(s.DeleteSessionRequest(session_id=session_id))
        )

    def auth_status(self) -> AuthStatus | None:
        """Return the agent's login status, as last reported; ``None`` if it was never reported.

        Agents report it when a session is opened, and when it changes.

        Raises:
            CapabilityMissing: The agent does not advertise ``_meta.authStatus``, which is not part of ACP.
        """
        if (self.capabilities.meta or {}).get("authStatus") is None:
            with self._agent.host.errors.advising():
                raise CapabilityMissing("_meta.authStatus", "auth_status()")
        return self._agent.incoming.auth_status

    async def logout(self) -> None:
        """Log out of the model service. Requests that need a login are refused from then on.

        Raises:
            CapabilityMissing: The agent does not advertise this. Nothing was sent.
            AgentError: The agent did not log out.
        """
        self._agent.check_open()
        await self._agent.host.errors.call(self._agent.client.logout())

    async def providers(self) -> list[Provider]:
        """Return the model services that the agent can use.

        Raises:
            CapabilityMissing: The agent does not advertise this. Nothing was sent.
            AgentError: The agent did not list them.
        """
        self._agent.check_open()
        answer = await self._agent.host.errors.call(self._agent.client.list_providers())
        return [as_provider(info) for info in answer.providers]

    async def use_provider(
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
        self._agent.check_open()
        request = s.SetProviderRequest(
            provider_id=provider_id, api_type=api_type, base_url=base_url, headers=dict(headers or {})
        )
        await self._agent.host.errors.call(self._agent.client.set_provider(request))

    async def authenticate(self, method_id: str) -> None:
        """Log in with a method of type ``agent``, such as in a browser.

        Args:
            method_id: Its id, as in `LoginRequired.methods`.

        Raises:
            CapabilityMissing: The agent does not offer the method, or it is for a terminal: see `login`.
            LoginFailed: The login failed.
            AgentError: The agent has ended.
        """
        self._agent.check_open()
        with self._agent.host.errors.advising():
            try:
                await self._agent.host.errors.call(self._agent.authenticate(method_id))
            except (AgentReported, AnswerUnreadable, LoginRequired) as exc:
                raise LoginFailed(self.name, method_id, str(exc.__cause__)) from exc.__cause__


def open_agent(
    agent: AgentName | str | AgentProfile | None = None,
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
    model: str | None = None,
    startup_timeout: float = 60,
    keep_daemons: bool = False,
    record: str | os.PathLike[str] | None = None,
    on_phase: Callable[[ev.PhaseChanged], None] | None = None,
    protocol: Protocol = "acp",
    init: Mapping[str, ev.JsonValue] | None = None,
    prompt_format: PromptFormat = "text",
) -> Opening[Agent]:
    """Start an agent, or connect to one, with an ``async with`` block.

    Leaving the block cancels the runs and ends the agent's process with everything it started.
    If you cannot use a block, call ``await open_agent(…).start()``, and later `Agent.close`.

    Args:
        agent: A known agent, such as ``builtin``, ``claude``, ``codex`` or ``gemini``: see
            `thinkwell.agents.known_agents`. ``claude@latest`` and ``claude@0.100.0`` name other versions
            than its profile. Or a profile. With neither an agent nor a command, the environment
            decides (``THINKWELL_AGENT_CMD``, then ``THINKWELL_AGENT``), else you get the built-in agent.
        command: The command of any other agent: a sequence, or a line that is split as in a shell,
            without running one. With `agent`, it replaces the command in that agent's profile; the rest of
            the profile still applies.
        transport: A transport to a running agent, or an async context manager that opens one.
        env: Variables in addition to your environment.
        cwd: The folder in which the agent works; by default the current one.
        permissions: What the agent may do when it asks: ``deny`` (only call our own tools), ``ask``
            (`on_question` decides), ``allow`` (anything), or a `PermissionPolicy`. The default is ``ask``
            with an `on_question`, and in a run with a listener (`ThinkBuilder.listen`); else ``deny``.
        on_question: Answers open questions: a function, or several, asked in order. They also fill in
            forms, which the agent is offered only if there is a handler. Without it, questions that
            ``permissions="ask"`` or a policy leaves open wait for `ThoughtStream.answer`; in a run with a
            listener they are declined. `wait_for_answer` waits in both cases.
        question_timeout: Seconds until an unanswered question is denied.
        workspace: Files and terminals that the agent may use through thinkwell; none by default.
        mcp_servers: MCP servers for every session, in addition to your tools: `McpStdio`, `McpHttp`,
            `McpSse`, or those of a file (`load_mcp_servers`).
        tools_via: The transport for your tools, ``acp``, ``http`` or ``stdio``, instead of the simplest one
            that the agent offers.
        login: The id of a login method of type ``agent``, to use when the agent asks for a login. Runs that
            wait for it share one login. Refused requests are then repeated.
        model: The model of every session, by id or name: ``opus``. By default the agent chooses. The agent
            says which models it has when a session is opened: `Session.models`, and
            ``thinkwell agents show NAME``. With a model that it does not offer, runs and sessions fail with
            `ModelNotOffered`, before a prompt is sent.
        startup_timeout: Seconds for the agent to answer its first request. Its installation, if needed,
            has its own limit: ``cold_start`` in its profile.
        keep_daemons: Leave processes running that have left the process group of the agent, or of a
            command of the workspace, such as a server started in the background. By default they end
            too, on Linux. On macOS they always stay, and on Windows they always end.
        record: A file to record everything in, for `replay`: all messages in both directions, and
            the results. Secrets are removed. Without it, the environment variable
            ``THINKWELL_TRACE`` may name a folder for such files.
        on_phase: Called with each phase of the launch when it begins, with the time since the block was
            entered. The first run's log and `Agent.launch_phases` have them too.
        protocol: The agent's protocol: ``acp``, or ``ndjson`` for a program that writes one JSON object per
            line, and reads its prompts and answers line by line. Pass `command` or `transport` with it.
        init: Parameters for an NDJSON program, which has to acknowledge them first.
        prompt_format: How an NDJSON program gets its prompts: ``text``, as one line in which line ends are
            escaped, or ``json``, as an object with ``prompt`` and ``context``.

    Raises:
        AgentNotFound: The agent is unknown, or its program is missing.
        ProfileError: The agent's profile cannot be read.
        AgentStartFailed: The agent was started, but did not become ready.
        LoginRequired: It requires a login before that, or does not offer the method of `login`.
        CapabilityMissing: It does not support the kind of one of the MCP servers.
        McpServerError: The program of an MCP server is missing.
        NotADirectoryError: The folder does not exist.
        OSError: The file for the recording cannot be written.
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of range, or contradicts another.
    """
    check_types(
        agent=agent,
        command=command,
        env=env,
        on_question=on_question,
        workspace=workspace,
        record=record,
        on_phase=on_phase,
    )
    if transport is not None and command is not None:
        raise ValueError("open_agent(command=…, transport=…): give a command or a connection, not both")
    if isinstance(agent, AgentProfile) or transport is None:
        profile = choose(agent, command)
        name = profile.name
    else:
        profile, name = None, agent or "agent"
    others = {"mcp_servers": mcp_servers, "workspace": workspace, "tools_via": tools_via, "login": login}
    speaks_lines = check_protocol(
        protocol,
        init=init,
        prompt_format=prompt_format,
        agent=agent,
        named=command is not None or transport is not None,
        others={**others, "model": check_model("open_agent", model)},
    )
    folder = existing_folder(cwd or ".", "open_agent(cwd=…)")
    handlers = _handlers(permissions, on_question)
    check_way(tools_via)
    check_seconds("question_timeout", question_timeout)
    check_seconds("startup_timeout", startup_timeout)
    if permissions is None and handlers:
        permissions = "ask"
    asker = Asker(policy=permissions, handlers=handlers, timeout=question_timeout)
    variables = environment(profile, env)
    servers = McpServers(mcp_servers, variables.get("PATH"))
    service = None
    if workspace is not None:
        from thinkwell._workspace.service import WorkspaceService  # imports the running of commands

        service = WorkspaceService(workspace, cwd=folder, env=variables, keep_daemons=keep_daemons)

    dialect: Dialect = Dialect()
    if speaks_lines:
        from thinkwell._lines._dialect import LineDialect

        dialect = LineDialect(takes_meta=prompt_format == "json")
    setup = AgentSetup(
        name=name,
        cwd=folder,
        dialect=dialect,
        asker=asker,
        mcp_servers=servers,
        tools_via=tools_via,
        workspace=service,
        login=login,
        model=model,
        profile=profile,
        redaction=partial(_redaction, variables),
    )

    def translated(pipe: Transport, tasks: BackgroundTasks) -> tuple[Transport, int]:
        """Return the transport of the protocol, and its longest line."""
        if not speaks_lines:
            return pipe, MAX_LINE
        from thinkwell._lines._transport import LineTransport  # only for NDJSON agents

        line = LineTransport(pipe, tasks, name=name, init=init, prompt_format=prompt_format)
        return line, sys.maxsize  # a message may be many times as long as its line, which has its own limit

    def recording() -> Recorder | None:
        if record is None and not os.environ.get(TRACE_VARIABLE):
            return None
        from thinkwell._recording._recorder import recorder_of  # imports the search for secrets

        return recorder_of(
            record,
            agent=name,
            command=() if profile is None else profile.command,
            cwd=folder,
            environment=variables,
        )

    def opened(hold: Hold) -> AbstractAsyncContextManager[Agent]:
        log = LaunchLog(on_phase)
        pipe = transport
        if pipe is None:
            assert profile is not None
            pipe = Launcher(profile=profile, env=variables, cwd=folder, keep_daemons=keep_daemons).open(log)
        return _opened(hold, log, pipe, setup, translated, startup_timeout, recording)

    return Opening(name, opened)


@asynccontextmanager
async def _opened(
    hold: Hold,
    log: LaunchLog,
    transport: Transport | AbstractAsyncContextManager[Transport],
    setup: AgentSetup,
    translated: Callable[[Transport, BackgroundTasks], tuple[Transport, int]],
    startup_timeout: float,
    recording: Callable[[], Recorder | None],
) -> AsyncGenerator[Agent]:
    async with AsyncExitStack() as stack:
        recorder = recording()
        if recorder is not None:
            stack.enter_context(recorder)
        runs = Runs()
        with advising(setup.profile):
            if isinstance(transport, AbstractAsyncContextManager):
                transport = await stack.enter_async_context(transport)
            process = transport if isinstance(transport, StdioTransport) else None
            if process is not None:
                process.on_stderr = StderrLines(runs.stderr).feed
            tasks = await stack.enter_async_context(background_tasks())
            if recorder is not None:
                tasks.start_soon(recorder.attend)
            if setup.workspace is not None:
                await stack.enter_async_context(setup.workspace)
            line, max_line = translated(transport, tasks)
            if recorder is not None:
                line = recorder.tapped(line, max_line)
            observers: list[Observer] = [
                RunLogging(setup.name),
                Telemetry(setup.name, "trace", setup.redaction),
                Telemetry(setup.name, "metrics", setup.redaction),
            ]
            if recorder is not None:
                observers.append(recorder)
            make = partial(
                RunningAgent,
                owner=hold.owner,
                setup=setup,
                line=AgentLine(process=process, recording=None if recorder is None else recorder.path),
                runs=runs,
                tasks=tasks,
                observers=observers,
                launch_log=log,
            )
            agent = await stack.enter_async_context(_connected(line, make, max_line))
            log.reach("initializing")
            await initialize(agent, startup_timeout)
            log.end()
            _log_start(agent)
            _check_login(agent)
            check_reachable(setup.mcp_servers.wire, agent.client.capabilities.mcp_capabilities)
        hold.hurry = partial(agent.kill, "the wait for its end was interrupted")
        try:
            yield Agent(agent, hold)
            with hold.patience:
                await agent.let_finish()
        finally:
            with anyio.CancelScope(shield=True):  # bounded by the limits of cancelling
                await agent.leave()


@asynccontextmanager
async def _connected(
    line: Transport, make: Callable[[Client], RunningAgent], max_line: int
) -> AsyncGenerator[RunningAgent]:
    """Connect an agent, and build it from the connection."""
    made: list[RunningAgent] = []

    def incoming(client: Client) -> Incoming:
        made.append(make(client))
        return made[0].incoming

    async with connect(line, incoming, max_line=max_line):
        yield made[0]


def _redaction(variables: Mapping[str, str]) -> Redaction:
    """Return the redaction for secrets in these variables."""
    from thinkwell._recording._redact import Redactor  # imports the search for secrets

    return Redactor(variables)


def _handlers(
    policy: PermissionMode | PermissionPolicy | None,
    on_question: QuestionHandler | Sequence[QuestionHandler] | None,
) -> tuple[QuestionHandler, ...]:
    """Return the asker for questions."""
    if not isinstance(policy, PermissionPolicy | None) and policy not in get_args(PermissionMode):
        raise ValueError(
            f'open_agent(permissions={policy!r}): choose "deny", "ask" or "allow", or give a PermissionPolicy'
        )
    given: tuple[QuestionHandler, ...] = ()
    if on_question is not None:
        given = (on_question,) if callable(on_question) else tuple(on_question)
    for handler in given:
        if not callable(handler):
            raise TypeError(f"open_agent(on_question={handler!r:.100}): give a function, or a list of them")
    if policy == "deny" and given:
        raise ValueError(
            'open_agent(on_question=…, permissions="deny"): no one would be asked; give permissions="ask", '
            "or a PermissionPolicy that leaves something open"
        )
    return given


def _log_start(agent: RunningAgent) -> None:
    """Log the start. Of the command, only its program: the arguments may contain keys."""
    info = agent.client.agent.agent_info
    version = "no version" if info is None else shown(f"{info.name} {info.version}")
    program = agent.line.command[0] if agent.line.command else "a connection"
    name, about = agent.host.name, "Agent %s is ready: %s, by way of %s"
    logger.info(about, name, version, program, extra=log_fields(agent=name))


def _check_login(agent: RunningAgent) -> None:
    """Refuse a login method that the agent does not offer: now, not in the middle of the work.

    Raises:
        LoginRequired: It does not offer the method; the error has those that it offers.
    """
    wanted, methods = agent.host.login.method, agent.host.errors.methods
    if wanted is None or any(method.id == wanted and method.type == "agent" for method in methods):
        return
    terminal = any(method.id == wanted for method in methods)
    why = "is for a person in a terminal" if terminal else "is not among those that it offers"
    raise LoginRequired(agent.host.name, methods, f"open_agent(login={wanted!r}): that {why}")
