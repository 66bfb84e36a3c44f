"""A running agent: the state that its sessions and runs share, and its end."""

from __future__ import annotations

import logging
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final, TypeVar

import anyio
from msgspec import Struct

from thinkwell._core.agent.failures import AgentErrors
from thinkwell._core.agent.incoming import Incoming
from thinkwell._core.agent.login import SharedLogin
from thinkwell._core.agent.questions import AgentQuestions
from thinkwell._core.agent.run import Run, RunHost
from thinkwell._core.agent.run_handle import RunHandle, check_listener
from thinkwell._core.log.observers import Observers
from thinkwell._core.log.stream import TURN_END_TIMEOUT
from thinkwell._core.session.routes import SessionRoutes
from thinkwell._core.session.tool_hosts import ToolHosts
from thinkwell._core.session.turn_queue import Turns
from thinkwell._core.turn.turn import HURRIED, LAST
from thinkwell.errors import AgentClosed, SessionClosed, SessionUnusable
from thinkwell_acp import ConnectionEnded
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from thinkwell._core.agent.launch import LaunchLog
    from thinkwell._core.agent.run_plan import RunPlan
    from thinkwell._core.agent.runs import AgentStatistics, Runs
    from thinkwell._core.agent.spares import Spares
    from thinkwell._core.log.observers import Observer, RunObserver
    from thinkwell._core.log.owner import Owner
    from thinkwell._core.protocol.dialect import Dialect
    from thinkwell._core.protocol.mcp_servers import McpServers
    from thinkwell._core.questions.asker import Asker
    from thinkwell._core.session.session import WireSession
    from thinkwell._core.tracing.content import Redaction
    from thinkwell._workspace.service import WorkspaceService
    from thinkwell.agents import AgentProfile
    from thinkwell.agents._profile import ToolTransport
    from thinkwell_acp import AcpError, Client, StdioTransport
    from thinkwell_acp._tasks import BackgroundTasks

T = TypeVar("T")


class AgentSetup(Struct, frozen=True, kw_only=True):
    """The arguments of `open_agent`."""

    name: str
    cwd: str
    dialect: Dialect
    asker: Asker
    mcp_servers: McpServers
    tools_via: ToolTransport | None
    """The transport for our tools, if given."""
    workspace: WorkspaceService | None
    login: str | None
    """The login method, if given."""
    model: str | None
    """The model of its sessions, if given."""
    profile: AgentProfile | None
    """The agent's profile, if we start it."""
    redaction: Callable[[], Redaction]
    """Makes the redaction that removes secrets from texts."""


class AgentLine(Struct, frozen=True, kw_only=True):
    """The started process, and its recording."""

    process: StdioTransport | None = None
    """The agent's process; ``None`` if it was already running."""
    recording: Path | None = None
    """The file of the recording."""

    @property
    def command(self) -> tuple[str, ...]:
        """The started command; empty if the agent was already running."""
        return () if self.process is None else self.process.command


class AgentLife(Enum):
    """The stages of an agent's life."""

    OPEN = auto()
    LEAVING = auto()
    """Its block was left: its runs are being stopped."""
    LEFT = auto()
    """No run is left; its process is ended next."""


_NEXT: Final = {
    AgentLife.OPEN: {AgentLife.LEAVING},
    AgentLife.LEAVING: {AgentLife.LEFT},
    AgentLife.LEFT: set[AgentLife](),
}


class RunningAgent:
    """A connected agent.

    Args:
        client: The connection.
        owner: Where it was opened.
        setup: What was asked for.
        line: What was started.
        runs: Its runs: none yet.
        tasks: Where it does things in the background.
        observers: Learn what happens.
        launch_log: How it is launched.
        spares: The agents that take over where it fails.
    """

    def __init__(
        self,
        client: Client,
        owner: Owner,
        setup: AgentSetup,
        line: AgentLine,
        runs: Runs,
        tasks: BackgroundTasks,
        observers: Sequence[Observer],
        launch_log: LaunchLog,
        spares: Spares,
    ) -> None:
        name, profile = setup.name, setup.profile
        self.setup = setup
        self.line = line
        self.spares = spares
        self.life: AgentLife = AgentLife.OPEN
        self.runs = runs
        routes: SessionRoutes[WireSession] = SessionRoutes(name, self._session_opened)
        self.tool_hosts: ToolHosts = ToolHosts(
            client,
            tasks,
            setup.tools_via,
            () if profile is None else profile.tools_via,
            bare_names=profile is not None and profile.bare_tool_names,
        )
        self.questions: AgentQuestions = AgentQuestions(
            name, setup.cwd, client, setup.asker, routes, tasks, setup.dialect
        )
        self.host: RunHost = RunHost(
            name=name,
            client=client,
            owner=owner,
            dialect=setup.dialect,
            routes=routes,
            tool_hosts=self.tool_hosts,
            workspace=setup.workspace,
            observers=Observers(observers),
            whole_fields=profile is not None and profile.whole_fields,
            keeps_system=profile is not None and profile.keeps_system,
            withdraw=lambda session_id: self.questions.asker.open.withdraw(session=session_id),
            tasks=tasks,
            errors=AgentErrors(name, client, line.command, profile),
            login=SharedLogin(name, setup.login, tasks, self.authenticate),
            questions=self.questions,
            launch_log=launch_log,
            recording=line.recording,
            turns=Turns(),
            start=lambda plan: self.begin(plan).stream(),
            kill=self.kill,
            over=runs.over,
            turn_lost=self._turn_lost,
        )
        self.incoming: Incoming = Incoming(
            name,
            tasks,
            routes=routes,
            questions=self.questions,
            workspace=setup.workspace,
            tool_hosts=self.tool_hosts,
            log_in=self.host.login.log_in,
            closed=self._closed,
        )

    @property
    def client(self) -> Client:
        """The connection to it."""
        return self.host.client

    def check_open(self) -> None:
        """Check that the agent's block was not left.

        Raises:
            AgentClosed: It was.
            WrongEventLoop: The caller is not in the agent's event loop.
        """
        if self.life is not AgentLife.OPEN:
            raise AgentClosed
        self.host.owner.check()

    def statistics(self) -> AgentStatistics:
        """Return statistics of its current work."""
        return self.runs.statistics(len(self.questions.asker.open.waiting) + self.spares.open_questions)

    def begin(self, plan: RunPlan[T], observer: RunObserver | None = None) -> RunHandle[T]:
        """Start a run in the background, and return its handle.

        Args:
            plan: What it is to do, and where.
            observer: Learns what happens in it, besides the agent's observers.
        """
        listener = plan.options.listener
        if listener is not None:
            check_listener(listener, self.setup.asker)  # before anybody learns of the run
        run = Run(self.host, plan, observer)
        handle = RunHandle(self.host, run)
        if listener is not None:
            handle.attach(listener)
        self.host.tasks.start_soon(run.main)
        self.runs.add(run)
        return handle

    async def let_finish(self, session: WireSession | None = None) -> None:
        """Wait briefly for the end of the turns that have their result: those of a session, or all."""
        with anyio.move_on_after(TURN_END_TIMEOUT):
            for run in self.runs:
                if session in (None, run.session) and run.record.result.value:
                    await run.over.wait()

    def leave_session(self, session: WireSession) -> None:
        """Cancel the runs of a session."""
        session.leave()
        for run in self.runs.all():
            if run.session is session:
                run.stop(SessionClosed() if self.life is AgentLife.OPEN else AgentClosed(), HURRIED)

    async def authenticate(self, method: str) -> None:
        """Let the agent log in by itself. Programs that it opens for that, such as a browser, outlive it."""
        try:
            await self.client.authenticate(s.AuthenticateRequest(method_id=method))
        finally:
            if self.line.process is not None:
                self.line.process.spare_daemons()

    def kill(self, because: str) -> None:
        """End the agent's process at once, or the connection to one that we did not start.

        Args:
            because: The reason, for the errors of calls that need the agent.
        """
        process = self.line.process
        if process is None:
            self.client.connection.end(ConnectionEnded(because))
            return
        if process.exit_code is None:
            self.host.errors.ended_because = self.host.errors.ended_because or because
        process.kill()

    async def leave(self) -> None:
        """Cancel all runs, wait for their end, and start no more."""
        self._move(AgentLife.LEAVING)
        runs = self.runs.all()
        for run in runs:
            run.stop(AgentClosed(), LAST)
        for run in runs:
            await run.over.wait()
        await self.spares.close()
        self._move(AgentLife.LEFT)

    def _move(self, life: AgentLife) -> None:
        assert life in _NEXT[self.life], (self.life, life)
        self.life = life

    def _session_opened(self, session_id: str, cwd: str) -> None:
        if self.setup.workspace is not None:
            self.setup.workspace.open_session(session_id, cwd)

    def _closed(self, reason: AcpError) -> None:
        """Fail the runs that wait for something other than an answer of the agent, such as their turn."""
        for run in self.runs:
            run.stop(self.host.errors.translated(reason))

    def _turn_lost(self, run: Run[Any]) -> None:
        """End the agent's process, because a turn could not be ended in any other way.

        This does not happen while other runs depend on it. Runs that wait for a session with such a turn do
        not.
        """
        name = self.setup.name
        # The other runs can succeed only while the agent lives.
        others = sum(not other.given_up and other.session.life.usable for other in self.runs)
        if others:
            run.record.lines(
                logging.WARNING,
                "Agent %s does not end the turn of %s; it goes on, because %d other runs need the agent",
                name,
                run.id,
                others,
            )
            return
        about = "Agent %s does not end the turn of %s, so its process is ended"
        run.record.lines(logging.WARNING, about, name, run.id)
        for waiting in self.runs:
            if not waiting.given_up:
                waiting.stop(SessionUnusable(waiting.session.id or ""))  # more precise than the agent's end
        self.kill(f"it did not end the turn of {run.id}, which was cancelled")
