"""Turns."""

from typing import Literal, TypeAlias

from thinkwell_acp.schema._base import Extensible, OfSession, UInt
from thinkwell_acp.schema.content import ContentBlock

__all__ = ("CancelNotification", "PromptRequest", "PromptResponse", "StopReason", "Usage")

StopReason: TypeAlias = Literal["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"]
"""Why a turn ended, as far as this version of the protocol defines it."""


class Usage(Extensible, frozen=True, kw_only=True):
    """Tokens as the agent reports them (unstable), of the turn or of the session: that differs by agent."""

    total_tokens: UInt
    input_tokens: UInt
    output_tokens: UInt
    thought_tokens: UInt | None = None
    cached_read_tokens: UInt | None = None
    cached_write_tokens: UInt | None = None


class PromptRequest(OfSession, frozen=True, kw_only=True):
    """Parameters of `session/prompt`."""

    prompt: tuple[ContentBlock, ...]


class PromptResponse(Extensible, frozen=True, kw_only=True):
    """Result of `session/prompt`: the turn is over. An unknown stop reason is kept as it is."""

    stop_reason: StopReason | str
    usage: Usage | None = None


class CancelNotification(OfSession, frozen=True, kw_only=True):
    """Parameters of `session/cancel`."""
