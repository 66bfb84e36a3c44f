"""Known errors of agents: how to recognise them in the agent's words, and what to do."""

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
"""Characters that are searched in each text, from its end: an agent's text may have any length."""


class KnownError(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row of the table of an agent's errors: how to recognise one, and what to do about it.

    An error matches by what the agent said, whatever its class. Where the agent says nothing, as when it
    never fetches our tools, it matches by its class alone.

    A row with `said` whose class is one of `Overloaded`, `QuotaExhausted`, `ContextFull`, `ModelNotFound` and
    `LoginExpired` also gives that class to an error that the agent reports in a turn.
    """

    hint: str
    """What to do about it. The error carries it as a note."""
    version: str
    """The version of the agent in which it was seen."""
    seen: dt.date
    """The date on which it was seen."""
    said: str = ""
    """A regular expression to search in the agent's words: see `words_of`. Case is ignored, and ``^`` and
    ``$`` match at the ends of a line. A group named ``retry_after`` or ``resets_at`` is the number of an
    `Overloaded` or a `QuotaExhausted`."""
    error: str = ""
    """The name of the class in `thinkwell.errors`. Without `said`, every error of that class matches."""

    def __post_init__(self) -> None:
        """Check what the types do not say.

        Raises:
            ValueError: It would match nothing, or everything.
        """
        if not self.said and not self.error:
            raise ValueError("give said, error, or both")
        kind = getattr(errors, self.error or "ThinkwellError", None)
        if not isinstance(kind, type) or not issubclass(kind, errors.ThinkwellError):
            raise ValueError(f"error = {self.error!r}: give the name of a class of thinkwell.errors")
        try:
            found = self.pattern.search("")
        except re.error as exc:
            raise ValueError(f"said = {self.said!r} is not a regular expression: {exc}") from exc
        if found is not None and self.said:
            raise ValueError(f"said = {self.said!r} matches everything")

    @property
    def pattern(self) -> re.Pattern[str]:
        """The regular expression of `said`, compiled."""
        return re.compile(self.said, re.IGNORECASE | re.MULTILINE)

    def matches(self, error: Exception) -> bool:
        """Return whether this row describes an error."""
        if self.said:
            return self._found(error) is not None
        return any(kind.__name__ == self.error for kind in type(error).__mro__)

    def classified(
        self, reported: errors.AgentReported, agent: str, methods: Sequence[errors.AuthMethod]
    ) -> errors.AgentReported | None:
        """Return an error that an agent reported in the class of this row, or ``None`` if it does not match.

        Args:
            reported: The error that it reported.
            agent: Its name.
            methods: The login methods that it offers.
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
    """Return a group's value as a number, or ``None``."""
    try:
        number = float(found.groupdict().get(name) or "")
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def words_of(error: Exception) -> Iterator[str]:
    """Return what the agent said or did in an error, as texts to search in.

    An error that it answered with: code and message (``-32603 Internal error``), and the data as JSON. A
    process that ended or did not start: the reason and the end of standard error. A login: the reason. A
    capability: its name and what needs it. A turn without a result: the stop reason, a line
    ``denied: TITLE`` for each denial, a line ``over TRANSPORT`` for each transport on which our tools were
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
