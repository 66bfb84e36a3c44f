"""What every journal is: the log of runs, kept outside of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from msgspec import Struct

from thinkwell.events import JsonValue  # noqa: TC001 - type of a field

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from types import TracebackType
    from typing import Self

__all__ = (
    "MAX_PAGE",
    "CallHandler",
    "Entry",
    "Journal",
    "RunEnd",
    "RunRecord",
    "RunStatus",
)

RunStatus: TypeAlias = Literal["running", "completed", "failed", "cancelled", "interrupted"]
"""Where a run is. ``interrupted``: the server that had it ended before the run did."""

RunEnd: TypeAlias = Literal["completed", "failed", "cancelled", "interrupted"]
"""How a run has ended."""

CallHandler: TypeAlias = "Callable[[str, bytes], Awaitable[bytes]]"
"""Answers what is asked of a run that this process has, given the run's id and the question. Never raises."""

MAX_PAGE: Final = 256 * 1024
"""Bytes of entries that `Journal.read` returns, about. A single longer entry is returned by itself."""


class Entry(Struct, frozen=True, gc=False):
    """One element of a run's log: an event, or the end."""

    seq: int
    """Its number: 1, 2, 3… without gaps."""
    data: bytes
    """A JSON object in one line."""


class RunRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known of a run beside its log."""

    id: str
    """Unguessable, unique among all runs."""
    agent: str
    """Name of the agent, as the operator calls it."""
    created: float
    """When it was started, in seconds since the epoch."""
    caller: str = ""
    """Who has started it."""
    title: str = ""
    """What it is about, in a line: the beginning of its prompt, unless its caller said otherwise."""
    thread: str | None = None
    """The conversation that it is a turn of."""
    key: str | None = None
    """The caller's name for the request that started it: the same one starts nothing more."""
    meta: dict[str, JsonValue] = {}
    """What the caller has added, and nothing reads."""
    status: RunStatus = "running"
    ended: float | None = None
    """When it has ended, in seconds since the epoch."""
    last_seq: int = 0
    """Number of the last entry."""
    size: int = 0
    """Bytes of all entries."""


class Journal(ABC):
    """The logs of runs, where they outlive the process: appended by one, read by any number.

    To be used as ``async with journal:``, by one server at a time unless it says otherwise. All methods but
    `open` are for the time of that block, on its event loop, asyncio's or trio's. What a method has stored is
    there for every reader when it returns, and survives the end of this process.

    A method that stores something is never left half way: where it is cancelled, it ends all the same, and
    returns or raises its outcome. One that was cancelled before it was called stores nothing.

    Raises:
        JournalError: By any method: the place where runs are kept cannot be used, or the journal is not open.
            It says what to do.
        JournalUnwritable: By methods that store something: there is no room for it. Nothing of it is stored.
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
        """Begin. A journal can be opened again after it was closed.

        Raises:
            JournalError: It is open already, or the place where runs are kept cannot be used.
        """

    @abstractmethod
    async def close(self) -> None:
        """End, after what was begun to be stored is stored. Those who wait in `wait` return.

        Nothing is done where it is closed.
        """

    # Runs

    @abstractmethod
    async def create(self, record: RunRecord) -> RunRecord:
        """Begin the log of a run, which from now on belongs to this process.

        Args:
            record: Of a run that is running and has no entries.

        Returns:
            The record; or that of the run which the same caller has started by the same key before, as it is
            now.

        Raises:
            JournalConflict: There is another run with that id.
        """

    @abstractmethod
    async def append(self, run_id: str, entries: Sequence[Entry]) -> None:
        """Add to the log of a run that is running: all of it, or nothing.

        Raises:
            JournalConflict: The first number does not follow the last one, or the run has ended or is gone,
                or belongs to another process by now.
        """

    @abstractmethod
    async def finish(self, run_id: str, end: Entry, status: RunEnd, at: float) -> None:
        """Add the last entry, and say how the run has ended, both at once.

        Args:
            run_id: Which run.
            end: The entry.
            status: How it has ended.
            at: When, in seconds since the epoch.

        Raises:
            JournalConflict: As by `append`.
        """

    @abstractmethod
    async def get(self, run_id: str) -> RunRecord | None:
        """Return what is known of a run; ``None``: there is none."""

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
        """Return runs, the one first that was last given to `create`, whatever the clocks say.

        Args:
            caller: Only this caller's.
            thread: Only those of this conversation.
            status: Only those.
            before: Only those that come behind the run with this id, which need not be among those that are
                asked for. None, where it is gone.
            limit: How many at most.
        """

    @abstractmethod
    async def read(self, run_id: str, after: int = 0, *, most: int = MAX_PAGE) -> list[Entry]:
        """Return the next entries of a run, without waiting; none, where there are none or no such run.

        Args:
            run_id: Which run.
            after: The number behind which to begin.
            most: Bytes of entries to return at most; fewer may come where there are more. But at least one
                entry is returned where there is one, however large.
        """

    @abstractmethod
    async def wait(self, run_id: str, after: int) -> None:
        """Wait until a run has an entry behind a number, or has ended, or is gone, or the journal is closed.

        It may return before that.
        """

    @abstractmethod
    async def delete(self, run_id: str) -> bool:
        """Forget a run that has ended, and its key. Return whether there was one.

        Raises:
            JournalConflict: It is running.
        """

    @abstractmethod
    async def oldest(self, limit: int = 100) -> list[RunRecord]:
        """Return runs that have ended, the one first that ended first by its `RunRecord.ended`."""

    @abstractmethod
    async def size(self) -> int:
        """Return the bytes of all entries of all runs, about."""

    # Processes

    @abstractmethod
    async def orphans(self) -> list[RunRecord]:
        """Return the running runs of processes that have ended, or have closed the journal since.

        From now on they belong to this process.

        Each is returned to one process only, which ends it by `finish`.
        """

    @abstractmethod
    async def call(self, run_id: str, body: bytes, *, timeout: float = 10.0) -> bytes:  # noqa: ASYNC109
        """Ask the process that a run belongs to, and return what it answers.

        Args:
            run_id: Which run.
            body: The question, for the handler there.
            timeout: Seconds to wait for it.

        Raises:
            JournalConflict: The run has ended or is gone, or its process does not answer, or has ended.
        """

    @abstractmethod
    def serve(self, handler: CallHandler | None) -> None:
        """Answer what is asked of the runs of this process; ``None``: nothing any more.

        It holds until the journal is closed.
        """

    # What else servers keep

    @abstractmethod
    async def put(self, kind: str, name: str, data: bytes | None) -> None:
        """Keep a piece of data under a name, instead of what was there, or forget it (``None``)."""

    @abstractmethod
    async def pick(self, kind: str, name: str) -> bytes | None:
        """Return a piece of data; ``None``: there is none of that name."""

    @abstractmethod
    async def pick_all(self, kind: str) -> list[tuple[str, bytes]]:
        """Return all pieces of a kind with their names, in the order in which they were kept first."""
