"""The outcomes of a delivery, and its error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from msgspec import Struct

from thinkwell._conversations.errors import DeliveryError
from thinkwell._display.numbers import plural
from thinkwell.channels._calls import said_by

DeliveryStatus: TypeAlias = Literal["completed", "failed", "cancelled", "stalled"]
"""How a delivered run ended. ``stalled``: it was given up because the agent was silent."""


class DeliveryMetrics(Struct, frozen=True, kw_only=True):
    """Times and counts of a delivery. Times are in seconds since the call of `deliver`."""

    first_delivery: float | None = None
    """When the first text, of thinking or of the answer, was delivered."""
    thinking: float = 0.0
    """How long the agent thought aloud, in all."""
    total: float = 0.0
    """When the final text was delivered."""
    chunks: int = 0
    """The number of pieces of text that were handed to the channel."""
    edits: int = 0
    """The number of edits of messages, as counted by the channel."""
    attempts: int = 0
    """The number of attempts to deliver the final text."""
    retries: int = 0
    """The number of retries: by the channel, as it counts them, and for the final text."""


class Delivery(Struct, frozen=True, kw_only=True):
    """The outcome of a delivered run."""

    user_id: str
    text: str
    """The final text as delivered, with the description of an error."""
    run_text: str
    """The agent's message, or the text made from its result."""
    status: DeliveryStatus
    error: Exception | None = None
    """Why the run failed, or why its result has no text."""
    channel_errors: tuple[Exception, ...] = ()
    """Exceptions of the channel. The text was delivered despite them."""
    streamed: bool = False
    """Whether it was streamed to its end."""
    metrics: DeliveryMetrics


@dataclass(eq=False, repr=False)
class DeliveryFailed(DeliveryError):  # noqa: N818 - a name as in `thinkwell.errors`
    """The final text could not be delivered. The exception has all of it.

    Attributes:
        user_id: The user.
        text: The whole text.
        delivery: The outcome of the run, and counts of the attempts.
        reason: The error of the last attempt.
    """

    user_id: str
    text: str
    delivery: Delivery
    reason: str

    def __str__(self) -> str:
        return (
            f"the answer could not be delivered to {self.user_id!r:.100} in "
            f"{plural(self.delivery.metrics.attempts, 'attempt')}: {self.reason}; its text is in .text"
        )


def unless_failed(delivery: Delivery, failure: Exception | None) -> Delivery:
    """Return a delivery.

    Args:
        delivery: The delivery.
        failure: Why its final text could not be sent.

    Raises:
        DeliveryFailed: It could not be sent.
    """
    if failure is None:
        return delivery
    reason = said_by(failure) or type(failure).__name__
    raise DeliveryFailed(delivery.user_id, delivery.text, delivery, reason) from failure
