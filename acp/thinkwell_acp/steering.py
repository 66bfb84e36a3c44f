"""Steering: a message to an agent during its turn.

The protocol's schema does not have it. claude-agent-acp 0.101 and codex-acp 2.6 do, and advertise it as
``_meta.steering.supported`` in their answer to ``initialize``.
"""

from __future__ import annotations

from typing import Final

from thinkwell_acp import schema as s

__all__ = ("METHOD", "SteeringRequest", "SteeringResponse", "steering_supported")

METHOD: Final = "_session/steering"


class SteeringRequest(s.Extensible, frozen=True, kw_only=True):
    """A message for the agent to read during its turn.

    Without a turn, the agent begins one that no response ends, unless `meta` has
    ``{"steering": {"idleBehavior": "promptRequired"}}``.
    """

    session_id: str
    prompt: tuple[s.ContentBlock, ...]


class SteeringResponse(s.Extensible, frozen=True, kw_only=True):
    """The agent's answer to a steering request."""

    outcome: str
    """``injected``, ``promptRequired``, ``startedNewTurn`` or ``failed``."""
    reason: str | None = None


def steering_supported(agent: s.InitializeResponse) -> bool:
    """Return whether an agent can be steered."""
    match agent.meta:
        case {"steering": {"supported": True}}:
            return True
        case _:
            return False
