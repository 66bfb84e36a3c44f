"""Opening, finding and ending sessions. All paths are absolute."""

from typing import Literal, TypeAlias

from thinkwell_acp.schema._base import Extensible, Lenient, OfSession, Strict
from thinkwell_acp.schema.config import SessionConfigOption, SessionModelState, SessionModeState
from thinkwell_acp.schema.content import TextContent
from thinkwell_acp.schema.mcp import McpServer

__all__ = (
    "CloseSessionRequest",
    "CloseSessionResponse",
    "DeleteSessionRequest",
    "DeleteSessionResponse",
    "ForkSessionRequest",
    "ForkSessionResponse",
    "ListSessionsRequest",
    "ListSessionsResponse",
    "LoadSessionRequest",
    "LoadSessionResponse",
    "NewSessionRequest",
    "NewSessionResponse",
    "ResumeSessionRequest",
    "ResumeSessionResponse",
    "SessionId",
    "SessionInfo",
    "SystemPrompt",
    "SystemPromptMode",
)

SessionId: TypeAlias = str
"""The id of a session; chosen by the agent."""


class _OpenedSession(Extensible, frozen=True, kw_only=True):
    modes: SessionModeState | None = None
    config_options: tuple[SessionConfigOption, ...] | None = None
    models: SessionModelState | None = None


SystemPromptMode: TypeAlias = Literal["append", "override"]
"""Whether a system prompt is added to the agent's own instructions, or replaces them."""


class SystemPrompt(Extensible, frozen=True, kw_only=True):
    """The client's instructions for a session."""

    mode: SystemPromptMode
    content: tuple[TextContent, ...]


class NewSessionRequest(Extensible, frozen=True, kw_only=True):
    """Parameters of `session/new`."""

    cwd: str
    mcp_servers: Lenient[tuple[McpServer, ...]]
    additional_directories: tuple[str, ...] = ()
    system_prompt: Strict[SystemPrompt | None] = None


class NewSessionResponse(_OpenedSession, frozen=True, kw_only=True):
    """Result of `session/new`. Config options for a mode or a model override `modes` and `models`."""

    session_id: SessionId


class LoadSessionRequest(OfSession, frozen=True, kw_only=True):
    """Parameters of `session/load`: continue a session and replay its history."""

    cwd: str
    mcp_servers: Lenient[tuple[McpServer, ...]]
    additional_directories: tuple[str, ...] = ()
    system_prompt: Strict[SystemPrompt | None] = None


class LoadSessionResponse(_OpenedSession, frozen=True, kw_only=True):
    """Result of `session/load`."""


class ResumeSessionRequest(OfSession, frozen=True, kw_only=True):
    """Parameters of `session/resume`: continue a session without a replay."""

    cwd: str
    mcp_servers: tuple[McpServer, ...] = ()
    additional_directories: tuple[str, ...] = ()
    system_prompt: Strict[SystemPrompt | None] = None


class ResumeSessionResponse(_OpenedSession, frozen=True, kw_only=True):
    """Result of `session/resume`."""


class ForkSessionRequest(OfSession, frozen=True, kw_only=True):
    """Parameters of `session/fork` (unstable): a new session with the history of another."""

    cwd: str
    mcp_servers: tuple[McpServer, ...] = ()
    additional_directories: tuple[str, ...] = ()
    system_prompt: Strict[SystemPrompt | None] = None


class ForkSessionResponse(_OpenedSession, frozen=True, kw_only=True):
    """Result of `session/fork` (unstable)."""

    session_id: SessionId


class CloseSessionRequest(OfSession, frozen=True, kw_only=True):
    """Parameters of `session/close`."""


class CloseSessionResponse(Extensible, frozen=True, kw_only=True):
    """Result of `session/close`."""


class DeleteSessionRequest(OfSession, frozen=True, kw_only=True):
    """Parameters of `session/delete`."""


class DeleteSessionResponse(Extensible, frozen=True, kw_only=True):
    """Result of `session/delete`."""


class ListSessionsRequest(Extensible, frozen=True, kw_only=True):
    """Parameters of `session/list`."""

    cwd: Strict[str | None] = None
    cursor: Strict[str | None] = None


class SessionInfo(OfSession, frozen=True, kw_only=True):
    """A session that the agent knows.

    Attributes:
        updated_at: ISO 8601.
    """

    cwd: str
    additional_directories: tuple[str, ...] = ()
    title: str | None = None
    updated_at: str | None = None


class ListSessionsResponse(Extensible, frozen=True, kw_only=True):
    """Result of `session/list`. Without a cursor there are no more."""

    sessions: Lenient[tuple[SessionInfo, ...]]
    next_cursor: str | None = None
