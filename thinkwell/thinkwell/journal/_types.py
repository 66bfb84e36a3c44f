"""`Journal`: stores the logs of runs outside of their process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from msgspec import Struct

from thinkwell.events import JsonValue  # noqa: TC001 - type of a field

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from types import TracebackType
    from typing import Self

RunStatus: TypeAlias = Literal["running", "completed", "failed", "cancelled", "interrupted"]
"""The status of a run. ``interrupted``: its server ended before the run did."""

RunEnd: TypeAlias = Literal["completed", "failed", "cancelled", "interrupted"]
"""How a run has ended."""

CallHandler: TypeAlias = "Callable[[str, bytes], Awaitable[bytes]]"
"""Answers requests to a run of this process, given the run's id and the request. Never raises."""

MAX_PAGE: Final = 256 * 1024
"""Approximate bytes of entries that `Journal.read` returns. A longer single entry is returned alone."""


class Entry(Struct, frozen=True, gc=False):
    """One element of a run's log: an event, or the end."""

    seq: int
    """Its number: 1, 2, 3… without gaps."""
    data: bytes
    """A JSON object in one line."""


class RunRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The data of a run besides its log."""

    id: str
    """Unguessable, unique among all runs."""
    agent: str
    """The operator's name for the agent."""
    created: float
    """When it was started, in seconds since the epoch."""
    caller: str = ""
    """The caller that started it."""
    title: str = ""
    """A title of one line: by default the beginning of its prompt."""
    thread: str | None = None
    """The conversation that it is a turn of."""
    key: str | None = None
    """The caller's idempotency key: the same key does not start another run."""
    meta: dict[str, JsonValue] = {}
    """Any data from the caller, stored as is."""
    status: RunStatus = "running"
    ended: float | None = None
    """When it ended, in seconds since the epoch."""
    last_seq: int = 0
    """Number of the last entry."""
    size: int = 0
    """Bytes of all entries."""


class Journal(ABC):
    """Stores the logs of runs beyond the process: one writer per run, any number of readers.

    Use it as ``async with journal:``, by one server at a time unless it says otherwise. Call all methods but
    `open` inside that block, on its event loop, asyncio's or trio's. When a method that stores something
    returns, every reader sees it, and it survives the end of this process.

    A method that stores something never stops half-way: if it is cancelled, it completes first, and
    returns or raises its outcome. If it was cancelled before the call, it stores nothing.

    Raises:
        JournalError: From any method: the storage cannot be used, or the journal is not open. The message
            says what to do.
        JournalUnwritable: From methods that store something: there is no room. Nothing is stored.
    """

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    @abstractmethod
    async def open(self) -> None:
        """Open the journal. It can be reopened after it was closed.

        Raises:
            JournalError: It is already open, or the storage cannot be used.
        """

    @abstractmethod
    async def close(self) -> None:
        """Close the journal, after completing writes in progress. Pending calls of `wait` return.

        No effect if it is already closed.
        """

    # Runs

    @abstractmethod
    async def create(self, record: RunRecord) -> RunRecord:
        """Begin the log of a run, which from now on belongs to this process.

        Args:
            record: The record of a running run without entries.

        Returns:
            The record; or the current record of the run that the same caller started earlier with the same
            key.

        Raises:
            JournalConflict: Another run has that id.
        """

    @abstractmethod
    async def append(self, run_id: str, entries: Sequence[Entry]) -> None:
        """Add entries to the log of a running run: all of them, or none.

        Raises:
            JournalConflict: The first number does not follow the last one, or the run has ended, was
                deleted, or now belongs to another process.
        """

    @abstractmethod
    async def finish(self, run_id: str, end: Entry, status: RunEnd, at: float) -> None:
        """Add the last entry, and store how the run ended, in one step.

        Args:
            run_id: The run.
            end: The entry.
            status: How it ended.
            at: When, in seconds since the epoch.

        Raises:
            JournalConflict: As in `append`.
        """

    @abstractmethod
    async def get(self, run_id: str) -> RunRecord | None:
        """Return the record of a run; ``None`` if there is none."""

    @abstractmethod
    async def runs(
        self,
        *,
        caller: str | None = None,
        thread: str | None = None,
        status: RunStatus | None = None,
        before: str | None = None,
        limit: int = 100,
    ) -> list[RunRecord]:
        """Return runs, latest first by the order of `create`, independently of clocks.

        Args:
            caller: Only runs of this caller.
            thread: Only runs of this conversation.
            status: Only runs with one of these.
            before: Only runs after the one with this id in that order; it need not match the other filters.
                No runs, if it was deleted.
            limit: The maximum number.
        """

    @abstractmethod
    async def read(self, run_id: str, after: int = 0, *, most: int = MAX_PAGE) -> list[Entry]:
        """Return the next entries of a run, without waiting; none if there are none, or no such run.

        Args:
            run_id: The run.
            after: The number after which to begin.
            most: Maximum bytes of entries to return; it may return fewer than exist. If there is an
                entry, at least one is returned, however large.
        """

    @abstractmethod
    async def wait(self, run_id: str, after: int) -> None:
        """Wait until a run has an entry after a number, or has ended, was deleted, or the journal is closed.

        It may return earlier.
        """

    @abstractmethod
    async def delete(self, run_id: str) -> bool:
        """Delete a run that has ended, and its key. Return whether it existed.

        Raises:
            JournalConflict: The run is running.
        """

    @abstractmethod
    async def oldest(self, limit: int = 100) -> list[RunRecord]:
        """Return runs that have ended, earliest first by `RunRecord.ended`."""

    @abstractmethod
    async def size(self) -> int:
        """Return the approximate size of all entries of all runs, in bytes."""

    # Processes

    @abstractmethod
    async def orphans(self) -> list[RunRecord]:
        """Return the running runs of processes that have ended, or have closed the journal since.

        From now on they belong to this process.

        Each is returned to one process only, which ends it by `finish`.
        """

    @abstractmethod
    async def call(self, run_id: str, body: bytes, *, timeout: float = 10.0) -> bytes:  # noqa: ASYNC109
        """Send a request to the process of a run, and return its answer.

        Args:
            run_id: The run.
            body: The request, for the handler there.
            timeout: Seconds to wait for the answer.

        Raises:
            JournalConflict: The run has ended or was deleted, or its process has ended or does not answer.
        """

    @abstractmethod
    def serve(self, handler: CallHandler | None) -> None:
        """Set the handler of requests to the runs of this process; ``None`` removes it.

        It applies until the journal is closed.
        """

    # What else servers keep

    @abstractmethod
    async def put(self, kind: str, name: str, data: bytes | None) -> None:
        """Store a piece of data under a name, replacing the old one, or delete it (``None``)."""

    @abstractmethod
    async def pick(self, kind: str, name: str) -> bytes | None:
        """Return a piece of data; ``None`` if the name is unknown."""

    @abstractmethod
    async def pick_all(self, kind: str) -> list[tuple[str, bytes]]:
        """Return all pieces of a kind with their names, in the order in which they were first stored."""
