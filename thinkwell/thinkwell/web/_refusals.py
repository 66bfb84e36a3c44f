"""Refusals: an HTTP status, a code for programs, and a message without secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from msgspec import Struct

from thinkwell.errors import ThinkwellError
from thinkwell.journal import JournalUnwritable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from thinkwell.journal import JournalError


class WhyRefused(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a request was refused."""

    code: str
    """A code for programs."""
    message: str
    """A message for people: what is wrong, where, and what to do."""
    incident: str | None = None
    """The id under which the server's log has more, if the server has failed."""


class Refused(Struct, frozen=True, kw_only=True):
    """The body of a refusal."""

    error: WhyRefused


class Refusal(ThinkwellError):  # noqa: N818 - the names of all of them say what happened
    """A request is refused.

    Attributes:
        message: The reason and the remedy, for the caller.
        headers: Further headers of the answer.
    """

    status: ClassVar[int] = 400
    """The HTTP status."""
    code: ClassVar[str] = "refused"
    """Its code in the body of the answer."""

    def __init__(self, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message, headers)
        self.message = message
        self.headers: dict[str, str] = dict(headers or {})

    def __str__(self) -> str:
        return self.message


class RequestInvalid(Refusal):
    """The request is well-formed, but has an invalid value."""

    status = 422
    code = "invalid"


class RequestMalformed(Refusal):
    """The request is malformed."""

    status = 400
    code = "malformed"


class RequestTooLarge(Refusal):
    """The request is longer than the server accepts."""

    status = 413
    code = "too_large"


class RequestTooSlow(Refusal):
    """The body of the request has not arrived in time."""

    status = 408
    code = "too_slow"


class NotJson(Refusal):
    """The request has a form that any web page could send."""

    status = 415
    code = "not_json"


class WrongHost(Refusal):
    """The request is for another server (RFC 9110, section 15.5.20)."""

    status = 421
    code = "wrong_host"


class Unauthorized(Refusal):
    """The caller is unknown."""

    status = 401
    code = "unauthorized"


class Forbidden(Refusal):
    """The caller is not allowed to do this, or not from there."""

    status = 403
    code = "forbidden"


_OF_ONE: Final = (
    ". The runs here are in the memory of one process: a server of several workers needs a journal that they "
    "share, which is RedisJournal; else its operator has to start it with one worker"
)


class RunNotFound(Refusal):
    """There is no such run, or it belongs to another caller."""

    status = 404
    code = "run_not_found"

    def __init__(self, *, in_memory: bool = False) -> None:
        super().__init__(f"there is no such run; GET the list of runs to see yours{in_memory * _OF_ONE}")


class QuestionClosed(Refusal):
    """There is no such question, or it was answered."""

    status = 404
    code = "question_not_open"


class AnswerRefused(RequestInvalid):
    """An answer does not fit its question, which stays open."""

    code = "answer_invalid"


class MessageNotTaken(Refusal):
    """The agent does not take a message in its turn, or no turn is running: the message has had no effect."""

    status = 409
    code = "not_taken"


class RunStillRunning(Refusal):
    """This is only possible with runs that have ended."""

    status = 409
    code = "run_still_running"

    def __init__(self) -> None:
        super().__init__("the run is still running; cancel it, and try again when it has ended")


class TryLater(Refusal):
    """It may be possible later, after some seconds."""

    def __init__(self, message: str, *, retry_after: int = 5) -> None:
        super().__init__(message, {"Retry-After": str(retry_after)})


class TooManyRuns(TryLater):
    """The maximum number of runs is reached."""

    status = 429
    code = "too_many_runs"


class TooManyWatchers(TryLater):
    """The maximum number of event streams is open."""

    status = 429
    code = "too_many_watchers"


class TooManyAttempts(TryLater):
    """There were too many wrong secrets."""

    status = 429
    code = "too_many_attempts"


class ServerFailed(Refusal):
    """The server has failed."""

    status = 500
    code = "server_error"

    def __init__(self) -> None:
        super().__init__("the server has failed; its log says more")


class StorageFull(Refusal):
    """The server can store nothing more (RFC 4918, section 11.5)."""

    status = 507
    code = "storage_full"


class ServerUnavailable(TryLater):
    """The server cannot do this now, but perhaps later."""

    status = 503
    code = "unavailable"


def refusal_of(error: JournalError) -> Refusal:
    """Return the message about an unusable journal, without paths and other details of the server."""
    if isinstance(error, JournalUnwritable):
        return StorageFull(
            f"the server can store nothing more: {error.what}; its operator has to make room, then try again"
        )
    return ServerUnavailable("the server cannot keep or read runs now; try again")
