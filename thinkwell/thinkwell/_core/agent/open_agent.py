"""`open_agent`: starts an agent, or connects to one."""

from __future__ import annotations

import os
import sys
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING

import anyio

from thinkwell._core.agent.agent import AgentLine, AgentSetup, RunningAgent
from thinkwell._core.agent.agent_handle import Agent
from thinkwell._core.agent.arguments import (
    check_model,
    check_protocol,
    check_types,
    check_way,
    question_handlers,
)
from thinkwell._core.agent.initialize import check_login, initialize, log_start
from thinkwell._core.agent.launch import Launcher, LaunchLog, StderrLines
from thinkwell._core.agent.opening import Hold, Opening
from thinkwell._core.agent.runs import Runs
from thinkwell._core.agent.spares import Fallback, OpenedSpare, Spare, SpareNames, Spares, first_to_start
from thinkwell._core.protocol.dialect import Dialect
from thinkwell._core.protocol.mcp_servers import McpServers, check_reachable
from thinkwell._core.questions.asker import QUESTION_TIMEOUT, Asker
from thinkwell._core.schema.arguments import check_seconds
from thinkwell._core.tracing.run_logging import RunLogging
from thinkwell._core.tracing.telemetry import Telemetry
from thinkwell._values.folders import existing_folder
from thinkwell.agents._choosing import TRACE_VARIABLE, choose, environment
from thinkwell.agents._profile import AgentProfile, advising
from thinkwell_acp import Client, StdioTransport, connect
from thinkwell_acp._framing import MAX_LINE
from thinkwell_acp._tasks import background_tasks

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

    from thinkwell import events as ev
    from thinkwell._core.agent.incoming import Incoming
    from thinkwell._core.log.observers import Observer
    from thinkwell._core.policy.permissions import PermissionMode, PermissionPolicy
    from thinkwell._core.tracing.content import Redaction
    from thinkwell._lines.words import PromptFormat, Protocol
    from thinkwell._mcp.servers import McpServer
    from thinkwell._recording._recorder import Recorder
    from thinkwell._workspace.service import WorkspaceService
    from thinkwell._workspace.workspace import Workspace
    from thinkwell.agents._names import AgentName
    from thinkwell.agents._profile import ToolTransport
    from thinkwell.questions import QuestionHandler
    from thinkwell_acp import Transport
    from thinkwell_acp._tasks import BackgroundTasks


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
        cwd: The folder in which the agent works; by default the current one. Or an async context manager
            that gives one, such as `thinkwell.trials.Worktree`: it is entered before the agent starts, and
            left after it has ended.
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
        fallback: The agents that take over, in this order: names of known agents, profiles, or an
            ``open_agent(…)`` with options of its own. If the agent does not start, the next one is opened
            instead. If a run fails by the agent's quota, an overload, a login, or its exit, the next one gets
            the task; see `ThinkBuilder.fallback`. A name gets `cwd`, `env`, `permissions`, `on_question`,
            `question_timeout`, `workspace`, `mcp_servers`, `startup_timeout` and `keep_daemons` of this
            call. Turns of a session, and runs with a listener, stay with their agent.
        fallback_after_effects: Whether they take over even if the agent may have changed something: it may
            then be done twice.

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
    check_types(command=command, env=env, agent=agent, workspace=workspace, record=record, on_phase=on_phase)
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
    room = _room(cwd)
    check_way(tools_via)
    asker = _asker(permissions, on_question, question_timeout)
    check_seconds("startup_timeout", startup_timeout)
    variables = environment(profile, env)
    servers = McpServers(mcp_servers, variables.get("PATH"))
    dialect: Dialect = Dialect()
    if speaks_lines:
        from thinkwell._lines._dialect import LineDialect

        dialect = LineDialect(takes_meta=prompt_format == "json")

    beside = _Beside()
    opens = partial(
        open_agent,
        env=env,
        cwd=beside,
        permissions=permissions,
        on_question=on_question,
        question_timeout=question_timeout,
        workspace=workspace,
        mcp_servers=mcp_servers,
        startup_timeout=startup_timeout,
        keep_daemons=keep_daemons,
    )
    named = SpareNames(name, opens, _as_spare).fallback
    spares = named(fallback, fallback_after_effects)

    def setup(folder: str) -> AgentSetup:
        return AgentSetup(
            name=name,
            cwd=folder,
            dialect=dialect,
            asker=asker,
            mcp_servers=servers,
            tools_via=tools_via,
            workspace=_service(workspace, folder, variables, keep_daemons=keep_daemons),
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

    def recording(folder: str, file: str | os.PathLike[str] | None) -> Recorder | None:
        if file is None and not os.environ.get(TRACE_VARIABLE):
            return None
        from thinkwell._recording._recorder import recorder_of  # imports the search for secrets

        return recorder_of(
            file,
            agent=name,
            command=() if profile is None else profile.command,
            cwd=folder,
            environment=variables,
        )

    def alone(
        folder: str, hold: Hold, file: str | os.PathLike[str] | None = None
    ) -> AbstractAsyncContextManager[Agent]:
        log = LaunchLog(on_phase)
        pipe = transport
        if pipe is None:
            assert profile is not None
            pipe = Launcher(profile=profile, env=variables, cwd=folder, keep_daemons=keep_daemons).open(log)
        itself = Spare(Opening(name, partial(alone, folder), again=transport is None), _as_spare)
        others = Spares(itself, named)
        record_in = partial(recording, folder, file)
        return _opened(hold, log, pipe, setup(folder), translated, startup_timeout, record_in, others)

    @asynccontextmanager
    async def opened(hold: Hold) -> AsyncGenerator[Agent]:
        async with room as given:
            beside.folder = folder = _folder(given)
            own = Opening(name, partial(alone, folder, file=record))
            async with first_to_start(own, spares, _took_over, hold) as agent:
                yield agent

    return Opening(name, opened, again=transport is None)


def _asker(
    permissions: PermissionMode | PermissionPolicy | None,
    on_question: QuestionHandler | Sequence[QuestionHandler] | None,
    timeout: float,
) -> Asker:
    handlers = question_handlers(permissions, on_question)
    check_seconds("question_timeout", timeout)
    if permissions is None and handlers:
        permissions = "ask"
    return Asker(policy=permissions, handlers=handlers, timeout=timeout)


class _Beside(AbstractAsyncContextManager[str]):
    """The folder of a block, for the agents that take over in it."""

    folder = ""

    async def __aenter__(self) -> str:
        return self.folder

    async def __aexit__(self, *_: object) -> None:
        """Do nothing: it is the block's."""


def _as_spare(agent: Agent) -> OpenedSpare:
    """Return what is needed of an agent that was opened to take over."""
    running = agent._agent
    return OpenedSpare(
        starter=agent._starter,
        alive=lambda: running.client.connection.error is None,
        close=agent.close,
        open_questions=lambda: running.statistics().open_questions,
    )


def _took_over(agent: Agent, left: Fallback, news: Sequence[ev.ThoughtEvent]) -> None:
    """Give an agent the rest of a fallback, and tell its first run what happened before."""
    agent._agent.spares.fallback = left
    agent._agent.host.launch_log.begin_with(news)


def _room(
    cwd: str | os.PathLike[str] | AbstractAsyncContextManager[str | os.PathLike[str]] | None,
) -> AbstractAsyncContextManager[str | os.PathLike[str]]:
    """Return what opens the folder to work in. One that is there is checked now."""
    return cwd if isinstance(cwd, AbstractAsyncContextManager) else nullcontext(_folder(cwd))


def _service(
    workspace: Workspace | None, folder: str, variables: Mapping[str, str], *, keep_daemons: bool
) -> WorkspaceService | None:
    if workspace is None:
        return None
    from thinkwell._workspace.service import WorkspaceService  # loads what runs commands

    return WorkspaceService(workspace, cwd=folder, env=variables, keep_daemons=keep_daemons)


def _folder(cwd: str | os.PathLike[str] | None) -> str:
    return existing_folder(cwd or ".", "open_agent(cwd=…)")


@asynccontextmanager
async def _opened(
    hold: Hold,
    log: LaunchLog,
    transport: Transport | AbstractAsyncContextManager[Transport],
    setup: AgentSetup,
    translated: Callable[[Transport, BackgroundTasks], tuple[Transport, int]],
    startup_timeout: float,
    recording: Callable[[], Recorder | None],
    spares: Spares,
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
                hold.hurry = process.kill
                process.on_stderr = StderrLines(runs.stderr).feed
            tasks = await stack.enter_async_context(background_tasks())
            if setup.workspace is not None:
                await stack.enter_async_context(setup.workspace)
            line, max_line = translated(transport, tasks)
            observers: list[Observer] = [
                RunLogging(setup.name),
                Telemetry(setup.name, "trace", setup.redaction),
                Telemetry(setup.name, "metrics", setup.redaction),
            ]
            if recorder is not None:
                tasks.start_soon(recorder.attend)
                line = recorder.tapped(line, max_line)
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
                spares=spares,
            )
            agent = await stack.enter_async_context(_connected(line, make, max_line))
            log.reach("initializing")
            await initialize(agent, startup_timeout)
            log.end()
            log_start(agent)
            check_login(agent)
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
