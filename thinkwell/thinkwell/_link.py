"""The line to one agent: who gets which update, and the answers to what the agent asks."""

from __future__ import annotations

import logging
import shlex
from collections import deque
from contextlib import contextmanager, nullcontext
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, TypeVar
from weakref import WeakValueDictionary

from thinkwell._observing import Observers
from thinkwell._shared_login import SharedLogin
from thinkwell._stderr_lines import StderrLines
from thinkwell._turns import Turns
from thinkwell._wire_asking import WireAsker
from thinkwell._wire_errors import auth_methods, translate
from thinkwell.agents._profile import advise
from thinkwell.errors import CapabilityMissing, SessionUnusable
from thinkwell_acp import AcpError, ClientHandler, DecodeError, RpcError
from thinkwell_acp import schema as s
from thinkwell_acp._recent import Recent

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Sequence
    from pathlib import Path

    from thinkwell._asking import Asker
    from thinkwell._builder import Spec
    from thinkwell._launching import LaunchLog
    from thinkwell._observing import Observer
    from thinkwell._run import Run
    from thinkwell._stream import ThoughtStream
    from thinkwell._tooling import ToolHosts
    from thinkwell._wire_mcp import McpServers
    from thinkwell._wire_session import WireSession
    from thinkwell._workspace.service import WorkspaceService
    from thinkwell.agents import AgentProfile
    from thinkwell.errors import AuthMethod
    from thinkwell.questions import Question
    from thinkwell_acp import Client, StdioTransport
    from thinkwell_acp._jsonrpc import Malformed
    from thinkwell_acp._tasks import BackgroundTasks
    from thinkwell_acp.mcp import AcpToolHost

T = TypeVar("T")

EARLY_LIMIT: Final = 10_000
"""Updates that are kept for sessions whose opening the agent has not answered yet. Some agents send a few."""

SESSIONS_KEPT: Final = 10_000
"""Ids of sessions that are remembered, of which something late is no surprise."""

MALFORMED_WARNED: Final = 3
"""Lines that were no message of which each is worth a warning; some programs print them all the time."""

MALFORMED_KEPT: Final = 5
"""Lines that were no message, kept to explain a failed start."""


class Link(ClientHandler):
    """Routes what comes from one agent, and holds what its sessions share."""

    logger = logging.getLogger("thinkwell")

    def __init__(
        self,
        *,
        name: str,
        cwd: str,
        hosts: ToolHosts,
        tasks: BackgroundTasks,
        asker: Asker,
        mcp_servers: McpServers,
        workspace: WorkspaceService | None = None,
        login: str | None = None,
        observers: Sequence[Observer] = (),
        profile: AgentProfile | None = None,
        launch_log: LaunchLog,
        by_lines: bool = False,
        takes_meta: bool = True,
    ) -> None:
        self.name = name
        self.cwd = cwd
        self.hosts = hosts
        self.tasks = tasks
        self.mcp_servers = mcp_servers
        self.sessions: WeakValueDictionary[str, WireSession] = WeakValueDictionary()
        """Sessions by id, as long as somebody may ask for what comes in them."""
        self._session_ids = Recent(SESSIONS_KEPT)
        self.runs: dict[Run[Any], None] = {}
        """Those that are not over, in the order of their start."""
        self.kill: Callable[[], None] = _nothing
        """Ends the agent's process."""
        self.process: StdioTransport | None = None
        """The agent's process, where we started it."""
        self.recording: Path | None = None
        """The file in which everything is recorded."""
        self.command: tuple[str, ...] = ()
        """What was started; empty where the agent ran already."""
        self.login = SharedLogin(name, login, tasks)
        self.malformed_lines: deque[bytes] = deque(maxlen=MALFORMED_KEPT)
        self.by_lines = by_lines
        """Whether the agent speaks lines, which are translated."""
        self._takes_meta = takes_meta
        """Whether its prompts have room for ``_meta``."""
        self.turns = Turns()
        """The queue for a process that works on one prompt at a time, in whichever session."""
        self.asking = WireAsker(name, cwd, asker, self.sessions, tasks, by_lines=by_lines)
        self.stderr = StderrLines(self._stderr_line)
        self.workspace = workspace
        self.observers = Observers(observers)
        self.profile = profile
        """What is known of the agent, where we started it."""
        self.launch_log = launch_log
        self._client: Client | None = None
        self._opening = 0
        self.sessions_begun = 0
        """How many sessions there were, the open ones among them."""
        self._malformed = 0
        self.leaving = False
        """Whether the agent's block is being left."""
        self._early: list[s.SessionNotification] = []

    def attach(self, client: Client) -> None:
        """Take the connection."""
        self._client = client
        self.hosts.attach(client)

    @property
    def client(self) -> Client:
        """The connection to the agent."""
        assert self._client is not None
        return self._client

    # Updates

    @contextmanager
    def opening(self) -> Generator[Callable[[WireSession], None]]:
        """Keep updates of unknown sessions while one is being opened.

        The block calls what it gets with the session.
        """
        self._opening += 1
        try:
            yield self._claim
        finally:
            self._opening -= 1
            if not self._opening and self._early:
                self.logger.warning(
                    "Agent %s sent %d updates for sessions that were never opened",
                    self.name,
                    len(self._early),
                )
                self._early.clear()

    def _claim(self, session: WireSession) -> None:
        assert session.id is not None
        self.sessions[session.id] = session
        self._session_ids.add(session.id)
        self.sessions_begun += 1
        if self.workspace is not None:
            self.workspace.open_session(session.id, session.cwd)
        early = [note for note in self._early if note.session_id == session.id]
        self._early = [note for note in self._early if note.session_id != session.id]
        if early:
            session.updates(early)

    def session_updates(self, batch: Sequence[s.SessionNotification], /) -> None:
        """Route updates to their sessions, in order."""
        first = batch[0].session_id
        if [note.session_id for note in batch].count(first) == len(batch):
            self._route(first, batch)
            return
        # Each session is touched once per block, however its updates are interleaved with others.
        by_session = attrgetter("session_id")
        for session_id, group in groupby(sorted(batch, key=by_session), by_session):
            try:
                self._route(session_id, list(group))
            except Exception:
                self.logger.exception("Agent %s: updates of session %r are lost", self.name, session_id)

    def _route(self, session_id: str, batch: Sequence[s.SessionNotification]) -> None:
        session = self.sessions.get(session_id)
        if session is not None:
            session.updates(batch)
        elif self._opening and len(self._early) + len(batch) <= EARLY_LIMIT:
            self._early.extend(batch)
        else:
            # Some agents send a last word about a session when everybody has left it.
            level = logging.DEBUG if session_id in self._session_ids else logging.WARNING
            self.logger.log(
                level, "Agent %s sent %d updates for unknown session %r", self.name, len(batch), session_id
            )

    def malformed(self, report: Malformed, /) -> None:
        """Log what is no message, and keep the first words of it."""
        self.malformed_lines.append(report.line[:1000])
        self._malformed += 1
        level = logging.WARNING if self._malformed <= MALFORMED_WARNED else logging.DEBUG
        size = len(report.line)
        self.logger.log(
            level, "Agent %s sent what is no message: %s, %d bytes", self.name, report.reason, size
        )
        self.logger.debug("That line of agent %s: %.200r", self.name, report.line)
        if self._malformed == MALFORMED_WARNED:
            self.logger.warning("More of that from agent %s is logged as DEBUG", self.name)

    def closed(self, reason: AcpError, /) -> None:
        """Fail the runs that wait for something else than an answer of the agent's, such as their turn."""
        for run in tuple(self.runs):
            run.stop(translate(reason, self.name))

    def _stderr_line(self, line: str) -> None:
        for run in tuple(self.runs):
            if run.listener is not None:
                run.listener.stderr(line)

    def check_lines(self, wanted: object, capability: str, wanted_by: str) -> None:
        """Refuse what an agent that speaks lines cannot be told of.

        Raises:
            CapabilityMissing: It is wanted of one.
        """
        if self.by_lines and wanted:
            raise CapabilityMissing(capability, f'{wanted_by}: the agent speaks lines (protocol="ndjson")')

    def check_spec(self, spec: Spec[Any]) -> None:
        """Refuse a run of what an agent that speaks lines cannot be told of.

        Raises:
            CapabilityMissing: It wants such a thing.
        """
        self.check_lines(spec.skills, "mcpCapabilities", "skill()")
        self.check_lines(spec.tools, "mcpCapabilities", "tool()")
        if spec.meta and not self._takes_meta:
            wanted_by = 'meta(): its prompts are lines of text; open it with prompt_format="json"'
            raise CapabilityMissing("_meta", wanted_by)

    def launch(self, run: Run[T]) -> ThoughtStream[T]:
        """Start a run in the background."""
        self.tasks.start_soon(run.main)  # first: where that fails, nobody waits for the run
        run.queue_up()
        self.runs[run] = None
        return run.stream

    async def call(self, awaitable: Awaitable[T]) -> T:
        """Await a call to the agent and translate its errors.

        Raises:
            AgentError: It failed.
        """
        try:
            return await awaitable
        except (AcpError, DecodeError) as exc:
            raise self.error(exc) from exc

    def error(self, exc: Exception) -> Exception:
        """Return the error to show for one of the protocol layer; any other is returned as it is."""
        error = translate(exc, self.name, self.methods)
        self.advise(error)
        return error

    def advise(self, error: Exception) -> None:
        """Add to an error what is known to do about it where it comes of this agent."""
        if self.profile is not None:
            advise(error, self.profile)

    @property
    def methods(self) -> tuple[AuthMethod, ...]:
        """The ways to log in that the agent offers."""
        return auth_methods(self.client.agent.auth_methods, self.command)

    async def login_required(self) -> bool:
        """Log in, where it was said how."""
        return await self.login.log_in(self.client)

    def give_up(self, run: Run[Any]) -> None:
        """End the agent's process, whose turn could not be ended in any other way.

        Not while other runs depend on it. Those that wait for a session with such a turn do not.
        """
        others = sum(map(self._depends, self.runs))
        if others:
            self.logger.warning(
                "Agent %s does not end the turn of %s; it goes on, because %d other runs need the agent",
                self.name,
                run.id,
                others,
            )
            return
        self.logger.warning(
            "Agent %s does not end the turn of %s, so its process is ended", self.name, run.id
        )
        for waiting in tuple(self.runs):
            if not waiting.given_up:
                waiting.stop(SessionUnusable(waiting.session_id or ""))  # says more than the agent's end
        self.kill()

    def _depends(self, run: Run[Any]) -> bool:
        """Whether anything can come of a run as long as the agent lives."""
        session = self.sessions.get(run.session_id or "")
        return not run.given_up and (session is None or session.usable)

    # Questions

    def withdraw(self, concerns: Callable[[Question], bool]) -> None:
        """Cancel the open questions that concern the caller: nobody waits for their answers any more."""
        self.asking.withdraw(self.client, concerns)

    async def request_permission(self, request: s.RequestPermissionRequest, /) -> s.RequestPermissionResponse:
        """Ask those who decide."""
        return await self.asking.permission(request)

    async def create_elicitation(self, request: s.CreateElicitationRequest, /) -> s.CreateElicitationResponse:
        """Ask those who decide."""
        return await self.asking.elicitation(request)

    def complete_elicitation(self, notification: s.CompleteElicitationNotification, /) -> None:
        """Tell of it where the question was asked."""
        self.asking.completed(notification)

    # Files and terminals

    async def read_text_file(self, request: s.ReadTextFileRequest, /) -> s.ReadTextFileResponse:
        """Return a file's text."""
        self.asking.check(request.session_id, kind="read", path=request.path)
        with self._served(request.session_id) as workspace:
            return await workspace.read_text_file(request)

    async def write_text_file(self, request: s.WriteTextFileRequest, /) -> s.WriteTextFileResponse:
        """Write a file's text."""
        self.asking.check(request.session_id, kind="edit", path=request.path)
        with self._served(request.session_id) as workspace:
            return await workspace.write_text_file(request)

    async def create_terminal(self, request: s.CreateTerminalRequest, /) -> s.CreateTerminalResponse:
        """Start a command."""
        # Without arguments it may be a whole line for a shell.
        command = shlex.join([request.command, *request.args]) if request.args else request.command
        self.asking.check(request.session_id, kind="execute", command=command)
        with self._served(request.session_id) as workspace:
            return await workspace.create_terminal(request)

    async def terminal_output(self, request: s.TerminalOutputRequest, /) -> s.TerminalOutputResponse:
        """Return what a terminal has printed."""
        with self._served(request.session_id) as workspace:
            return await workspace.terminal_output(request)

    async def wait_for_terminal_exit(
        self, request: s.WaitForTerminalExitRequest, /
    ) -> s.WaitForTerminalExitResponse:
        """Wait for a terminal's command to end."""
        with self._served(request.session_id) as workspace:
            return await workspace.wait_for_terminal_exit(request)

    async def kill_terminal(self, request: s.KillTerminalRequest, /) -> s.KillTerminalResponse:
        """End a terminal's command."""
        with self._served(request.session_id) as workspace:
            return await workspace.kill_terminal(request)

    async def release_terminal(self, request: s.ReleaseTerminalRequest, /) -> s.ReleaseTerminalResponse:
        """End a terminal's command and forget it."""
        with self._served(request.session_id) as workspace:
            return await workspace.release_terminal(request)

    @contextmanager
    def _served(self, session_id: str) -> Generator[WorkspaceService]:
        """Serve a request: a sign of life of the agent, which waits for us."""
        assert self.workspace is not None  # else it was not advertised, and was refused before
        session = self.sessions.get(session_id)
        with nullcontext() if session is None else session.standing_still():
            yield self.workspace

    # MCP over ACP

    def _tool_host(self, method: str) -> AcpToolHost:
        if self.hosts.acp is None:
            raise RpcError.method_not_found(method)
        return self.hosts.acp

    async def connect_mcp(self, request: s.ConnectMcpRequest, /) -> s.ConnectMcpResponse:
        """Open an MCP session with a tool server of ours."""
        return await self._tool_host("mcp/connect").connect(request)

    async def message_mcp(self, request: s.MessageMcpRequest, /) -> s.JsonValue:
        """Serve a request inside an MCP session."""
        return await self._tool_host("mcp/message").message(request)

    def notify_mcp(self, notification: s.MessageMcpNotification, /) -> None:
        """Take a notification inside an MCP session."""
        if self.hosts.acp is not None:
            self.tasks.start_soon(self.hosts.acp.notification, notification)

    async def disconnect_mcp(self, request: s.DisconnectMcpRequest, /) -> s.DisconnectMcpResponse:
        """Close an MCP session."""
        return await self._tool_host("mcp/disconnect").disconnect(request)


def _nothing() -> None:
    """Do nothing."""
