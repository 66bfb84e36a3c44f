"""Steering, and marks of an agent's work, beyond the protocol.

The marks of work are those of claude-agent-acp 0.101; codex-acp 2.6 has none.
"""

from __future__ import annotations

from typing import Final

from thinkwell._core.schema.json_schema import is_object
from thinkwell_acp import schema as s
from thinkwell_acp.steering import SteeringRequest, SteeringResponse

HUMAN: Final = "human"
"""The origin of work that a prompt began."""

MOVED: Final = "Command was moved to the background (ID: "
"""The start of the output of a command that continues while the agent reads a message."""


def steering_request(session_id: str, text: str) -> SteeringRequest:
    """Return the request that steers an agent."""
    return SteeringRequest(
        session_id=session_id,
        prompt=(s.TextContent(text=text),),
        meta={"steering": {"idleBehavior": "promptRequired"}},
    )


def refusal(response: SteeringResponse) -> str | None:
    """Return why an agent refuses a message; ``None``: it reads it."""
    if response.outcome in ("injected", "startedNewTurn"):  # the second despite the opt-in
        return None
    return response.reason or response.outcome


def cycle_origin(update: s.UsageUpdate) -> str | None:
    """Return the origin of the work that an update ends: ``human`` for a prompt.

    Returns:
        ``None`` if the update ends nothing, or the agent does not say.
    """
    origin = (update.meta or {}).get("_claude/origin")
    kind = origin.get("kind") if is_object(origin) else None
    return kind if isinstance(kind, str) else None


def moved_to_background(update: s.ToolCallStart | s.ToolCallProgress) -> bool:
    """Return whether a tool call only seems to have ended: its command continues in the background."""
    output = update.raw_output
    return isinstance(output, str) and output.startswith(MOVED) and "claudeCode" in (update.meta or {})


def why_it_retries(update: s.SessionInfoUpdate) -> str | None:
    """Return the model service's error if the agent retries (codex-acp 2.6)."""
    match update.meta:
        case {"codex": {"error": {"willRetry": True, "message": str(message), **more}}}:
            details = more.get("additionalDetails")
            return f"{message}: {details}" if isinstance(details, str) else message
        case _:
            return None
