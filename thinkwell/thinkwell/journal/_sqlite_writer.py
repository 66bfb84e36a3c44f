"""The thread that writes to the file of a `SqliteJournal`: all waiting jobs share a transaction."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from itertools import groupby
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar

import anyio
from anyio.lowlevel import current_token

from thinkwell.journal._errors import JournalConflict, JournalUnwritable
from thinkwell.journal._event_loop import call_soon
from thinkwell.journal._sqlite_changes import Changes
from thinkwell.journal._sqlite_file import FileAway, understood

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from thinkwell.journal._sqlite_file import JournalFile

T = TypeVar("T")

MOST_BYTES: Final = 16 * 1024 * 1024
"""Bytes after which a transaction ends and another begins."""


class Job(Generic[T]):
    """A job for the writer.

    Args:
        work: The change. It is made again if the first transaction failed. It may raise a
            `JournalConflict` or `JournalUnwritable` as long as it has changed nothing.
        then: Called with the result in the event loop when it is stored, even if no task waits for it.
        weight: Approximate bytes that are written.
        alone: Whether it runs outside of transactions.
    """

    def __init__(
        self,
        work: Callable[[Changes], T],
        then: Callable[[T], None] | None = None,
        *,
        weight: int = 0,
        alone: bool = False,
    ) -> None:
        self.weight = weight
        self.alone = alone
        self._work = work
        self._then = then
        self._done = anyio.Event()
        self._result: tuple[T] | None = None
        self.error: Exception | None = None
        """Why it failed."""

    def run(self, changes: Changes) -> None:
        """Run it, in the thread."""
        self.error = None
        try:
            self._result = (self._work(changes),)
        except (JournalConflict, JournalUnwritable) as exc:
            self.error = exc

    def settle(self) -> None:
        """Report that it is done, in the event loop."""
        if self.error is None and self._result is not None and self._then is not None:
            self._then(self._result[0])
        self._done.set()

    async def wait(self) -> T:
        """Wait until it is done, cancelled or not, and return its result."""
        with anyio.CancelScope(shield=True):
            await self._done.wait()
        if self.error is not None:
            raise self.error
        assert self._result is not None
        return self._result[0]


AnyJob: TypeAlias = Job[Any]


class Writer:
    """Writes in its own thread, for the event loop in which it is created.

    Args:
        file: The file. No other may write to it.
    """

    def __init__(self, file: JournalFile) -> None:
        self._file = file
        self._running = {kept.record.id: kept for kept in file.running}
        self._jobs: SimpleQueue[AnyJob | None] = SimpleQueue()
        self._loop: Any = current_token().native_token
        self._thread = threading.Thread(target=self._main, name="thinkwell journal", daemon=True)
        self._thread.start()

    def put(self, job: AnyJob) -> None:
        """Queue a job."""
        self._jobs.put(job)

    def close(self) -> None:
        """Write the rest, and end. Blocks until then."""
        self._jobs.put(None)
        self._thread.join()

    def _main(self) -> None:
        while jobs := self._next():
            for alone, some in groupby(jobs, key=lambda job: job.alone):
                self._do(tuple(some), alone=alone)
            with suppress(RuntimeError):  # the event loop has ended, and all waits with it
                call_soon(self._loop, partial(_settle, jobs))

    def _next(self) -> list[AnyJob]:
        """Wait for a job, and take all that have come with it; none at the end."""
        jobs: list[AnyJob] = []
        weight = 0
        while weight <= MOST_BYTES:
            try:
                job = self._jobs.get(block=not jobs)
            except Empty:
                break
            if job is None:
                self._jobs.put(None)  # for the next transaction
                break
            jobs.append(job)
            weight += job.weight
        return jobs

    def _do(self, jobs: Sequence[AnyJob], *, alone: bool) -> None:
        try:
            self._file.check()
            changes = Changes(self._file, self._running)
            transaction = nullcontext() if alone else _transaction(self._file.connection)
            with understood(self._file.where), transaction:
                for job in jobs:
                    job.run(changes)
                changes.flush()
            self._running = changes.running
        except FileAway as exc:
            for job in jobs:
                job.error = FileAway(exc.where, exc.reason)
        except Exception as exc:  # the waiting task gets the error
            if len(jobs) == 1:
                jobs[0].error = exc
            else:  # one of them may be the cause, and the others not
                for job in jobs:
                    self._do((job,), alone=alone)


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Generator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):  # it has rolled back already
            connection.execute("ROLLBACK")
        raise


def _settle(jobs: Sequence[AnyJob]) -> None:
    for job in jobs:
        job.settle()
