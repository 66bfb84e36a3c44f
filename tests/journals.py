"""The journals: the suite in tests/journal is for all of them, and other tests may take one from here."""

from __future__ import annotations

from dataclasses import dataclass
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from thinkwell.journal import Entry, MemoryJournal, RunRecord, SqliteJournal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import pytest
    from redis_servers import RedisServer

    from thinkwell.events import JsonValue
    from thinkwell.journal import Journal
    from thinkwell.journal.redis import RedisJournal

__all__ = ("PLACES", "Place", "entries", "redis_journal", "run_record", "seqs")


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where runs are kept, empty at first."""

    journal: Callable[[], Journal]
    """Return a journal that keeps them there, not open: what a process makes that begins anew."""
    outlives: bool = True
    """Whether what it keeps outlives the process."""
    shared: bool = False
    """Whether several journals may be open there at once."""


def memory(_: pytest.FixtureRequest) -> Place:
    """Return a place in memory."""
    journal = MemoryJournal()
    return Place(journal=lambda: journal, outlives=False)


def sqlite(request: pytest.FixtureRequest) -> Place:
    """Return a place in a file."""
    folder: Path = request.getfixturevalue("tmp_path")
    return Place(journal=lambda: SqliteJournal(folder / "runs.sqlite"))


def redis(request: pytest.FixtureRequest) -> Place:
    """Return a place in the Redis of all tests."""
    server: RedisServer = request.getfixturevalue("redis_server")
    prefix = token_hex(8)
    return Place(journal=lambda: redis_journal(server.url, prefix=prefix), shared=True)


def redis_journal(url: str, **options: Any) -> RedisJournal:
    """Return a journal in Redis, not open. To import it takes half a second, so that is done here."""
    from thinkwell.journal.redis import RedisJournal

    return RedisJournal(url, **options)


PLACES: dict[str, Callable[[pytest.FixtureRequest], Place]] = {
    "memory": memory,
    "sqlite": sqlite,
    "redis": redis,
}
"""What makes a new place for a test, by the name of the journal."""


def run_record(
    id: str,  # noqa: A002 - as the record calls it
    *,
    caller: str = "ada",
    thread: str | None = None,
    key: str | None = None,
    created: float = 1_700_000_000.0,
    title: str = "Say hello.",
    meta: dict[str, JsonValue] | None = None,
) -> RunRecord:
    """Return what is known of a run that begins."""
    return RunRecord(
        id=id,
        agent="scripted",
        created=created,
        caller=caller,
        title=title,
        thread=thread,
        key=key,
        meta=meta or {},
    )


def entries(first: int, last: int, data: bytes = b'{"type":"message","text":"Hi"}') -> list[Entry]:
    """Return the entries with the numbers from the first to the last."""
    return [Entry(seq, data) for seq in range(first, last + 1)]


def seqs(page: Sequence[Entry]) -> list[int]:
    """Return the numbers of entries."""
    return [entry.seq for entry in page]
