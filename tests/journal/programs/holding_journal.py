"""Has a journal until its input ends: `holding_journal.py FILE`."""

from __future__ import annotations

import sys

import anyio
import anyio.to_thread

from thinkwell.journal import SqliteJournal


async def main() -> None:
    async with SqliteJournal(sys.argv[1]):
        print("open", flush=True)  # noqa: T201
        await anyio.to_thread.run_sync(sys.stdin.read)


anyio.run(main)
