"""The agent's messages: updates, questions, and requests for us to serve."""

from __future__ import annotations

import logging
import shlex
from collections import deque
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Final

from thinkwell._core.agent.account import AuthStatus, read_auth_status
from thinkwell._core.log.log_lines import log_fields
from thinkwell_acp import AcpError, ClientHandler, RpcError
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Sequence

    from thinkwell._core.agent.questions import AgentQuestions
    from thinkwell._core.session.routes import SessionRoutes
    from thinkwell._core.session.session import WireSession
    from thinkwell._core.session.tool_hosts import ToolHosts
    from thinkwell._workspace.service import WorkspaceService
    from thinkwell.events import ToolKind
    from thinkwell_acp._jsonrpc import Malformed
    from thinkwell_acp._tasks import BackgroundTasks
    from thinkwell_acp.mcp import AcpToolHost

logger = logging.getLogger("thinkwell")

MALFORMED_WARNED: Final = 3
"""Malformed lines that get a warning each; some programs print them all the time."""

MALFORMED_KEPT: Final = 5
"""Malformed lines that are kept to explain a failed start."""


class Incoming(ClientHandler):
    """Serves one agent.

    Args:
        agent: The agent's name.
        tasks: Tasks that serve MCP notifications.
        routes: Its sessions.
        questions: Answers its questions.
        workspace: Serves files and terminals.
        tool_hosts: Hosts of our tools.
        log_in: Logs in, if a method was given.
        closed: Called when the connection has ended.
    """

    def __init__(
        self,
        agent: str,
        tasks: BackgroundTasks,
        *,
        routes: SessionRoutes[WireSession],
        questions: AgentQuestions,
        workspace: WorkspaceService | None,
        tool_hosts: ToolHosts,
        log_in: Callable[[], Awaitable[bool]],
        closed: Callable[[AcpError], None],
    ) -> None:
        self._agent = agent
        self._tasks = tasks
        self._routes = routes
        self._questions = questions
        self._workspace = workspace
        self._tool_hosts = tool_hosts
        self._log_in = log_in
        self._closed = closed
        self._malformed = 0
        self.auth_status: AuthStatus | None = None
        """The agent's login status, as last reported."""
        self.malformed_lines: deque[bytes] = deque(maxlen=MALFORMED_KEPT)

    def closed(self, reason: AcpError, /) -> None:
        """Pass on that the connection has ended."""
        self._closed(reason)

    async def login_required(self) -> bool:
        """Log in, if a method was given."""
        return await self._log_in()

    def session_updates(self, batch: Sequence[s.SessionNotification], /) -> None:
        """Route updates to their sessions, in order."""
        self._routes.updates(batch)

    def malformed(self, report: Malformed, /) -> None:
        """Log malformed input, and keep its beginning."""
        self.malformed_lines.append(report.line[:1000])
        self._malformed += 1
        level = logging.WARNING if self._malformed <= MALFORMED_WARNED else logging.DEBUG
        about = "Agent %s sent a malformed message: %s, %d bytes"
        extra = log_fields(agent=self._agent)
        logger.log(level, about, self._agent, report.reason, len(report.line), extra=extra)
        logger.debug("That line of agent %s: %.200r", self._agent, report.line, extra=extra)
        if self._malformed == MALFORMED_WARNED:
            logger.warning(
                "More malformed messages from agent %s are logged as DEBUG", self._agent, extra=extra
            )

    def ext_notification(self, method: str, params: s.JsonValue, /) -> None:
        """Keep the login status."""
        if method == "_auth/status_update":
            self.auth_status = read_auth_status(params) or self.auth_status

    # Questions

    async def request_permission(self, request: s.RequestPermissionRequest, /) -> s.RequestPermissionResponse:
        """Ask the handlers."""
        return await self._questions.permission(request)

    async def create_elicitation(self, request: s.CreateElicitationRequest, /) -> s.CreateElicitationResponse:
        """Ask the handlers."""
        return await self._questions.elicitation(request)

    def complete_elicitation(self, notification: s.CompleteElicitationNotification, /) -> None:
        """Report the end of a web page where the question was asked."""
        self._questions.asker.open.page_done(notification.elicitation_id)

    # Files and terminals

    async def read_text_file(self, request: s.ReadTextFileRequest, /) -> s.ReadTextFileResponse:
        """Return a file's text."""
        with self._served(request.session_id, changes=False, kind="read", path=request.path) as workspace:
            return await workspace.read_text_file(request)

    async def write_text_file(self, request: s.WriteTextFileRequest, /) -> s.WriteTextFileResponse:
        """Write a file's text."""
        with self._served(request.session_id, kind="edit", path=request.path) as workspace:
            return await workspace.write_text_file(request)

    async def create_terminal(self, request: s.CreateTerminalRequest, /) -> s.CreateTerminalResponse:
        """Start a command."""
        # Without arguments it may be a whole line for a shell.
        command = shlex.join([request.command, *request.args]) if request.args else request.command
        with self._served(request.session_id, kind="execute", command=command) as workspace:
            return await workspace.create_terminal(request)

    async def terminal_output(self, request: s.TerminalOutputRequest, /) -> s.TerminalOutputResponse:
        """Return the output of a terminal."""
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
    def _served(
        self,
        session_id: str,
        *,
        changes: bool = True,
        kind: ToolKind | None = None,
        command: str | None = None,
        path: str = "",
    ) -> Generator[WorkspaceService]:
        """Serve a request: a sign of life of the agent, which waits for us.

        Args:
            session_id: Its session.
            changes: Whether it may change something.
            kind: What it does, where rules may forbid it.
            command: The command that it would run.
            path: The file that it is about.
        """
        assert self._workspace is not None  # else it was not advertised, and was refused before
        session = self._routes.get(session_id)
        if changes and session is not None and session.occupant is not None:
            session.occupant.observers.served()
        if kind is not None:
            self._questions.check(session_id, kind=kind, command=command, path=path)
        with nullcontext() if session is None else session.standing_still():
            yield self._workspace

    # MCP over ACP

    def _tool_host(self, method: str) -> AcpToolHost:
        if self._tool_hosts.acp is None:
            raise RpcError.method_not_found(method)
        return self._tool_hosts.acp

    async def connect_mcp(self, request: s.ConnectMcpRequest, /) -> s.ConnectMcpResponse:
        """Open an MCP session with a tool server of ours."""
        return await self._tool_host("mcp/connect").connect(request)

    async def message_mcp(self, request: s.MessageMcpRequest, /) -> s.JsonValue:
        """Serve a request inside an MCP session."""
        return await self._tool_host("mcp/message").message(request)

    def notify_mcp(self, notification: s.MessageMcpNotification, /) -> None:
        """Handle a notification inside an MCP session."""
        if self._tool_hosts.acp is not None:
            self._tasks.start_soon(self._tool_hosts.acp.notification, notification)

    async def disconnect_mcp(self, request: s.DisconnectMcpRequest, /) -> s.DisconnectMcpResponse:
        """Close an MCP session."""
        return await self._tool_host("mcp/disconnect").disconnect(request)
