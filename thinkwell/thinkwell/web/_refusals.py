"""What a caller is refused: an HTTP status, a code for programs, and words without any secret."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from msgspec import Struct

from thinkwell.errors import ThinkwellError
from thinkwell.journal import JournalUnwritable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from thinkwell.journal import JournalError


class WhyRefused(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why something was not done."""

    code: str
    """For programs."""
    message: str
    """For people: what is wrong, where, and what to do."""
    incident: str | None = None
    """Where there is a mistake in the server: under what its log has more."""


class Refused(Struct, frozen=True, kw_only=True):
    """Something was not done."""

    error: WhyRefused


class Refusal(ThinkwellError):  # noqa: N818 - the names of all of them say what happened
    """A request is refused.

    Attributes:
        message: Why, and what to do; fit for the caller.
        headers: What the answer has to say besides.
    """

    status: ClassVar[int] = 400
    """The HTTP status."""
    code: ClassVar[str] = "refused"
    """What it is called in the body of an answer."""

    def __init__(self, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message, headers)
        self.message = message
        self.headers: dict[str, str] = dict(headers or {})

    def __str__(self) -> str:
        return self.message


class RequestInvalid(Refusal):
    """What was sent can be read, but means nothing."""

    status = 422
    code = "invalid"


class RequestMalformed(Refusal):
    """What was sent cannot be read."""

    status = 400
    code = "malformed"


class RequestTooLarge(Refusal):
    """What was sent is longer than the server takes."""

    status = 413
    code = "too_large"


class RequestTooSlow(Refusal):
    """What was to be sent has not come."""

    status = 408
    code = "too_slow"


class NotJson(Refusal):
    """What was sent has a form that any page on the web could send."""

    status = 415
    code = "not_json"


class WrongHost(Refusal):
    """Another server was meant (RFC 9110, section 15.5.20)."""

    status = 421
    code = "wrong_host"


class Unauthorized(Refusal):
    """It is not known who asks."""

    status = 401
    code = "unauthorized"


class Forbidden(Refusal):
    """The caller may not, or not from there."""

    status = 403
    code = "forbidden"


_OF_ONE: Final = (
    ". The runs here are in the memory of one process: a server of several workers needs a journal that they "
    "share, which is RedisJournal; else its operator has to start it with one worker"
)


class RunNotFound(Refusal):
    """There is no such run, or it is another caller's."""

    status = 404
    code = "run_not_found"

    def __init__(self, *, in_memory: bool = False) -> None:
        super().__init__(
            f"there is no such run; GET the list of runs to see which there are{in_memory * _OF_ONE}"
        )


class QuestionClosed(Refusal):
    """There is no such question, or it has its answer."""

    status = 404
    code = "question_not_open"


class AnswerRefused(RequestInvalid):
    """An answer does not fit its question, which stays open."""

    code = "answer_invalid"


class MessageNotTaken(Refusal):
    """The agent does not take a message in the turn that runs, or none runs: nothing has come of it."""

    status = 409
    code = "not_taken"


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


class TooManyWatchers(Refusal):
    """As many streams of events as may be are open."""

    status = 429
    code = "too_many_watchers"

    def __init__(self, message: str, *, retry_after: int = 5) -> None:
        super().__init__(message, {"Retry-After": str(retry_after)})


class TooManyAttempts(Refusal):
    """Secrets are being guessed."""

    status = 429
    code = "too_many_attempts"

    def __init__(self, message: str, *, retry_after: int) -> None:
        super().__init__(message, {"Retry-After": str(retry_after)})


class ServerFailed(Refusal):
    """There is a mistake in the server."""

    status = 500
    code = "server_error"

    def __init__(self) -> None:
        super().__init__("the server has failed; its log says more")


class StorageFull(Refusal):
    """The server can store nothing more (RFC 4918, section 11.5)."""

    status = 507
    code = "storage_full"


class ServerUnavailable(Refusal):
    """The server cannot do it now, and may later."""

    status = 503
    code = "unavailable"

    def __init__(self, message: str, *, retry_after: int = 5) -> None:
        super().__init__(message, {"Retry-After": str(retry_after)})


def refusal_of(error: JournalError) -> Refusal:
    """Return what to say of a journal that cannot be used: no path, and nothing else of the server's."""
    if isinstance(error, JournalUnwritable):
        return StorageFull(
            f"the server can store nothing more: {error.what}; its operator has to make room, then try again"
        )
    return ServerUnavailable("the server cannot keep or read runs now; try again")
