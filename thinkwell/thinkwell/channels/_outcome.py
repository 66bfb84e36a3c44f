"""The outcomes of a delivery, as values."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

__all__ = ("Delivery", "DeliveryMetrics", "DeliveryStatus")

DeliveryStatus: TypeAlias = Literal["completed", "failed", "cancelled", "stalled"]
"""How a delivered run ended. ``stalled``: it was given up, as nothing was heard of it."""


class DeliveryMetrics(Struct, frozen=True, kw_only=True):
    """What a delivery took. Times are in seconds from when `deliver` was called."""

    first_delivery: float | None = None
    """When the first text, of thinking or of the answer, had been delivered."""
    thinking: float = 0.0
    """How long the agent has thought aloud, in all."""
    total: float = 0.0
    """When the final text had been delivered."""
    chunks: int = 0
    """How many pieces of text were handed to the channel."""
    edits: int = 0
    """How often messages were edited, as the channel counts it."""
    attempts: int = 0
    """How often the final text was tried to be delivered."""
    retries: int = 0
    """How often something was tried again: by the channel, as it counts it, and for the final text."""


class Delivery(Struct, frozen=True, kw_only=True):
    """The outcome of a delivered run."""

    user_id: str
    text: str
    """The final text, as it was delivered: with what is said of an error."""
    run_text: str
    """What the agent said, or what was made of its result."""
    status: DeliveryStatus
    error: Exception | None = None
    """Why the run failed, or why there is no text of its result."""
    channel_errors: tuple[Exception, ...] = ()
    """What the channel has raised meanwhile. The text was delivered all the same."""
    streamed: bool = False
    """Whether it was delivered while it was written, to its end."""
    metrics: DeliveryMetrics
