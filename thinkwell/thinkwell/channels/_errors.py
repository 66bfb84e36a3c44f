"""Errors of deliveries."""

# ruff: noqa: N818 - names as in `thinkwell.errors`

from __future__ import annotations

from typing import TYPE_CHECKING

from thinkwell._conversations.errors import DeliveryError
from thinkwell._display.numbers import plural

if TYPE_CHECKING:
    from thinkwell.channels._outcome import Delivery


class DeliveryFailed(DeliveryError):
    """The final text could not be delivered. The exception has all of it.

    Attributes:
        user_id: The user.
        text: The whole text.
        delivery: The outcome of the run, and counts of the attempts.
        reason: The error of the last attempt.
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
