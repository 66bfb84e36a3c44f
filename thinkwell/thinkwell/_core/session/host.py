"""State that the sessions of one agent share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable

    from thinkwell._core.log.observers import Observers
    from thinkwell._core.log.owner import Owner
    from thinkwell._core.protocol.dialect import Dialect
    from thinkwell._core.session.routes import SessionRoutes
    from thinkwell._core.session.tool_hosts import ToolHosts
    from thinkwell._workspace.service import WorkspaceService
    from thinkwell_acp import Client


class SessionHost(Struct, frozen=True, kw_only=True):
    """State that the sessions of one agent share."""

    name: str
    """The agent's name."""
    client: Client
    """The connection to it."""
    owner: Owner
    """The place where it was opened."""
    dialect: Dialect
    """Its use of the protocol."""
    routes: SessionRoutes[Any]
    tool_hosts: ToolHosts
    workspace: WorkspaceService | None
    """Serves files and terminals."""
    observers: Observers
    whole_fields: bool
    """Whether the agent shows no field of a result before it is whole."""
    keeps_system: bool
    """Whether a session keeps the system prompt that it began with, or none."""
    withdraw: Callable[[str], None]
    """Withdraws the open questions of a session."""
