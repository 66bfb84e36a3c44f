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


def _agent(name: str, params: type[Model], result: type[object] | None = None, gate: str = "") -> Method:
    """Return a method of agents; `gate` is the path of the capability that it needs."""
    return Method(name, "agent", params, result, Gate("agent", (tuple(gate.split(".")),)) if gate else None)


def _client(name: str, params: type[Model], result: type[object] | None = None, gate: str = "") -> Method:
    return Method(name, "client", params, result, Gate("client", (tuple(gate.split(".")),)) if gate else None)


_MCP: Final = Gate("agent", (("mcp_capabilities", "acp"),))

METHODS: Final[tuple[Method, ...]] = (
    _agent("initialize", initialize.InitializeRequest, initialize.InitializeResponse),
    _agent("authenticate", auth.AuthenticateRequest, auth.AuthenticateResponse),
    _agent("logout", auth.LogoutRequest, auth.LogoutResponse, "auth.logout"),
    _agent("providers/list", providers.ListProvidersRequest, providers.ListProvidersResponse, "providers"),
    _agent("providers/set", providers.SetProviderRequest, providers.SetProviderResponse, "providers"),
    _agent(
        "providers/disable", providers.DisableProviderRequest, providers.DisableProviderResponse, "providers"
    ),
    _agent("session/new", session.NewSessionRequest, session.NewSessionResponse),
    _agent("session/load", session.LoadSessionRequest, session.LoadSessionResponse, "load_session"),
    _agent(
        "session/resume",
        session.ResumeSessionRequest,
        session.ResumeSessionResponse,
        "session_capabilities.resume",
    ),
    _agent(
        "session/fork", session.ForkSessionRequest, session.ForkSessionResponse, "session_capabilities.fork"
    ),
    _agent(
        "session/close",
        session.CloseSessionRequest,
        session.CloseSessionResponse,
        "session_capabilities.close",
    ),
    _agent(
        "session/list", session.ListSessionsRequest, session.ListSessionsResponse, "session_capabilities.list"
    ),
    _agent(
        "session/delete",
        session.DeleteSessionRequest,
        session.DeleteSessionResponse,
        "session_capabilities.delete",
    ),
    _agent("session/prompt", prompt.PromptRequest, prompt.PromptResponse),
    _agent("session/cancel", prompt.CancelNotification),
    _agent("session/set_mode", config.SetSessionModeRequest, config.SetSessionModeResponse),
    _agent("session/set_model", config.SetSessionModelRequest, config.SetSessionModelResponse),
    _agent(
        "session/set_config_option",
        config.SetSessionConfigOptionRequest,
        config.SetSessionConfigOptionResponse,
    ),
    _client("session/update", updates.SessionNotification),
    _client(
        "session/request_permission",
        permission.RequestPermissionRequest,
        permission.RequestPermissionResponse,
    ),
    _client(
        "fs/read_text_file",
        filesystem.ReadTextFileRequest,
        filesystem.ReadTextFileResponse,
        "fs.read_text_file",
    ),
    _client(
        "fs/write_text_file",
        filesystem.WriteTextFileRequest,
        filesystem.WriteTextFileResponse,
        "fs.write_text_file",
    ),
    _client("terminal/create", terminal.CreateTerminalRequest, terminal.CreateTerminalResponse, "terminal"),
    _client("terminal/output", terminal.TerminalOutputRequest, terminal.TerminalOutputResponse, "terminal"),
    _client(
        "terminal/wait_for_exit",
        terminal.WaitForTerminalExitRequest,
        terminal.WaitForTerminalExitResponse,
        "terminal",
    ),
    _client("terminal/kill", terminal.KillTerminalRequest, terminal.KillTerminalResponse, "terminal"),
    _client(
        "terminal/release", terminal.ReleaseTerminalRequest, terminal.ReleaseTerminalResponse, "terminal"
    ),
    Method(
        "elicitation/create",
        "client",
        elicitation.CreateElicitationRequest,
        elicitation.CreateElicitationResponse,
        Gate("client", (("elicitation", "form"), ("elicitation", "url"))),
    ),
    _client("elicitation/complete", elicitation.CompleteElicitationNotification, gate="elicitation.url"),
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
