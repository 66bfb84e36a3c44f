"""`open_agent` and `Agent`: an agent that runs, and what to ask of it."""

from __future__ import annotations

import logging
import os
import sys
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, get_args, overload

import anyio

from thinkwell._core.agent.agent import AgentLine, AgentSetup, RunningAgent
from thinkwell._core.agent.arguments import check_protocol, check_types, check_way
from thinkwell._core.agent.initialize import initialize
from thinkwell._core.agent.launch import Launcher, LaunchLog
from thinkwell._core.agent.opening import Hold, Opening
from thinkwell._core.agent.runs import Runs
from thinkwell._core.agent.session_handle import (
    OPEN_TIMEOUT,
    Session,
    check_part,
    explain,
    open_session,
    session_plan,
)
from thinkwell._core.agent.session_list import listed_sessions
from thinkwell._core.agent.stderr import StderrLines
from thinkwell._core.log.log_lines import log_fields
from thinkwell._core.policy.permissions import PermissionMode, PermissionPolicy
from thinkwell._core.protocol.dialect import Dialect
from thinkwell._core.protocol.mcp_servers import McpServers, check_reachable
from thinkwell._core.questions.asker import QUESTION_TIMEOUT, Asker
from thinkwell._core.schema.arguments import check_seconds
from thinkwell._core.schema.misuse import hints
from thinkwell._core.schema.output import output_type
from thinkwell._core.session.session import WireSession
from thinkwell._core.task.builder import Spec, ThinkBuilder
from thinkwell._core.tracing.run_logging import RunLogging, shown
from thinkwell._core.tracing.telemetry import Telemetry
from thinkwell._values.folders import existing_folder
from thinkwell.agents._choosing import TRACE_VARIABLE, choose, environment
from thinkwell.agents._profile import AgentProfile, advising
from thinkwell.errors import AgentReported, AnswerUnreadable, LoginFailed, LoginRequired
from thinkwell_acp import Client, StdioTransport, connect
from thinkwell_acp import schema as s
from thinkwell_acp._framing import MAX_LINE
from thinkwell_acp._tasks import background_tasks

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

    from pydantic import TypeAdapter
    from typing_extensions import TypeForm

    from thinkwell import events as ev
    from thinkwell._core.agent.incoming import Incoming
    from thinkwell._core.agent.runs import AgentStatistics
    from thinkwell._core.log.observers import Observer
    from thinkwell._core.log.stream import ThoughtStream
    from thinkwell._core.schema.output import Form, JsonSchema
    from thinkwell._core.session.state import SessionInfo
    from thinkwell._core.task.builder import Explanation, Options
    from thinkwell._core.task.prompt import Part
    from thinkwell._core.tracing.content import Redaction
    from thinkwell._lines.words import PromptFormat, Protocol
    from thinkwell._mcp.servers import McpServer
    from thinkwell._recording._recorder import Recorder
    from thinkwell._workspace.workspace import Workspace
    from thinkwell.agents._profile import ToolTransport
    from thinkwell.errors import AuthMethod
    from thinkwell.questions import Answer, Question, QuestionHandler
    from thinkwell.view import PhaseView
    from thinkwell_acp import Transport
    from thinkwell_acp._tasks import BackgroundTasks

logger = logging.getLogger("thinkwell")

T = TypeVar("T")


class AgentStarter:
    """Starts the runs of an agent that have a session of their own."""

    def __init__(self, agent: RunningAgent) -> None:
        self._agent = agent

    def start(self, spec: Spec[T], options: Options) -> ThoughtStream[T]:
        """Start a run."""
        agent = self._agent
        agent.check_open()
        agent.host.dialect.check(spec)
        agent.host.dialect.refuse(spec.cwd not in (None, agent.setup.cwd), "cwd", "cwd()")
        wire = WireSession(agent.host, spec.cwd or agent.setup.cwd, agent.setup.mcp_servers.wire)
        return agent.start(spec, options, wire, result_schema=self._schema(spec), ephemeral=True)

    def explain(self, spec: Spec[T]) -> Explanation:
        """Return what a run would send. Its session, and with it the server's name, comes with the run."""
        server = "thinkwell…" if self._agent.host.routes.begun else None
        return explain(self._agent, spec, self._schema(spec), server)

    def _schema(self, spec: Spec[Any]) -> dict[str, ev.JsonValue] | None:
        """Return the schema of ``return_result``; ``None``: the run has no such tool."""
        wanted = spec.output.schema is not None and self._agent.host.dialect.has_tools
        return spec.output.tool_schema() if wanted else None

    def check(self, part: Part) -> None:
        """Check that the agent takes such a part of a prompt."""
        check_part(self._agent, part)


@hints(
    __await__="an agent cannot be awaited: write `await agent.think(…).text(…).run()`",
    __aiter__="an agent has no events: write `async for event in agent.think(…).text(…).stream()`",
)
class Agent:
    """A running agent. Made by `open_agent`."""

    def __init__(self, agent: RunningAgent, hold: Hold) -> None:
        self._agent = agent
        self._hold = hold
        self._starter = AgentStarter(agent)

    def __repr__(self) -> str:
        return f"<Agent {self.name}>"

    @property
    def name(self) -> str:
        """What the agent was asked for as, such as ``claude``, or the name of its program."""
        return self._agent.host.name

    @property
    def info(self) -> s.Implementation | None:
        """Name and version that the agent gives of itself."""
        return self._agent.client.agent.agent_info

    @property
    def capabilities(self) -> s.AgentCapabilities:
        """What the agent advertises."""
        return self._agent.client.capabilities

    @property
    def launch_phases(self) -> tuple[PhaseView, ...]:
        """How the agent was launched, with times in seconds from when `open_agent` was entered."""
        return self._agent.host.launch_log.views()

    @property
    def auth_methods(self) -> tuple[AuthMethod, ...]:
        """The ways to log in that the agent offers, whether it wants a login or not."""
        return self._agent.host.errors.methods

    @property
    def questions(self) -> tuple[Question, ...]:
        """What the agent waits to be answered, in all of its sessions."""
        return self._agent.questions.asker.open.waiting

    def statistics(self) -> AgentStatistics:
        """Return what the agent is doing, in figures: its runs, their events, and its open questions."""
        return self._agent.statistics()

    def answer(self, question_id: str, answer: Answer, *, by: str = "human") -> None:
        """Answer any open question of the agent's. See `ThoughtStream.answer`, which takes its run's alone.

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

    def think(self, output: object = None, /) -> ThinkBuilder[Any]:
        """Begin a task, in a session of its own.

        Args:
            output: What the result is: a pydantic model, dataclass, TypedDict, list, scalar, Literal or
                union of those; a `pydantic.TypeAdapter`, for type checkers that do not know `TypeForm`; a
                `JsonSchema`; or nothing (or ``str``) for the text of the agent's last message.

        Raises:
            TypeError: The output type cannot be used; the message says what to give instead.
        """
        return ThinkBuilder(self._starter, Spec(output=output_type(output, "think({})")))

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
    ) -> Opening[Session]:
        """Open a conversation of many turns: a new one, or one that the agent remembers.

        An old one that cannot be opened is an error; it never becomes a new one.

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
        plan = session_plan(
            self._agent,
            cwd=cwd,
            mcp_servers=mcp_servers,
            additional_directories=additional_directories,
            sources={"load": load, "resume": resume, "fork": fork},
            output=output,
            open_timeout=open_timeout,
        )
        return open_session(self._agent, plan)

    async def close(self) -> None:
        """Close the agent, as leaving its block does. Where it is closed, nothing happens.

        Raises:
            WrongEventLoop: The caller is not in the agent's event loop.
        """
        await self._hold.close()

    def kill(self) -> None:
        """Kill the agent's processes at once, without asking it: for when leaving its block takes too long.

        Its runs fail with `AgentExited`. Where it was not started by us, the connection is closed.
        """
        if self._agent.client.connection.error is None:
            self._agent.host.owner.check()
        self._agent.kill("agent.kill() was called")

    async def list_sessions(self, cwd: str | os.PathLike[str] | None = None) -> list[SessionInfo]:
        """Return the sessions that the agent remembers, in its order.

        Args:
            cwd: Only those of this folder.

        Raises:
            CapabilityMissing: The agent does not advertise that. Nothing was sent.
            AgentError: It did not tell.
        """
        self._agent.check_open()
        return await self._agent.host.errors.call(listed_sessions(self._agent, cwd))

    async def delete_session(self, session_id: str) -> None:
        """Make the agent forget a session. One that it does not know is no error (ACP, Session Delete).

        Raises:
            CapabilityMissing: The agent does not advertise that. Nothing was sent.
            AgentError: It did not forget it.
        """
        self._agent.check_open()
        await self._agent.host.errors.call(
            self._agent.client.delete_session(s.DeleteSessionRequest(session_id=session_id))
        )

    async def authenticate(self, method_id: str) -> None:
        """Log in by a way that the agent offers and goes by itself, such as in a browser.

        Args:
            method_id: Its id, as in `LoginRequired.methods`.

        Raises:
            CapabilityMissing: It does not offer that, or the way is one for a terminal: see `login`.
            LoginFailed: It did not work.
            AgentError: The agent is gone.
        """
        self._agent.check_open()
        with self._agent.host.errors.advising():
            try:
                await self._agent.host.errors.call(self._agent.authenticate(method_id))
            except (AgentReported, AnswerUnreadable, LoginRequired) as exc:
                raise LoginFailed(self.name, method_id, str(exc.__cause__)) from exc.__cause__


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
) -> Opening[Agent]:
    """Start an agent, or connect to one, for the time of a block.

    Leaving the block cancels what runs and ends the agent's process with everything that it has started.
    Where no block can be, ``await open_agent(…).start()`` does it until `Agent.close`.

    Args:
        agent: A known agent, such as ``builtin``, ``claude``, ``codex`` or ``gemini``: see
            `thinkwell.agents.known_agents`. ``claude@latest`` and ``claude@0.100.0`` are other versions of it
            than the one in its profile. Or a profile. With neither an agent nor a command, the environment
            decides (``THINKWELL_AGENT_CMD``, then ``THINKWELL_AGENT``), else it is the built-in one.
        command: The command of any other agent: a sequence, or a line that is split as a shell would,
            without running one. With `agent`, the command of that one, instead of its profile's: what else
            the profile says counts as before.
        transport: A connection to an agent that runs already, or a block that makes one.
        env: Variables on top of the caller's environment.
        cwd: The folder in which the agent works; by default the current one.
        permissions: What the agent may do when it asks: ``deny`` (only call our own tools), ``ask``
            (`on_question` decides), ``allow`` (anything), or a `PermissionPolicy`. By default it is ``ask``
            where there is an `on_question`, and in a run with a listener (`ThinkBuilder.listen`);
            else ``deny``.
        on_question: Who answers what is left open: a function, or several, asked in their order. They also
            fill in forms, which are offered to the agent only where there is someone to do it. Without it,
            what ``permissions="ask"`` or a policy leaves open waits for `ThoughtStream.answer`, except while
            the run has a listener: then what is left open is declined. `wait_for_answer` waits in both.
        question_timeout: Seconds until an unanswered question is denied.
        workspace: Files and terminals that the agent may use through us; none by default.
        mcp_servers: MCP servers for every session, besides our own: `McpStdio`, `McpHttp`, `McpSse`, or those
            of a file (`load_mcp_servers`).
        tools_via: The way for our tools, ``acp``, ``http`` or ``stdio``, instead of the plainest that the
            agent offers.
        login: The id of one of the agent's own ways to log in, which is gone when the agent asks for a
            login: once for all that wait for it. What was refused is then tried again.
        startup_timeout: Seconds until the agent has answered its first request. Its installation, where it
            is not there yet, has a limit of its own: ``cold_start`` of its profile.
        keep_daemons: Leave running at the end what has left the process group of the agent, or that of a
            command of the workspace, such as a server that was started in the background. By default it ends
            too, on Linux; on macOS it stays, and on Windows it ends, whatever is said here.
        record: A file to record everything in, for `replay`: what goes over the wire, in both directions, and
            what the runs come to. Secrets are taken out. Without it, the environment variable
            ``THINKWELL_TRACE`` may name a folder for such files.
        on_phase: Called with each phase of the launch when it begins, with the time since the block was
            entered. The first run's log and `Agent.launch_phases` have them too.
        protocol: What the agent speaks: ``acp``, or ``ndjson``: a program that writes one JSON object a
            line, and reads its prompts and answers line by line. Give `command` or `transport` with that.
        init: Parameters for such a program, which it has to acknowledge before anything else.
        prompt_format: How such a program gets its prompts: ``text``, as one line in which line ends are
            escaped, or ``json``, as an object with ``prompt`` and ``context``.

    Raises:
        AgentNotFound: There is no such agent, or its program is not there.
        ProfileError: What is known of the agent cannot be read.
        AgentStartFailed: It was started, but no conversation came about.
        LoginRequired: It wants a login even before that, or does not offer the one of `login`.
        CapabilityMissing: It does not take MCP servers of the kind of one of them.
        McpServerError: The program of an MCP server is not there.
        NotADirectoryError: There is no such folder.
        OSError: The file for the recording cannot be written.
        TypeError: An argument is of another type.
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
    speaks_lines = check_protocol(
        protocol,
        init=init,
        prompt_format=prompt_format,
        agent=agent,
        named=command is not None or transport is not None,
        others={"mcp_servers": mcp_servers, "workspace": workspace, "tools_via": tools_via, "login": login},
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
        from thinkwell._workspace.service import WorkspaceService  # loads what runs commands

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
        profile=profile,
        redaction=partial(_redaction, variables),
    )

    def translated(pipe: Transport, tasks: BackgroundTasks) -> tuple[Transport, int]:
        """Return what speaks the protocol, and the longest line of it."""
        if not speaks_lines:
            return pipe, MAX_LINE
        from thinkwell._lines._transport import LineTransport  # only those agents need it

        line = LineTransport(pipe, tasks, name=name, init=init, prompt_format=prompt_format)
        return line, sys.maxsize  # it may be many times as long as the line, which has a limit of its own

    def recording() -> Recorder | None:
        if record is None and not os.environ.get(TRACE_VARIABLE):
            return None
        from thinkwell._recording._recorder import recorder_of  # loads what finds secrets

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
            await initialize(agent, _offers(agent), startup_timeout)
            log.end()
            _log_start(agent)
            _check_login(agent)
            check_reachable(setup.mcp_servers.wire, agent.client.capabilities.mcp_capabilities)
        hold.hurry = partial(agent.kill, "the wait for its end was broken off")
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
    """Connect an agent, which is made of the connection."""
    made: list[RunningAgent] = []

    def incoming(client: Client) -> Incoming:
        made.append(make(client))
        return made[0].incoming

    async with connect(line, incoming, max_line=max_line):
        yield made[0]


def _redaction(variables: Mapping[str, str]) -> Redaction:
    """Return what takes secrets out of what is said with these variables."""
    from thinkwell._recording._redact import Redactor  # loads what finds them

    return Redactor(variables)


def _handlers(
    policy: PermissionMode | PermissionPolicy | None,
    on_question: QuestionHandler | Sequence[QuestionHandler] | None,
) -> tuple[QuestionHandler, ...]:
    """Return who answers questions."""
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
    """Log what runs. Of the command its program only: the arguments may hold keys."""
    info = agent.client.agent.agent_info
    version = "no version" if info is None else shown(f"{info.name} {info.version}")
    program = agent.line.command[0] if agent.line.command else "a connection"
    name, about = agent.host.name, "Agent %s is ready: %s, by way of %s"
    logger.info(about, name, version, program, extra=log_fields(agent=name))


def _check_login(agent: RunningAgent) -> None:
    """Refuse a login that the agent does not offer: now, not in the middle of the work.

    Raises:
        LoginRequired: It does not; with those that it offers.
    """
    wanted, methods = agent.host.login.method, agent.host.errors.methods
    if wanted is None or any(method.id == wanted and method.type == "agent" for method in methods):
        return
    terminal = any(method.id == wanted for method in methods)
    why = "is for a person in a terminal" if terminal else "is not among those that it offers"
    raise LoginRequired(agent.host.name, methods, f"open_agent(login={wanted!r}): that {why}")


def _offers(agent: RunningAgent) -> s.ClientCapabilities:
    """Return what the agent may ask of us: nothing that would not be served."""
    forms = s.ElicitationCapabilities(
        form=s.ElicitationFormCapabilities(), url=s.ElicitationUrlCapabilities()
    )
    workspace = agent.setup.workspace
    return s.ClientCapabilities(
        fs=s.FileSystemCapabilities() if workspace is None else workspace.file_system,
        terminal=workspace is not None and workspace.terminal,
        # We cannot start a second one of an agent that we did not start.
        auth=s.AuthCapabilities(terminal=bool(agent.line.command)),
        elicitation=forms if agent.questions.asker.can_answer or agent.host.dialect.may_always_ask else None,
        session=s.ClientSessionCapabilities(
            config_options=s.SessionConfigOptionsCapabilities(boolean=s.BooleanConfigOptionCapabilities())
        ),
    )
