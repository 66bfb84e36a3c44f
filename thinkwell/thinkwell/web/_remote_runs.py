"""Runs of other processes that are watched in this one.

Each is read from the journal once for all watchers.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

import anyio
import msgspec

from thinkwell.journal import JournalError
from thinkwell.web._calls import Asked
from thinkwell.web._watching import Tail

if TYPE_CHECKING:
    from collections.abc import Generator

    from anyio.abc import TaskGroup

    from thinkwell.journal import Journal, RunRecord

CALL_TIMEOUT: Final = 10.0
"""Seconds that a run's process has to answer."""

logger = logging.getLogger("thinkwell")


async def goes_on(journal: Journal, run_id: str) -> bool:
    """Return whether a run exists and has not ended."""
    record = await journal.get(run_id)
    return record is not None and record.status == "running"


class RemoteRuns:
    """Follows the runs of other processes while they have watchers.

    Args:
        journal: Stores them.
        abandoned_after: Seconds without watchers after which a run's own process cancels it. It is notified
            of the watchers here.
    """

    def __init__(self, journal: Journal, abandoned_after: float | None) -> None:
        self._journal = journal
        self._tell_every = None if abandoned_after is None else abandoned_after / 3
        self._followed: dict[str, _Followed] = {}

    @contextmanager
    def watch(self, record: RunRecord, tasks: TaskGroup) -> Generator[Tail]:
        """Follow a run for a watcher during a block, and return the end of its log."""
        followed = self._followed.get(record.id)
        if followed is None:
            followed = _Followed(Tail(record.last_seq))
            self._followed[record.id] = followed
            tasks.start_soon(self._follow, record.id, followed)
        followed.watchers += 1
        try:
            yield followed.tail
        finally:
            followed.watchers -= 1
            if not followed.watchers:
                followed.scope.cancel()
                del self._followed[record.id]

    def close(self) -> None:
        """Release all watchers."""
        for followed in self._followed.values():
            followed.tail.close()

    async def _follow(self, run_id: str, followed: _Followed) -> None:
        tail = followed.tail
        try:
            async with anyio.create_task_group() as tasks:
                with followed.scope:
                    if self._tell_every is not None:
                        tasks.start_soon(self._tell, run_id, self._tell_every)
                    await self._read(run_id, tail)
                tasks.cancel_scope.cancel()
        finally:
            tail.close()

    async def _read(self, run_id: str, tail: Tail) -> None:
        try:
            while not tail.over:
                await self._journal.wait(run_id, tail.last)
                entries = await self._journal.read(run_id, tail.last)
                if entries:
                    tail.push(entries)
                elif not await goes_on(self._journal, run_id):
                    break
        except JournalError as exc:
            logger.warning("Run %s can be followed no further: %s", run_id, exc)

    async def _tell(self, run_id: str, every: float) -> None:
        """Notify its process of the watchers, repeatedly and without waiting."""
        told = msgspec.json.encode(Asked(what="watched"))
        while True:
            again = anyio.current_time() + every
            with suppress(JournalError):  # it has ended, or its process has; or the next attempt succeeds
                await self._journal.call(run_id, told, timeout=min(every, CALL_TIMEOUT))
            await anyio.sleep_until(again)


class _Followed:
    """A run of another process."""

    def __init__(self, tail: Tail) -> None:
        self.tail = tail
        self.watchers = 0
        self.scope = anyio.CancelScope()
