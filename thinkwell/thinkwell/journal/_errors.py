"""What can go wrong with a journal."""

from __future__ import annotations

from thinkwell.errors import ThinkwellError

__all__ = ("JournalConflict", "JournalError")


class JournalError(ThinkwellError):
    """Runs cannot be kept or read.

    Attributes:
        where: What is used to keep them, without secrets.
        reason: What happened, and what to do.
    """

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(where, reason)
        self.where = where
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.where}: {self.reason}"


class JournalConflict(JournalError):  # noqa: N818 - the name says what happened
    """What was to be done with a run does not fit what is known of it. Nothing was done."""
