"""A server process that has runs in Redis, and does what it is told: a line each for command and answer.

create RUN | append RUN FIRST LAST | flood RUN | orphans
"""

from __future__ import annotations

import sys

import anyio
import anyio.to_thread

from thinkwell.journal import Entry, JournalError, RunRecord
from thinkwell.journal.redis import RedisJournal


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


async def do(journal: RedisJournal, command: str, *args: str) -> str:
    if command == "create":
        await journal.create(RunRecord(id=args[0], agent="scripted", created=1.0))
        return "created"
    if command == "append":
        run_id, first, last = args
        await journal.append(run_id, [Entry(seq, b"{}") for seq in range(int(first), int(last) + 1)])
        return "appended"
    if command == "flood":
        seq = 0
        while True:
            seq += 1
            await journal.append(args[0], [Entry(seq, b'{"number": %d}' % seq)])
            say(str(seq))
    return " ".join(["orphans", *[record.id for record in await journal.orphans()]])


async def answer(run_id: str, body: bytes) -> bytes:
    return run_id.encode() + b" is here: " + body


async def main(url: str, prefix: str, lease: str) -> None:
    async with RedisJournal(url, prefix=prefix, lease=float(lease)) as journal:
        journal.serve(answer)
        say("open")
        while line := await anyio.to_thread.run_sync(sys.stdin.readline):
            try:
                say(await do(journal, *line.split()))
            except JournalError as exc:
                say(f"{type(exc).__name__} {exc}")


anyio.run(main, sys.argv[2], sys.argv[3], sys.argv[4], backend=sys.argv[1])
