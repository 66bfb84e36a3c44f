"""Errors of runs, in words for callers.

A caller can change neither the program nor the server, so the words name no Python, path, command, output or
key. The server's log has all of that for its operator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from thinkwell import errors
from thinkwell._display.text import clean
from thinkwell.journal import JournalUnwritable
from thinkwell.web._records import ShownError

if TYPE_CHECKING:
    from collections.abc import Sequence

MESSAGE: Final = 2_000
"""Characters of an error that a caller gets."""

SAID: Final = 500
"""Characters of the agent's last message."""

_MORE: Final = "the operator of the server finds more in its log"

_WORDS: Final[tuple[tuple[type[Exception], str], ...]] = (
    (errors.ThoughtCancelled, "the run was cancelled"),
    (errors.AgentNotFound, f"the agent's program is not installed on the server; {_MORE}"),
    (errors.AgentExited, "the agent's program has ended in the middle of the run; start the run again"),
    (errors.LoginRequired, f"the agent on the server has to be logged in first; {_MORE}"),
    (errors.LoginFailed, f"the agent on the server could not be logged in; {_MORE}"),
    (errors.AgentStartFailed, f"the agent could not be started; {_MORE}"),
    (errors.SessionOpenTimeout, "the agent has not opened a session in time; try again"),
    (errors.SessionUnusable, "the session has a turn that the agent never ended; start the run again"),
    (errors.AgentReported, f"the agent has answered with an error; {_MORE}"),
    (errors.AgentError, f"the agent cannot be used; {_MORE}"),
)

_MISSING: Final = {
    "max_tokens": "the model ran out of tokens; ask for less, or for a smaller result",
    "max_turn_requests": "the agent ran out of requests to its model; ask for less",
    "cancelled": "the agent has cancelled its turn, as some do when something is denied",
}
"""Why there is no result, by the stop reason of the turn."""


def error_shown(error: Exception, *, stderr: bool = False) -> ShownError:
    """Return an error for callers.

    Args:
        error: The error.
        stderr: Whether callers may read the standard error of the agent's program.
    """
    name = type(error).__name__ if isinstance(error, errors.ThinkwellError) else "ServerError"
    message = clean(_words(error))[:MESSAGE]
    if not isinstance(error, errors.AgentExited | errors.AgentStartFailed):
        return ShownError(name=name, message=message)
    tail = clean(error.stderr_tail.rstrip())[-MESSAGE:] if stderr else ""
    return ShownError(name=name, message=message, exit_code=error.exit_code, stderr=tail)


def _words(error: Exception) -> str:
    match error:
        case errors.ThoughtTimeout(idle=True):
            return f"nothing was heard of the agent for {error.seconds:g} seconds, and the run was cancelled"
        case errors.ThoughtTimeout():
            return f"the run has taken longer than {error.seconds:g} seconds, and was cancelled"
        case errors.BudgetExceeded():
            what = error.what.replace("_", " ")
            return f"the budget of the run is used up: {error.spent:g} of {error.limit:g} {what}"
        case errors.QuestionsStopped():
            return f"the run was ended over question {error.question_id}: {error.reason}"
        case errors.CapabilityMissing():
            return f"the agent does not take what was asked for; it does not advertise {error.capability}"
        case errors.ModelNotOffered():
            return f"the agent does not offer the model {error.model[:SAID]!r}; {_MORE}"
        case JournalUnwritable():
            return f"the server can store nothing more of the run: {error.what}; {_MORE}"
        case errors.ResultError():
            return _no_result(error)
        case _:
            words = (words for kind, words in _WORDS if isinstance(error, kind))
            return next(words, f"the run could not continue; {_MORE}")


def _no_result(error: errors.ResultError) -> str:
    match error:
        case errors.ResultMissing():
            why = _MISSING.get(
                error.stop_reason, "the agent has ended its turn without one; say in the prompt what it is"
            )
            return f"there is no result: {why}{_denied(error.denied)}{_said(error.text)}"
        case errors.ResultInvalid():
            wrong = "".join(f"\n- {each}" for each in error.errors)
            return f"the agent has given no result that fits, in {error.attempts} attempts:{wrong}"
        case errors.ResultRefused():
            return f"the agent has refused{_said(error.text)}"
        case _:
            return f"the agent has never asked for the tool that takes results; {_MORE}"


def _denied(titles: Sequence[str]) -> str:
    shown = ", ".join(f"“{title[:80]}”" for title in titles[:3])
    more = f" and {len(titles) - 3} more" if len(titles) > 3 else ""
    return f". It was denied {shown}{more}" if titles else ""


def _said(text: str) -> str:
    return f". It said: {text[-SAID:]}" if text else ""
