"""Opens a journal as somebody who may do little, and prints what came of it."""

from __future__ import annotations

import os
import sys

import anyio

from thinkwell.journal import JournalError, SqliteJournal

NOBODY = 65534


async def main() -> None:
    if os.geteuid() == 0:
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    try:
        async with SqliteJournal(sys.argv[1]):
            print("open")  # noqa: T201
    except JournalError as exc:
        print(exc.reason)  # noqa: T201


anyio.run(main)
