"""Errors of journals."""

from __future__ import annotations

from thinkwell.errors import ThinkwellError


class JournalError(ThinkwellError):
    """Runs cannot be stored or read.

    Attributes:
        where: The place where runs are stored, without secrets.
        reason: What happened, and what to do.
    """

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(where, reason)
        self.where = where
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.where}: {self.reason}"


class JournalConflict(JournalError):  # noqa: N818 - the name says what happened
    """The operation does not fit the state of the run. Nothing was done."""


class JournalUnwritable(JournalError):  # noqa: N818 - the name says what happened
    """Nothing can be stored now, because the disk is full or read-only. Stored runs can still be read.

    Attributes:
        what: What is wrong, in a few words without a path, such as "the disk is full".
    """

    def __init__(self, where: str, reason: str, what: str) -> None:
        super().__init__(where, reason)
        self.args: tuple[object, ...] = (where, reason, what)
        self.what = what
