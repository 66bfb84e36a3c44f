"""Errors of turns."""

# ruff: noqa: N818 - names as in `thinkwell.errors`

from __future__ import annotations

from thinkwell.errors import ThinkwellError


class DeliveryError(ThinkwellError):
    """A message or an answer could not be delivered."""


class ConversationBusy(DeliveryError):
    """The conversation has a running turn, or too many waiting ones, and accepts no more.

    Attributes:
        user_id: The user.
        waiting: The number of waiting messages.
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
        return "the router is closed; use it inside its block: async with MessageRouter(…)"
