"""Adds to a run until its files may not grow any more, and goes on when they may: `crowded_journal.py FILE`.

It prints the error, how many entries there were then, and how many there are at last.
"""

from __future__ import annotations

import resource
import sys

import anyio

from thinkwell.journal import Entry, JournalError, RunRecord, SqliteJournal

BYTES = 300_000


async def main() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    async with SqliteJournal(sys.argv[1]) as journal:
        await journal.create(RunRecord(id="run-1", agent="scripted", created=1.0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (BYTES, most))
        last = 0
        try:
            while True:
                await journal.append("run-1", [Entry(last + 1, b"x" * 10_000), Entry(last + 2, b"y")])
                last += 2
        except JournalError as exc:
            print(f"{type(exc).__name__}: {exc.reason}")  # noqa: T201
        record = await journal.get("run-1")
        print(last if record is not None and record.last_seq == last else record)  # noqa: T201
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        await journal.append("run-1", [Entry(last + 1, b"z" * 10_000)])
        record = await journal.get("run-1")
        print(None if record is None else record.last_seq)  # noqa: T201


anyio.run(main)
