"""The requests that open and close a session."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, TypedDict

import anyio

from thinkwell._core.log.log_lines import log_fields
from thinkwell_acp import AcpError, DecodeError
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from thinkwell._core.log.observers import SessionObservers
    from thinkwell._core.session.tools import SessionTools
    from thinkwell_acp import Client

logger = logging.getLogger("thinkwell")

CLOSE_TIMEOUT: Final = 2.0
"""Seconds that closing a session waits for the agent's answer."""


class _Common(TypedDict):
    """The part that all requests to open a session have."""

    cwd: str
    mcp_servers: tuple[s.McpServer, ...]
    additional_directories: tuple[str, ...]
    system_prompt: s.SystemPrompt | None
    meta: dict[str, str] | None


class SessionCalls:
    """The requests of one session.

    Args:
        client: The connection to the agent.
        cwd: The folder to work in.
        mcp_servers: MCP servers besides ours.
        directories: More folders to work in.
        tools: Our tools.
        system_prompt: Instructions for the session.
        observers: Return additions to ``_meta``.
    """

    def __init__(
        self,
        client: Client,
        cwd: str,
        mcp_servers: Sequence[s.McpServer],
        directories: Sequence[str],
        tools: SessionTools,
        system_prompt: s.SystemPrompt | None,
        observers: SessionObservers,
    ) -> None:
        self._client = client
        self._cwd = cwd
        self._mcp_servers = tuple(mcp_servers)
        self._directories = tuple(directories)
        self._tools = tools
        self._system_prompt = system_prompt
        self._observers = observers

    def _common(self) -> _Common:
        ours = self._tools.config
        return {
            "cwd": self._cwd,
            "mcp_servers": self._mcp_servers if ours is None else (*self._mcp_servers, ours),
            "additional_directories": self._directories,
            "system_prompt": self._system_prompt,
            "meta": {**self._observers.meta()} or None,
        }

    async def new(self, heard: Callable[[s.NewSessionResponse], None]) -> s.NewSessionResponse:
        """Open a new session."""
        return await self._client.new_session(s.NewSessionRequest(**self._common()), heard)

    async def fork(
        self, source: str, heard: Callable[[s.ForkSessionResponse], None]
    ) -> s.ForkSessionResponse:
        """Open a copy of a session."""
        request = s.ForkSessionRequest(session_id=source, **self._common())
        return await self._client.fork_session(request, heard)

    async def load(self, session_id: str, heard: Callable[[s.LoadSessionResponse], None]) -> None:
        """Reopen a session, and let the agent repeat the conversation."""
        request = s.LoadSessionRequest(session_id=session_id, **self._common())
        await self._client.load_session(request, heard)

    async def resume(self, session_id: str, heard: Callable[[s.ResumeSessionResponse], None]) -> None:
        """Reopen a session."""
        request = s.ResumeSessionRequest(session_id=session_id, **self._common())
        await self._client.resume_session(request, heard)

    @property
    def can_close(self) -> bool:
        """Whether the agent can close a session."""
        flags = self._client.capabilities.session_capabilities
        return self._client.connection.error is None and flags.close is not None

    async def close(self, session_id: str, seconds: float = CLOSE_TIMEOUT) -> None:
        """Close a session if the agent can."""
        if self.can_close:
            with anyio.move_on_after(seconds) as limit:
                try:
                    await self._client.close_session(s.CloseSessionRequest(session_id=session_id))
                except (AcpError, DecodeError) as exc:
                    about = "session/close of %s: %s"
                    logger.debug(about, session_id, exc, extra=log_fields(session=session_id))
            if limit.cancelled_caught:
                about = "The agent has not closed session %s within %g s"
                logger.info(about, session_id, seconds, extra=log_fields(session=session_id))
