"""One check of the doctor, as a value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable

Status: TypeAlias = Literal["ok", "warning", "failed", "skipped", "unknown"]
"""The outcome of a check; ``unknown``: only a prompt would show it, and none was sent."""


class Check(Struct, frozen=True, kw_only=True):
    """One check of the doctor."""

    name: str
    """``found``, ``installed``, ``starts``, ``version``, ``protocol``, ``capabilities``, ``login``,
    ``session``, ``tools over acp``, ``tools over http``, ``tools over stdio``, ``answer``, ``typed result``,
    ``server NAME`` (for each of the caller's MCP servers), ``mcp servers`` (where there are some) or
    ``ends``."""
    status: Status
    detail: str = ""
    """What was found, as text. Parts of it may come from the agent."""
    seconds: float | None = None
    """How long it took, if that is useful."""
    hint: str = ""
    """What to do. Type lines that begin with ``$`` in a terminal."""
    stderr: str = ""
    """The end of the agent's standard error, if it may explain the problem."""


def is_open(checks: Iterable[Check]) -> bool:
    """Whether only a prompt would show if the agent works. After a prompt, only used transports count."""
    return any(check.status == "unknown" and not check.name.startswith("tools over ") for check in checks)


def is_of_servers(check: str) -> bool:
    """Whether a check is about the caller's MCP servers, not the agent."""
    return check.startswith("server ") or check == "mcp servers"
