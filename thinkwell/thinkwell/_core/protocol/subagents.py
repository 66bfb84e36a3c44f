"""Which sub-agent an update is of, in the words of claude-agent-acp 0.101; codex-acp 2.6 tells of none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from thinkwell._core.schema.json_schema import is_object

if TYPE_CHECKING:
    from collections.abc import Mapping

    from thinkwell._core.log.run_log import RunLog
    from thinkwell._core.protocol.tool_calls import ToolCalls
    from thinkwell.events import JsonValue

TRANSCRIPT: Final = "subagent-transcript"
"""The capability of a client that wants to hear what sub-agents say, too."""

DEEPEST: Final = 8
"""How deep sub-agents may stand in each other."""


def named_parent(meta: Mapping[str, JsonValue]) -> str | None:
    """Return the id of the tool call that an update says to be part of. The protocol has no field for it."""
    vendor = meta.get("claudeCode")
    parent = vendor.get("parentToolUseId") if is_object(vendor) else None
    return parent if isinstance(parent, str) else None


def known_parent(
    meta: Mapping[str, JsonValue], calls: ToolCalls, log: RunLog, of: str | None = None
) -> str | None:
    """Return the id of the call that is the sub-agent of an update, where that makes a tree.

    Args:
        meta: What the update says.
        calls: The calls of the session.
        log: The run's log: a call in another run is unknown to this one.
        of: The call that the update is about.

    Returns:
        ``None``: it is the agent's own, or of a call that is unknown, is part of `of`, or stands too deep.
    """
    parent = at = named_parent(meta)
    for _ in range(DEEPEST):
        call = None if at is None or at == of else calls.get(at)
        if call is None or call.started_in is not log:
            return None
        if call.parent is None:
            return parent
        at = call.parent
    return None
