"""All methods of the protocol in one table."""

from typing import Final, Literal, NamedTuple, TypeAlias

from thinkwell_acp.schema import (
    auth,
    config,
    elicitation,
    filesystem,
    initialize,
    mcp,
    permission,
    prompt,
    protocol,
    providers,
    session,
    terminal,
    updates,
)
from thinkwell_acp.schema._base import Model

__all__ = ("METHODS", "NOTIFICATIONS", "REQUESTS", "Gate", "Method", "Side")

Side: TypeAlias = Literal["agent", "client", "both"]
"""The side that handles a method."""


class Gate(NamedTuple):
    """The capability that a method needs.

    Attributes:
        holder: the side that advertises it.
        paths: paths of attribute names; any one of them is enough.
    """

    holder: Literal["agent", "client"]
    paths: tuple[tuple[str, ...], ...]

    def is_open(self, capabilities: Model) -> bool:
        """Return whether the holder's capabilities include it."""
        return any(_holds(capabilities, path) for path in self.paths)


class Method(NamedTuple):
    """A method of the protocol.

    Attributes:
        name: its name on the wire.
        side: the side that handles it.
        params: the type of its parameters.
        result: the type of its result, `object` for any JSON; `None` for a notification.
        gate: `None` if it needs no capability.
    """

    name: str
    side: Side
    params: type[Model]
    result: type[object] | None = None
    gate: Gate | None = None


def _holds(capabilities: object, path: tuple[str, ...]) -> bool:
    value: object = capabilities
    for name in path:
        value = getattr(value, name, None)
    return value is not None and value is not False


def _agent(*path: str) -> Gate:
    return Gate("agent", (path,))


def _client(*path: str) -> Gate:
    return Gate("client", (path,))


_SESSION: Final = "session_capabilities"
_TERMINAL: Final = _client("terminal")
_MCP: Final = _agent("mcp_capabilities", "acp")

METHODS: Final[tuple[Method, ...]] = (
    Method("initialize", "agent", initialize.InitializeRequest, initialize.InitializeResponse),
    Method("authenticate", "agent", auth.AuthenticateRequest, auth.AuthenticateResponse),
    Method("logout", "agent", auth.LogoutRequest, auth.LogoutResponse, _agent("auth", "logout")),
    Method(
        "providers/list",
        "agent",
        providers.ListProvidersRequest,
        providers.ListProvidersResponse,
        _agent("providers"),
    ),
    Method(
        "providers/set",
        "agent",
        providers.SetProviderRequest,
        providers.SetProviderResponse,
        _agent("providers"),
    ),
    Method(
        "providers/disable",
        "agent",
        providers.DisableProviderRequest,
        providers.DisableProviderResponse,
        _agent("providers"),
    ),
    Method("session/new", "agent", session.NewSessionRequest, session.NewSessionResponse),
    Method(
        "session/load",
        "agent",
        session.LoadSessionRequest,
        session.LoadSessionResponse,
        _agent("load_session"),
    ),
    Method(
        "session/resume",
        "agent",
        session.ResumeSessionRequest,
        session.ResumeSessionResponse,
        _agent(_SESSION, "resume"),
    ),
    Method(
        "session/fork",
        "agent",
        session.ForkSessionRequest,
        session.ForkSessionResponse,
        _agent(_SESSION, "fork"),
    ),
    Method(
        "session/close",
        "agent",
        session.CloseSessionRequest,
        session.CloseSessionResponse,
        _agent(_SESSION, "close"),
    ),
    Method(
        "session/list",
        "agent",
        session.ListSessionsRequest,
        session.ListSessionsResponse,
        _agent(_SESSION, "list"),
    ),
    Method(
        "session/delete",
        "agent",
        session.DeleteSessionRequest,
        session.DeleteSessionResponse,
        _agent(_SESSION, "delete"),
    ),
    Method("session/prompt", "agent", prompt.PromptRequest, prompt.PromptResponse),
    Method("session/cancel", "agent", prompt.CancelNotification),
    Method("session/set_mode", "agent", config.SetSessionModeRequest, config.SetSessionModeResponse),
    Method("session/set_model", "agent", config.SetSessionModelRequest, config.SetSessionModelResponse),
    Method(
        "session/set_config_option",
        "agent",
        config.SetSessionConfigOptionRequest,
        config.SetSessionConfigOptionResponse,
    ),
    Method("session/update", "client", updates.SessionNotification),
    Method(
        "session/request_permission",
        "client",
        permission.RequestPermissionRequest,
        permission.RequestPermissionResponse,
    ),
    Method(
        "fs/read_text_file",
        "client",
        filesystem.ReadTextFileRequest,
        filesystem.ReadTextFileResponse,
        _client("fs", "read_text_file"),
    ),
    Method(
        "fs/write_text_file",
        "client",
        filesystem.WriteTextFileRequest,
        filesystem.WriteTextFileResponse,
        _client("fs", "write_text_file"),
    ),
    Method(
        "terminal/create",
        "client",
        terminal.CreateTerminalRequest,
        terminal.CreateTerminalResponse,
        _TERMINAL,
    ),
    Method(
        "terminal/output",
        "client",
        terminal.TerminalOutputRequest,
        terminal.TerminalOutputResponse,
        _TERMINAL,
    ),
    Method(
        "terminal/wait_for_exit",
        "client",
        terminal.WaitForTerminalExitRequest,
        terminal.WaitForTerminalExitResponse,
        _TERMINAL,
    ),
    Method(
        "terminal/kill",
        "client",
        terminal.KillTerminalRequest,
        terminal.KillTerminalResponse,
        _TERMINAL,
    ),
    Method(
        "terminal/release",
        "client",
        terminal.ReleaseTerminalRequest,
        terminal.ReleaseTerminalResponse,
        _TERMINAL,
    ),
    Method(
        "elicitation/create",
        "client",
        elicitation.CreateElicitationRequest,
        elicitation.CreateElicitationResponse,
        Gate("client", (("elicitation", "form"), ("elicitation", "url"))),
    ),
    Method(
        "elicitation/complete",
        "client",
        elicitation.CompleteElicitationNotification,
        gate=_client("elicitation", "url"),
    ),
    Method("mcp/connect", "client", mcp.ConnectMcpRequest, mcp.ConnectMcpResponse, _MCP),
    Method("mcp/disconnect", "client", mcp.DisconnectMcpRequest, mcp.DisconnectMcpResponse, _MCP),
    Method("mcp/message", "both", mcp.MessageMcpRequest, object, _MCP),
    Method("mcp/message", "both", mcp.MessageMcpNotification, gate=_MCP),
    Method("$/cancel_request", "both", protocol.CancelRequestNotification),
)
"""All methods. `mcp/message` is in it twice, as a request and as a notification."""

REQUESTS: Final[dict[str, Method]] = {method.name: method for method in METHODS if method.result is not None}
"""The requests, by name."""

NOTIFICATIONS: Final[dict[str, Method]] = {method.name: method for method in METHODS if method.result is None}
"""The notifications, by name."""
