"""The agent's side: typed calls to a client, and turns that can be cancelled."""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from anyio.lowlevel import checkpoint_if_cancelled

from thinkwell_acp import schema as s
from thinkwell_acp._framing import MAX_LINE
from thinkwell_acp._side import CommonHandler, Side
from thinkwell_acp.connection import open_connection
from thinkwell_acp.errors import RpcError
from thinkwell_acp.schema import DecodeError, decode
from thinkwell_acp.schema._base import OfSession

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    import msgspec

    from thinkwell_acp._jsonrpc import Request, RequestId
    from thinkwell_acp.connection import Connection
    from thinkwell_acp.transport import Transport

__all__ = (
    "AgentHandler",
    "AgentSide",
    "serve_agent",
)


class AgentHandler(CommonHandler):
    """Requests and notifications that an agent may receive."""

    def connected(self, client: AgentSide, /) -> None:
        """Receive the connection to the client, before anything else is called."""

    async def initialize(self, request: s.InitializeRequest, /) -> s.InitializeResponse:
        """Agree on a version and exchange capabilities."""
        return s.InitializeResponse(protocol_version=1)

    async def authenticate(self, request: s.AuthenticateRequest, /) -> s.AuthenticateResponse:
        """Log in by one of the advertised methods."""
        raise RpcError.method_not_found("authenticate")

    async def logout(self, request: s.LogoutRequest, /) -> s.LogoutResponse:
        """Log out."""
        raise RpcError.method_not_found("logout")

    async def list_providers(self, request: s.ListProvidersRequest, /) -> s.ListProvidersResponse:
        """List the model services that can be chosen."""
        raise RpcError.method_not_found("providers/list")

    async def set_provider(self, request: s.SetProviderRequest, /) -> s.SetProviderResponse:
        """Set the address of a model service."""
        raise RpcError.method_not_found("providers/set")

    async def disable_provider(self, request: s.DisableProviderRequest, /) -> s.DisableProviderResponse:
        """Disable a model service."""
        raise RpcError.method_not_found("providers/disable")

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

    async def set_session_model(self, request: s.SetSessionModelRequest, /) -> s.SetSessionModelResponse:
        """Change a session's model, if the answer that opened the session named `models`."""
        raise RpcError.method_not_found("session/set_model")

    async def set_session_config_option(
        self, request: s.SetSessionConfigOptionRequest, /
    ) -> s.SetSessionConfigOptionResponse:
        """Change a session's option and return all of them."""
        raise RpcError.method_not_found("session/set_config_option")

    async def prompt(self, request: s.PromptRequest, /) -> s.PromptResponse:
        """Run a turn. It is cancelled when the client cancels the turn; the answer is then ``cancelled``."""
        raise RpcError.method_not_found("session/prompt")


class AgentSide(Side[AgentHandler]):
    """A connection to a client. Made by `serve_agent`."""

    requests: ClassVar[Mapping[str, str]] = {
        "initialize": "initialize",
        "authenticate": "authenticate",
        "logout": "logout",
        "providers/list": "list_providers",
        "providers/set": "set_provider",
        "providers/disable": "disable_provider",
        "session/new": "new_session",
        "session/load": "load_session",
        "session/resume": "resume_session",
        "session/fork": "fork_session",
        "session/close": "close_session",
        "session/list": "list_sessions",
        "session/delete": "delete_session",
        "session/set_mode": "set_session_mode",
        "session/set_model": "set_session_model",
        "session/set_config_option": "set_session_config_option",
        "session/prompt": "prompt",
        "mcp/message": "message_mcp",
    }
    notifications: ClassVar[Mapping[str, str]] = {
        "session/cancel": "cancel",
        "mcp/message": "notify_mcp",
    }

    def __init__(self, connection: Connection, handler: AgentHandler) -> None:
        super().__init__(connection, handler)
        handler.connected(self)

    # Calls to the client

    def update(self, session_id: str, update: s.SessionUpdate) -> None:
        """Send a session update. Await `drain` now and then when sending many."""
        self.connection.notify("session/update", s.SessionNotification(session_id=session_id, update=update))

    async def drain(self) -> None:
        """Wait until most of the sent bytes are taken by the client."""
        await self.connection.drain()

    async def request_permission(self, request: s.RequestPermissionRequest) -> s.RequestPermissionResponse:
        """Ask for permission."""
        return await self.call("session/request_permission", request, s.RequestPermissionResponse)

    async def create_elicitation(self, request: s.CreateElicitationRequest) -> s.CreateElicitationResponse:
        """Ask the user."""
        return await self.call("elicitation/create", request, s.CreateElicitationResponse)

    def complete_elicitation(self, notification: s.CompleteElicitationNotification) -> None:
        """Report that the purpose of an opened URL is done."""
        self.connection.notify("elicitation/complete", notification)

    async def read_text_file(self, request: s.ReadTextFileRequest) -> s.ReadTextFileResponse:
        """Read a file through the client."""
        return await self.call("fs/read_text_file", request, s.ReadTextFileResponse)

    async def write_text_file(self, request: s.WriteTextFileRequest) -> s.WriteTextFileResponse:
        """Write a file through the client."""
        return await self.call("fs/write_text_file", request, s.WriteTextFileResponse)

    async def create_terminal(self, request: s.CreateTerminalRequest) -> s.CreateTerminalResponse:
        """Start a command in a terminal of the client."""
        return await self.call("terminal/create", request, s.CreateTerminalResponse)

    async def terminal_output(self, request: s.TerminalOutputRequest) -> s.TerminalOutputResponse:
        """Return the output of a terminal."""
        return await self.call("terminal/output", request, s.TerminalOutputResponse)

    async def wait_for_terminal_exit(
        self, request: s.WaitForTerminalExitRequest
    ) -> s.WaitForTerminalExitResponse:
        """Wait for a terminal's command to end."""
        return await self.call("terminal/wait_for_exit", request, s.WaitForTerminalExitResponse)

    async def kill_terminal(self, request: s.KillTerminalRequest) -> s.KillTerminalResponse:
        """Kill a terminal's command."""
        return await self.call("terminal/kill", request, s.KillTerminalResponse)

    async def release_terminal(self, request: s.ReleaseTerminalRequest) -> s.ReleaseTerminalResponse:
        """Release a terminal."""
        return await self.call("terminal/release", request, s.ReleaseTerminalResponse)

    async def connect_mcp(self, request: s.ConnectMcpRequest) -> s.ConnectMcpResponse:
        """Open an MCP session with a server that the client declared."""
        return await self.call("mcp/connect", request, s.ConnectMcpResponse)

    async def disconnect_mcp(self, request: s.DisconnectMcpRequest) -> s.DisconnectMcpResponse:
        """Close an MCP session."""
        return await self.call("mcp/disconnect", request, s.DisconnectMcpResponse)

    # The client's requests

    def updates(self, batch: list[s.SessionNotification], /) -> None:
        """Ignore updates, which only an agent may send."""

    async def request(self, id: RequestId, method: str, params: msgspec.Raw, /) -> object:  # noqa: A002
        """Serve a request. A turn does not begin if its ``session/cancel`` was read together with it."""
        if method == "session/prompt":
            await checkpoint_if_cancelled()
        return await super().request(id, method, params)

    def notified(self, method: str, params: s.Model) -> None:
        """Handle a notification; ``session/cancel`` needs no handler."""
        if not isinstance(params, s.CancelNotification):
            super().notified(method, params)
            return
        for served in self.connection.serving.values():
            if served.request.method == "session/prompt" and _session(served.request) == params.session_id:
                served.cancel(s.PromptResponse(stop_reason="cancelled"))


def _session(prompt: Request) -> str | None:
    with suppress(DecodeError):  # it is refused when it is served
        return decode(OfSession, prompt.params).session_id
    return None


@asynccontextmanager
async def serve_agent(
    transport: Transport, handler: AgentHandler, *, max_line: int = MAX_LINE
) -> AsyncGenerator[AgentSide]:
    """Run an agent on a transport, which is closed at the end of the block.

    Use `AgentSide.wait_closed` in the block to serve until the client leaves.
    """
    side = partial(AgentSide, handler=handler)
    async with open_connection(transport, side, max_line=max_line) as connection:
        yield connection.handler
