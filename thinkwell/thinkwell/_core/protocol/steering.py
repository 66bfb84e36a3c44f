"""What agents take in a turn, and say of their work, beyond the protocol.

The marks of work are those of claude-agent-acp 0.101; codex-acp 2.6 has none.
"""

from __future__ import annotations

from typing import Final

from thinkwell._core.schema.json_schema import is_object
from thinkwell_acp import schema as s
from thinkwell_acp.steering import SteeringRequest, SteeringResponse

HUMAN: Final = "human"
"""What a prompt has begun."""

MOVED: Final = "Command was moved to the background (ID: "
"""How the output of a command begins that goes on while the agent reads a message."""


def steering_request(session_id: str, text: str) -> SteeringRequest:
    """Return what tells an agent something in its turn."""
    return SteeringRequest(
        session_id=session_id,
        prompt=(s.TextContent(text=text),),
        meta={"steering": {"idleBehavior": "promptRequired"}},
    )


def refusal(response: SteeringResponse) -> str | None:
    """Return why an agent does not read what it was told; ``None``: it does."""
    if response.outcome in ("injected", "startedNewTurn"):  # the second in spite of the opt-in
        return None
    return response.reason or response.outcome


def cycle_origin(update: s.UsageUpdate) -> str | None:
    """Return what began the work that an update ends: ``human`` for a prompt.

    Returns:
        ``None`` where the update ends nothing, or the agent does not say.
    """
    origin = (update.meta or {}).get("_claude/origin")
    kind = origin.get("kind") if is_object(origin) else None
    return kind if isinstance(kind, str) else None


def moved_to_background(update: s.ToolCallStart | s.ToolCallProgress) -> bool:
    """Return whether a tool call has ended only for show: its command goes on in the background."""
    output = update.raw_output
    return isinstance(output, str) and output.startswith(MOVED) and "claudeCode" in (update.meta or {})


def why_it_retries(update: s.SessionInfoUpdate) -> str | None:
    """Return what the model service has answered where the agent tries again (codex-acp 2.6)."""
    match update.meta:
        case {"codex": {"error": {"willRetry": True, "message": str(message), **more}}}:
            details = more.get("additionalDetails")
            return f"{message}: {details}" if isinstance(details, str) else message
        case _:
            return None
