"""What Letta's clients are refused, and whether they are told not to try again."""

from __future__ import annotations

from typing import Final

from thinkwell.web._refusals import Refusal

NO_RETRY: Final = {"x-should-retry": "false"}
"""Without it, clients send a request three times that has met a conflict or a failure of the server's."""


class BadRequest(Refusal):
    """It conflicts with the current state."""

    status = 400
    code = "bad_request"


class NotKnown(Refusal):
    """It does not exist, or belongs to another caller."""

    status = 404
    code = "not_found"


class Busy(Refusal):
    """The conversation has a run that goes on, or waits.

    Attributes:
        run_id: Which.
    """

    status = 409
    code = "busy"

    def __init__(self, message: str, run_id: str) -> None:
        super().__init__(message, NO_RETRY)
        self.run_id = run_id


class NothingToCancel(Refusal):
    """No run of an agent or a conversation is running (Letta's ``NoActiveRunsToCancelError``, with its text).

    Args:
        what: The agent or conversation.
    """

    status = 409
    code = "nothing_to_cancel"

    def __init__(self, what: str) -> None:
        super().__init__(f"CONFLICT: No active runs to cancel for {what}", NO_RETRY)


class RunFailed(Refusal):
    """The operation has failed, and is not retried automatically."""

    status = 502
    code = "run_failed"

    def __init__(self, message: str) -> None:
        super().__init__(message, NO_RETRY)
