"""The runs that wait for an answer: lists of runs show where a user is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from thinkwell.journal import Journal, RunRecord

KIND: Final = "waiting"


async def keep_waiting(journal: Journal, run_id: str, *, waits: bool) -> None:
    """Store whether a run waits for an answer, for all servers.

    Raises:
        JournalError: It cannot be stored.
    """
    await journal.put(KIND, run_id, b"1" if waits else None)


async def forget_waiting(journal: Journal, run_id: str) -> None:
    """Forget that a run waited for an answer, if its server has died.

    Raises:
        JournalError: It cannot be forgotten.
    """
    if await journal.pick(KIND, run_id) is not None:
        await keep_waiting(journal, run_id, waits=False)


async def waiting_runs(journal: Journal, records: Iterable[RunRecord]) -> frozenset[str]:
    """Return the ids of the runs that wait for an answer.

    Raises:
        JournalError: That cannot be read.
    """
    running = {record.id for record in records if record.status == "running"}
    if not running:
        return frozenset()
    return frozenset(name for name, _ in await journal.pick_all(KIND) if name in running)
