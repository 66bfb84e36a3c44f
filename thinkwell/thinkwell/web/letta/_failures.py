"""What Letta's clients are refused: as ``{"detail": …}``, and told whether to try again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from thinkwell.web._http import json_answer
from thinkwell.web._refusals import Refusal

if TYPE_CHECKING:
    from starlette.responses import Response

NO_RETRY: Final = {"x-should-retry": "false"}
"""Without it, clients send a request three times that has met a conflict or a failure of the server's."""


class BadRequest(Refusal):
    """It does not fit how things stand."""

    status = 400
    code = "bad_request"


class NotKnown(Refusal):
    """There is no such thing, or it is another caller's."""

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
    """No run of an agent or a conversation goes on (Letta's ``NoActiveRunsToCancelError``, in its words).

    Args:
        what: Which agent or conversation.
    """

    status = 409
    code = "nothing_to_cancel"

    def __init__(self, what: str) -> None:
        super().__init__(f"CONFLICT: No active runs to cancel for {what}", NO_RETRY)


class MethodUnknown(Refusal):
    """Something else can be done there."""

    status = 405
    code = "method_not_allowed"

    def __init__(self, allowed: str) -> None:
        super().__init__(f"use {allowed} here", {"Allow": allowed})


class RunFailed(Refusal):
    """What was to be done has failed, and is not tried again by itself."""

    status = 502
    code = "run_failed"

    def __init__(self, message: str) -> None:
        super().__init__(message, NO_RETRY)


def detail_answer(refusal: Refusal) -> Response:
    """Return what a refused request is answered."""
    body = {"detail": refusal.message}
    if isinstance(refusal, Busy):
        body["run_id"] = refusal.run_id
    return json_answer(body, refusal.status, refusal.headers)
