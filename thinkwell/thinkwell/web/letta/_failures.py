"""Refusals for Letta's clients: ``{"detail": …}``, with a header about retries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from thinkwell.web._http import json_answer
from thinkwell.web._refusals import Refusal

if TYPE_CHECKING:
    from starlette.responses import Response

__all__ = (
    "BadRequest",
    "Busy",
    "MethodUnknown",
    "NotKnown",
    "NothingToCancel",
    "RunFailed",
    "detail_answer",
)

NO_RETRY: Final = {"x-should-retry": "false"}
"""Without it, clients send a request three times after a conflict or a failure of the server."""


class BadRequest(Refusal):
    """It conflicts with the current state."""

    status = 400
    code = "bad_request"


class NotKnown(Refusal):
    """It does not exist, or belongs to another caller."""

    status = 404
    code = "not_found"


class Busy(Refusal):
    """The conversation has a running or waiting run.

    Attributes:
        run_id: The run.
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


class MethodUnknown(Refusal):
    """The path has other methods."""

    status = 405
    code = "method_not_allowed"

    def __init__(self, allowed: str) -> None:
        super().__init__(f"use {allowed} here", {"Allow": allowed})


class RunFailed(Refusal):
    """The operation has failed, and is not retried automatically."""

    status = 502
    code = "run_failed"

    def __init__(self, message: str) -> None:
        super().__init__(message, NO_RETRY)


def detail_answer(refusal: Refusal) -> Response:
    """Return the answer to a refused request."""
    body = {"detail": refusal.message}
    if isinstance(refusal, Busy):
        body["run_id"] = refusal.run_id
    return json_answer(body, refusal.status, refusal.headers)
