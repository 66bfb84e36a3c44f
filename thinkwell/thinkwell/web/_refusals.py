"""What a caller is refused: an HTTP status, a code for programs, and words without any secret."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from thinkwell.errors import ThinkwellError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = (
    "AnswerRefused",
    "Forbidden",
    "QuestionClosed",
    "Refusal",
    "RequestInvalid",
    "RequestTooLarge",
    "RunNotFound",
    "RunStillRunning",
    "ServerUnavailable",
    "TooManyRuns",
    "Unauthorized",
)


class Refusal(ThinkwellError):  # noqa: N818 - the names of all of them say what happened
    """A request is refused.

    Attributes:
        message: Why, and what to do; fit for whoever has asked.
        headers: What the answer has to say besides.
    """

    status: ClassVar[int] = 400
    """The HTTP status."""
    code: ClassVar[str] = "refused"
    """What it is called in the body of an answer."""

    def __init__(self, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message, headers)
        self.message = message
        self.headers = dict(headers or {})

    def __str__(self) -> str:
        return self.message


class RequestInvalid(Refusal):
    """What was sent can be read, but means nothing."""

    status = 422
    code = "invalid"


class RequestTooLarge(Refusal):
    """What was sent is longer than the server takes."""

    status = 413
    code = "too_large"


class Unauthorized(Refusal):
    """It is not known who asks."""

    status = 401
    code = "unauthorized"


class Forbidden(Refusal):
    """Whoever asks may not, or not from there."""

    status = 403
    code = "forbidden"


class RunNotFound(Refusal):
    """There is no such run, or it is somebody else's."""

    status = 404
    code = "run_not_found"

    def __init__(self) -> None:
        super().__init__("there is no such run; GET the list of runs to see which there are")


class QuestionClosed(Refusal):
    """There is no such question, or it has its answer."""

    status = 404
    code = "question_not_open"


class AnswerRefused(RequestInvalid):
    """An answer does not fit its question, which stays open."""

    code = "answer_invalid"


class RunStillRunning(Refusal):
    """That can be done with runs that have ended."""

    status = 409
    code = "run_still_running"

    def __init__(self) -> None:
        super().__init__("the run goes on; cancel it, and try again when it has ended")


class TooManyRuns(Refusal):
    """As many runs as may be are running."""

    status = 429
    code = "too_many_runs"

    def __init__(self, message: str, *, retry_after: int = 5) -> None:
        super().__init__(message, {"Retry-After": str(retry_after)})


class ServerUnavailable(Refusal):
    """The server cannot do it now, and may later."""

    status = 503
    code = "unavailable"

    def __init__(self, message: str, *, retry_after: int = 5) -> None:
        super().__init__(message, {"Retry-After": str(retry_after)})
