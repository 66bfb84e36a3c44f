"""What can go wrong with worktrees, their changes, and trials."""

# ruff: noqa: N818 - the names say what happened

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from thinkwell.errors import ThinkwellError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = (
    "ChangesConflict",
    "CheckError",
    "DirtyTree",
    "NonePassed",
    "PlanError",
    "StoreError",
    "WorkerFailed",
    "WorktreeError",
    "some_of",
)

NAMED: Final = 10
"""How many files, or inputs, an error names."""


@dataclass(eq=False, repr=False)
class CheckError(ThinkwellError):
    """A check does not work, so that it says nothing of the trial.

    Attributes:
        check: The command, or the name of the function.
        reason: What happened.
    """

    check: str
    reason: str

    def __str__(self) -> str:
        return f"the check {self.check} does not work: {self.reason}"


class NonePassed(ThinkwellError):
    """No trial of an input has passed.

    Attributes:
        input: The key of the input.
        statuses: What its trials have come to, each with their number.
    """

    def __init__(self, input: str, statuses: Mapping[str, int]) -> None:  # noqa: A002 - as in `Trial`
        super().__init__(input, dict(statuses))
        self.input = input
        self.statuses: dict[str, int] = dict(statuses)

    def __str__(self) -> str:
        told = ", ".join(f"{number} {status}" for status, number in self.statuses.items())
        return f"no trial of {self.input!r} has passed ({told}); report.trials has them, with their errors"


@dataclass(eq=False, repr=False)
class WorktreeError(ThinkwellError):
    """A worktree, or what is in it, cannot be used.

    Attributes:
        repository: The folder of the repository.
        reason: What happened, and what to do.
        detail: What git wrote to standard error, if git failed.
    """

    repository: str
    reason: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.repository}: {self.reason}" + (f"\n{self.detail}" if self.detail else "")


class DirtyTree(WorktreeError):
    """The repository has changes that are not committed, and the worktree was to refuse them.

    Attributes:
        files: The changed files, relative to the repository.
    """

    def __init__(self, repository: str, files: Sequence[str]) -> None:
        super().__init__(
            repository,
            f"there are uncommitted changes ({some_of(files)}); commit or stash them, or take them along "
            'with dirty="copy"',
        )
        self.args: tuple[object, ...] = (repository, tuple(files))
        self.files: tuple[str, ...] = tuple(files)


class ChangesConflict(WorktreeError):
    """Changes do not fit the repository as it is now. Nothing was changed.

    Attributes:
        files: The files that do not fit, relative to the repository.
    """

    def __init__(self, repository: str, files: Sequence[str], detail: str) -> None:
        super().__init__(
            repository,
            f"the changes do not fit what is there now ({some_of(files)}), and nothing was changed; commit "
            "or stash what is in the way, or put them on a branch with changes.branch(…) and merge that",
            detail,
        )
        self.args: tuple[object, ...] = (repository, tuple(files), detail)
        self.files: tuple[str, ...] = tuple(files)


@dataclass(eq=False, repr=False)
class PlanError(ThinkwellError):
    """Trials cannot be run as they were planned.

    Attributes:
        source: The file of the plan, or what of the plan it is about.
        reason: What is wrong, and what to do.
    """

    source: str
    reason: str

    def __str__(self) -> str:
        return f"{self.source}: {self.reason}"


@dataclass(eq=False, repr=False)
class StoreError(ThinkwellError):
    """The store of trials cannot be used. What has ended is kept in it.

    Attributes:
        store: Its file, or its address without the password.
        reason: What happened, and what to do.
    """

    store: str
    reason: str

    def __str__(self) -> str:
        return f"{self.store}: {self.reason}"


@dataclass(eq=False, repr=False)
class WorkerFailed(ThinkwellError):
    """The process that runs trials has ended by itself, and again after each restart.

    Attributes:
        exit_code: Its exit code; negative: the signal that killed it.
        stderr_tail: The last of what it wrote to standard error.
    """

    exit_code: int
    stderr_tail: str

    def __str__(self) -> str:
        return (
            f"the worker process ended with exit code {self.exit_code}, several times; see what it wrote, "
            f"and start again: what has ended is kept\n{self.stderr_tail}"
        ).rstrip()


def some_of(names: Sequence[str]) -> str:
    """Return the first of many names, and how many more there are."""
    named = ", ".join(map(repr, names[:NAMED]))
    return named if len(names) <= NAMED else f"{named} and {len(names) - NAMED} more"
