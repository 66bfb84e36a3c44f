"""What can go wrong on the way to people."""

# ruff: noqa: N818 - names as in `thinkwell.errors`

from __future__ import annotations

from typing import TYPE_CHECKING

from thinkwell.errors import ThinkwellError

if TYPE_CHECKING:
    from thinkwell.channels._delivery import Delivery

__all__ = ("ConversationBusy", "DeliveryError", "DeliveryFailed", "RouterClosed")


class DeliveryError(ThinkwellError):
    """A message or an answer did not get where it should."""


class DeliveryFailed(DeliveryError):
    """The final text could not be delivered. Nothing of it is lost: `text` has it."""

    def __init__(self, user_id: str, text: str, delivery: Delivery, reason: str) -> None:
        self.user_id = user_id
        self.text = text
        """The whole text."""
        self.delivery = delivery
        """How the run went, and what was tried."""
        self.reason = reason
        super().__init__(
            f"the answer could not be delivered to {user_id!r:.100} in {delivery.metrics.attempts} attempts: "
            f"{reason}; its text is in .text"
        )


class ConversationBusy(DeliveryError):
    """The conversation has a turn that runs, or too many that wait, and does not take more."""

    def __init__(self, user_id: str, waiting: int) -> None:
        self.user_id = user_id
        self.waiting = waiting
        """How many messages wait already."""
        super().__init__(
            f"the conversation with {user_id!r:.100} is busy, and {waiting} messages wait; "
            "try again when it has answered"
        )


class RouterClosed(DeliveryError):
    """The router's block was left, or was not entered."""

    def __init__(self) -> None:
        super().__init__("the router is closed; use it inside of its block: async with MessageRouter(…)")
