"""One check of the doctor's, as a value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable

Status: TypeAlias = Literal["ok", "warning", "failed", "skipped", "unknown"]
"""The outcome of a check; ``unknown``: only a prompt would show it, and none was sent."""


class Check(Struct, frozen=True, kw_only=True):
    """One thing that was looked at."""

    name: str
    """``found``, ``installed``, ``starts``, ``version``, ``protocol``, ``capabilities``, ``login``,
    ``session``, ``tools over acp``, ``tools over http``, ``tools over stdio``, ``answer``, ``typed result``,
    ``server NAME`` (for each of the caller's MCP servers), ``mcp servers`` (where there are some) or
    ``ends``."""
    status: Status
    detail: str = ""
    """What was found, in words. Parts of it may be the agent's own."""
    seconds: float | None = None
    """How long it took, where that says something."""
    hint: str = ""
    """What to do. A line that begins with ``$`` is one to type in a terminal."""
    stderr: str = ""
    """The end of what the agent wrote to standard error, where that may say why."""


def is_open(checks: Iterable[Check]) -> bool:
    """Whether only a prompt would show if the agent works. After one, no way counts that it did not take."""
    return any(check.status == "unknown" and not check.name.startswith("tools over ") for check in checks)


def is_of_servers(check: str) -> bool:
    """Whether a check is of the caller's MCP servers, and not of the agent."""
    return check.startswith("server ") or check == "mcp servers"
