"""What is known to be behind an agent's errors, and what the agent says in them."""

from __future__ import annotations

import datetime as dt  # noqa: TC003 - type of a field, read at run time
import math
import re
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from thinkwell import errors

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SEARCHED: Final = 64 * 1024
"""Characters that are searched of each thing that an agent said, the last ones: it may say any amount."""


class KnownError(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row of the table of an agent's errors: how one is recognised, and what to do about it.

    An error matches by what the agent said, whatever its class is and however it comes about. Where the agent
    says nothing, as when it never fetches our tools, it matches by its class alone.

    A row with `said` whose class is one of `Overloaded`, `QuotaExhausted`, `ContextFull`, `ModelNotFound` and
    `LoginExpired` also gives that class to what the agent reports in a turn.
    """

    hint: str
    """What to do about it. The error carries it as a note."""
    version: str
    """The version of the agent that was seen to do it."""
    seen: dt.date
    """When."""
    said: str = ""
    """A regular expression that is searched in what the agent said: see `words_of`. Case does not count, and
    ``^`` and ``$`` stand for the ends of a line. A group named ``retry_after`` or ``resets_at`` is the number
    of an `Overloaded` or a `QuotaExhausted`."""
    error: str = ""
    """The class of `thinkwell.errors` that it is. Without `said`, errors of that class match."""

    def __post_init__(self) -> None:
        """Check what the types do not say.

        Raises:
            ValueError: Nothing would match, or anything.
        """
        if not self.said and not self.error:
            raise ValueError("give said, error, or both")
        kind = getattr(errors, self.error or "ThinkwellError", None)
        if not isinstance(kind, type) or not issubclass(kind, errors.ThinkwellError):
            raise ValueError(f"error = {self.error!r}: give the name of a class of thinkwell.errors")
        try:
            found = self.pattern.search("")
        except re.error as exc:
            raise ValueError(f"said = {self.said!r} is no regular expression: {exc}") from exc
        if found is not None and self.said:
            raise ValueError(f"said = {self.said!r} is found in everything")

    @property
    def pattern(self) -> re.Pattern[str]:
        """The regular expression of `said`, compiled."""
        return re.compile(self.said, re.IGNORECASE | re.MULTILINE)

    def matches(self, error: Exception) -> bool:
        """Return whether an error is this one."""
        if self.said:
            return self._found(error) is not None
        return any(kind.__name__ == self.error for kind in type(error).__mro__)

    def classified(
        self, reported: errors.AgentReported, agent: str, methods: Sequence[errors.AuthMethod]
    ) -> errors.AgentReported | None:
        """Return what an agent reported as an error of the class of this row; ``None`` where it is another.

        Args:
            reported: What it reported.
            agent: Its name.
            methods: The ways to log in that it offers.
        """
        found = self._found(reported) if self.said else None
        if found is None:
            return None
        told = reported.code, reported.message, reported.data
        match self.error:
            case "Overloaded":
                return errors.Overloaded(*told, retry_after=_number(found, "retry_after"))
            case "QuotaExhausted":
                return errors.QuotaExhausted(*told, resets_at=_number(found, "resets_at"))
            case "ContextFull":
                return errors.ContextFull(*told)
            case "ModelNotFound":
                return errors.ModelNotFound(*told)
            case "LoginExpired":
                return errors.LoginExpired(*told, agent=agent, methods=methods)
            case _:
                return None

    def _found(self, error: Exception) -> re.Match[str] | None:
        pattern = self.pattern
        return next(filter(None, (pattern.search(words[-SEARCHED:]) for words in words_of(error))), None)


def _number(found: re.Match[str], name: str) -> float | None:
    """Return the number in a group, where there is one."""
    try:
        number = float(found.groupdict().get(name) or "")
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def words_of(error: Exception) -> Iterator[str]:
    """Return what the agent said, or did, in an error, as texts to search in.

    That is, for an error that it answered with, code and message (``-32603 Internal error``), and the data as
    JSON; for a process that ended or did not start, the reason and the end of standard error; for a login,
    why; for a capability, its name and what needs it; for a turn without a result the stop reason, a line
    ``denied: TITLE`` for each thing that was denied, a line ``over WAY`` for each way on which our tools were
    offered, and the text.
    """
    match error:
        case errors.AgentReported():
            yield error.message if error.code is None else f"{error.code} {error.message}"
            yield msgspec.json.encode(error.data).decode()
        case errors.AgentExited() | errors.AgentStartFailed():
            yield error.reason
            yield error.stderr_tail
        case errors.LoginRequired() | errors.LoginFailed() | errors.AnswerUnreadable():
            yield error.reason
        case errors.CapabilityMissing():
            yield f"{error.capability} {error.wanted_by}"
        case errors.ResultMissing():
            yield error.stop_reason
            yield "\n".join(f"denied: {title}" for title in error.denied)
            yield error.text
        case errors.ToolsNotSeen():
            yield "\n".join(f"over {way}" for way in error.via)
            yield error.text
        case errors.ResultRefused():
            yield error.text
        case _:
            pass
