"""What each side may be asked, as classes to override.

Every method has a default that is right for a side that does not serve it: the request is refused as not
found. Requests run in a task of their own; an exception costs that request only. The synchronous methods are
called while messages are being read, in the order in which they came; they must not block.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from thinkwell_acp import schema as s
from thinkwell_acp.errors import RpcError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkwell_acp._jsonrpc import Malformed
    from thinkwell_acp.agent import AgentSide
    from thinkwell_acp.errors import AcpError

__all__ = (
    "AgentHandler",
    "ClientHandler",
    "CommonHandler",
)

logger = logging.getLogger("thinkwell.acp")


class CommonHandler:
    """What both sides may be asked."""

    async def ext_request(self, method: str, params: s.JsonValue, /) -> s.JsonValue:
        """Serve an extension request; `method` starts with an underscore."""
        raise RpcError.method_not_found(method)

    def ext_notification(self, method: str, params: s.JsonValue, /) -> None:
        """Take an extension notification, or one that the protocol does not know."""

    def malformed(self, report: Malformed, /) -> None:
        """Take something that is no message. The default logs it."""
        logger.warning("Not a message: %s, %d bytes", report.reason, len(report.line))
        logger.debug("That line: %.200r", report.line)

    def closed(self, reason: AcpError, /) -> None:
        """Learn that the connection has ended."""

    async def message_mcp(self, request: s.MessageMcpRequest, /) -> s.JsonValue:
        """Serve a request inside an MCP connection; the answer is the inner result."""
        raise RpcError.method_not_found("mcp/message")

    def notify_mcp(self, notification: s.MessageMcpNotification, /) -> None:
        """Take a notification inside an MCP connection."""


class ClientHandler(CommonHandler):
    """What an agent may ask of a client."""

    async def login_required(self) -> bool:
        """Log in, because the agent answered a call with `AUTH_REQUIRED`; return whether to make it again.

        The call is made again once. Not asked for calls that are about logging in or closing, and for
        `Client.start_prompt`, whose caller can do the same.
        """
        return False

    def session_updates(self, batch: Sequence[s.SessionNotification], /) -> None:
        """Take session updates: all that were read together, in their order."""

    async def request_permission(self, request: s.RequestPermissionRequest, /) -> s.RequestPermissionResponse:
        """Choose one of the offered options. The default rejects; without an option for that, it cancels."""
        for kind in ("reject_once", "reject_always"):
            for option in request.options:
                if option.kind == kind:
                    return s.RequestPermissionResponse(
                        outcome=s.SelectedPermissionOutcome(option_id=option.option_id)
                    )
        return s.RequestPermissionResponse(outcome=s.CancelledPermissionOutcome())

    async def create_elicitation(self, request: s.CreateElicitationRequest, /) -> s.CreateElicitationResponse:
        """Ask the user, by form or by URL."""
        raise RpcError.method_not_found("elicitation/create")

    def complete_elicitation(self, notification: s.CompleteElicitationNotification, /) -> None:
        """Learn that what a URL was opened for is done."""

    async def read_text_file(self, request: s.ReadTextFileRequest, /) -> s.ReadTextFileResponse:
        """Return a file's text."""
        raise RpcError.method_not_found("fs/read_text_file")

    async def write_text_file(self, request: s.WriteTextFileRequest, /) -> s.WriteTextFileResponse:
        """Write a file's text."""
        raise RpcError.method_not_found("fs/write_text_file")

    async def create_terminal(self, request: s.CreateTerminalRequest, /) -> s.CreateTerminalResponse:
        """Start a command and return its terminal's id at once."""
        raise RpcError.method_not_found("terminal/create")

    async def terminal_output(self, request: s.TerminalOutputRequest, /) -> s.TerminalOutputResponse:
        """Return what a terminal has printed."""
        raise RpcError.method_not_found("terminal/output")

    async def wait_for_terminal_exit(
        self, request: s.WaitForTerminalExitRequest, /
    ) -> s.WaitForTerminalExitResponse:
        """Wait for a terminal's command to end."""
        raise RpcError.method_not_found("terminal/wait_for_exit")

    async def kill_terminal(self, request: s.KillTerminalRequest, /) -> s.KillTerminalResponse:
        """Kill a terminal's command and keep its id."""
        raise RpcError.method_not_found("terminal/kill")

    async def release_terminal(self, request: s.ReleaseTerminalRequest, /) -> s.ReleaseTerminalResponse:
        """Kill a terminal's command and forget its id."""
        raise RpcError.method_not_found("terminal/release")

    async def connect_mcp(self, request: s.ConnectMcpRequest, /) -> s.ConnectMcpResponse:
        """Open an MCP session with a server that this client declared."""
        raise RpcError.method_not_found("mcp/connect")

    async def disconnect_mcp(self, request: s.DisconnectMcpRequest, /) -> s.DisconnectMcpResponse:
        """Close an MCP session."""
        raise RpcError.method_not_found("mcp/disconnect")


class AgentHandler(CommonHandler):
    """What a client may ask of an agent."""

    def connected(self, client: AgentSide, /) -> None:
        """Learn whom to talk to, before anything else is called."""

    async def initialize(self, request: s.InitializeRequest, /) -> s.InitializeResponse:
        """Agree on a version and exchange capabilities."""
        return s.InitializeResponse(protocol_version=1)

    async def authenticate(self, request: s.AuthenticateRequest, /) -> s.AuthenticateResponse:
        """Log in by one of the advertised methods."""
        raise RpcError.method_not_found("authenticate")

    async def logout(self, request: s.LogoutRequest, /) -> s.LogoutResponse:
        """Log out."""
        raise RpcError.method_not_found("logout")

    async def new_session(self, request: s.NewSessionRequest, /) -> s.NewSessionResponse:
        """Open a session."""
        raise RpcError.method_not_found("session/new")

    async def load_session(self, request: s.LoadSessionRequest, /) -> s.LoadSessionResponse:
        """Open an old session and replay its history before answering."""
        raise RpcError.method_not_found("session/load")

    async def resume_session(self, request: s.ResumeSessionRequest, /) -> s.ResumeSessionResponse:
        """Open an old session without replay."""
        raise RpcError.method_not_found("session/resume")

    async def fork_session(self, request: s.ForkSessionRequest, /) -> s.ForkSessionResponse:
        """Open a new session that starts with the history of another."""
        raise RpcError.method_not_found("session/fork")

    async def close_session(self, request: s.CloseSessionRequest, /) -> s.CloseSessionResponse:
        """Close a session."""
        raise RpcError.method_not_found("session/close")

    async def list_sessions(self, request: s.ListSessionsRequest, /) -> s.ListSessionsResponse:
        """List the sessions that can be opened."""
        raise RpcError.method_not_found("session/list")

    async def delete_session(self, request: s.DeleteSessionRequest, /) -> s.DeleteSessionResponse:
        """Delete a session."""
        raise RpcError.method_not_found("session/delete")

    async def set_session_mode(self, request: s.SetSessionModeRequest, /) -> s.SetSessionModeResponse:
        """Change a session's mode."""
        raise RpcError.method_not_found("session/set_mode")

    async def set_session_config_option(
        self, request: s.SetSessionConfigOptionRequest, /
    ) -> s.SetSessionConfigOptionResponse:
        """Change a session's option and return all of them."""
        raise RpcError.method_not_found("session/set_config_option")

    async def prompt(self, request: s.PromptRequest, /) -> s.PromptResponse:
        """Run a turn. It is cancelled when the client cancels the turn; the answer is then ``cancelled``."""
        raise RpcError.method_not_found("session/prompt")
