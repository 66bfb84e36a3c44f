"""Does all that a server does with a journal, and tells each thing when it is stored, until it is killed.

As a program it is called with a file, the event loop and a seed, from which follows what it stores.
"""

from __future__ import annotations

import hashlib
import os
import random
import sys

import anyio

from thinkwell.journal import Entry, RunRecord, SqliteJournal

RUNS_AT_ONCE = 6


def content(run_id: str, seq: int) -> bytes:
    """Return what is in an entry: from a few bytes to a hundred thousand."""
    digest = hashlib.sha256(f"{run_id}:{seq}".encode()).digest()
    return digest * (1 + digest[0] % 8 + (3000 if digest[1] < 4 else 0))


def finished(run_id: str) -> bytes:
    """Return what is in the last entry of a run."""
    return f"end of {run_id}".encode()


def tell(*words: object) -> None:
    """Say that something is stored: in one write, so that a kill leaves no half of it."""
    os.write(1, " ".join(map(str, words)).encode() + b"\n")


async def live(journal: SqliteJournal, run_id: str, dice: random.Random) -> None:
    """Let there be a run, from its beginning to its end."""
    await journal.create(RunRecord(id=run_id, agent="scripted", created=1.0, key=run_id))
    tell("created", run_id)
    last = 0
    for _ in range(dice.randint(1, 8)):
        first, last = last + 1, last + dice.choice((1, 1, 2, 5, 40))
        await journal.append(run_id, [Entry(seq, content(run_id, seq)) for seq in range(first, last + 1)])
        tell("appended", run_id, last)
        await journal.put("last", run_id, b"%d" % last)
        tell("put", run_id, last)
    await journal.finish(run_id, Entry(last + 1, finished(run_id)), "completed", 1.0)
    tell("finished", run_id, last + 1)
    if dice.random() < 0.4:
        tell("deleting", run_id)
        await journal.delete(run_id)
        tell("deleted", run_id)


async def main(path: str, seed: str) -> None:
    """Go on until the process is killed."""

    async def go_on(name: str) -> None:
        dice = random.Random(name)
        for number in range(10_000):
            await live(journal, f"{name}-{number}", dice)

    tell("begin")
    async with SqliteJournal(path) as journal:
        tell("open")
        for record in await journal.orphans():
            end = Entry(record.last_seq + 1, finished(record.id))
            await journal.finish(record.id, end, "interrupted", 1.0)
            tell("interrupted", record.id, end.seq)
        async with anyio.create_task_group() as tasks:
            for number in range(RUNS_AT_ONCE):
                tasks.start_soon(go_on, f"{seed}-{number}")


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], sys.argv[3], backend=sys.argv[2])
