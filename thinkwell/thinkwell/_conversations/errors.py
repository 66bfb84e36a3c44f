"""Why there is no turn."""

# ruff: noqa: N818 - names as in `thinkwell.errors`

from __future__ import annotations

from thinkwell.errors import ThinkwellError

__all__ = ("ConversationBusy", "DeliveryError", "RouterClosed")


class DeliveryError(ThinkwellError):
    """A message or an answer did not get where it should."""


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
        return "the router is closed; use it inside its block: async with MessageRouter(…)"
