"""What can go wrong on the way to people."""

# ruff: noqa: N818 - names as in `thinkwell.errors`

from __future__ import annotations

from typing import TYPE_CHECKING

from thinkwell._display.numbers import plural
from thinkwell.errors import ThinkwellError

if TYPE_CHECKING:
    from thinkwell.channels._delivery import Delivery

__all__ = ("ConversationBusy", "DeliveryError", "DeliveryFailed", "RouterClosed")


class DeliveryError(ThinkwellError):
    """A message or an answer did not get where it should."""


class DeliveryFailed(DeliveryError):
    """The final text could not be delivered. Nothing of it is lost.

    Attributes:
        user_id: To whom.
        text: The whole text.
        delivery: How the run went, and what was tried.
        reason: What happened at the last attempt.
    """

    def __init__(self, user_id: str, text: str, delivery: Delivery, reason: str) -> None:
        super().__init__(user_id, text, delivery, reason)
        self.user_id = user_id
        self.text = text
        self.delivery = delivery
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"the answer could not be delivered to {self.user_id!r:.100} in "
            f"{plural(self.delivery.metrics.attempts, 'attempt')}: {self.reason}; its text is in .text"
        )


class ConversationBusy(DeliveryError):
    """The conversation has a turn that runs, or too many that wait, and does not take more.

    Attributes:
        user_id: Whose conversation it is.
        waiting: How many messages wait already.
    """

    def __init__(self, user_id: str, waiting: int) -> None:
        super().__init__(user_id, waiting)
        self.user_id = user_id
        self.waiting = waiting

    def __str__(self) -> str:
        return (
            f"the conversation with {self.user_id!r:.100} is busy, and {self.waiting} messages wait; "
            "try again when it has answered"
        )


class RouterClosed(DeliveryError):
    """The router's block was left, or was not entered."""

    def __str__(self) -> str:
        return "the router is closed; use it inside of its block: async with MessageRouter(…)"
