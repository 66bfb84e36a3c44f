"""A process that is killed at any moment has lost nothing that it was told was stored."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from journal.killed_program import content, finished
from journals import run_record

from thinkwell.journal import Entry, SqliteJournal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from thinkwell.journal import RunRecord, RunStatus

PROGRAM = Path(__file__).with_name("killed_program.py")

AFTER = (1, 2, 3, 5, 8, 20, 50, 51, 52, 53, 120, 121, 250, 400)
"""How much is told before the process is killed. ``1`` is before the file is open."""


@dataclass
class Told:
    """What was told of a run."""

    last: int = 0
    piece: int = 0
    status: RunStatus = "running"
    deleting: bool = False
    deleted: bool = False


def note(told: dict[str, Told], lines: Iterable[str]) -> None:
    for line in lines:
        what, *words = line.split()
        if what in ("begin", "open"):
            continue
        run = told.setdefault(words[0], Told())
        if what == "put":
            run.piece = int(words[1])
        elif what == "deleting":
            run.deleting = True
        elif what == "deleted":
            run.deleted = True
        elif what != "created":
            run.last = int(words[1])
            if what == "finished":
                run.status = "completed"
            elif what == "interrupted":
                run.status = "interrupted"


def kill_after(count: int, path: Path, backend: str, seed: str) -> list[str]:
    """Run the program, kill it when it has told so much, and return all that it has told."""
    command = [sys.executable, str(PROGRAM), str(path), backend, seed]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(count)]
        process.kill()
        return [*lines, *process.stdout.readlines()]


async def check_run(journal: SqliteJournal, record: RunRecord, told: Told) -> None:
    entries: list[Entry] = []
    while page := await journal.read(record.id, len(entries)):
        entries += page
    assert [entry.seq for entry in entries] == list(range(1, record.last_seq + 1))
    assert record.size == sum(len(entry.data) for entry in entries)
    assert record.last_seq >= told.last
    if record.status != "running":
        assert entries.pop().data == finished(record.id)
    assert [entry.data for entry in entries] == [content(record.id, entry.seq) for entry in entries]
    if told.status != "running":
        assert (record.status, record.last_seq) == (told.status, told.last)
    piece = await journal.pick("last", record.id)
    assert int(piece or b"0") in range(told.piece, record.last_seq + 1)


@pytest.mark.parametrize("after", [(1, 20, 121, 250), pytest.param(AFTER, marks=pytest.mark.long)], ids=len)
async def test_what_was_told_to_be_stored_is_there_after_a_kill(
    tmp_path: Path, anyio_backend: str, after: tuple[int, ...]
) -> None:
    path = tmp_path / "runs.sqlite"
    told: dict[str, Told] = {}
    dice = random.Random(anyio_backend)
    for number, count in enumerate(dice.sample(after, len(after))):
        note(told, kill_after(count, path, anyio_backend, f"{number}"))
        async with SqliteJournal(path) as journal:
            records = {record.id: record for record in await journal.runs(limit=100_000)}
            for run_id, run in told.items():
                if run.deleted:
                    assert run_id not in records
                elif not run.deleting:
                    assert run_id in records
            for record in records.values():
                await check_run(journal, record, told.get(record.id, Told()))
            assert await journal.size() == sum(record.size for record in records.values())
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            left = connection.execute(
                "SELECT place >> 32 FROM entries EXCEPT SELECT number FROM runs"
            ).fetchall()
            assert left == []
    assert any(run.deleted for run in told.values())
    assert {run.status for run in told.values()} >= {"completed", "interrupted"}


async def test_a_power_cut_costs_the_last_moments_only(tmp_path: Path) -> None:
    """What SQLite had not brought to the disk is gone: the end of its log, wherever that is cut."""
    path = tmp_path / "runs.sqlite"
    async with SqliteJournal(path) as journal:
        for number in range(3):
            await journal.create(run_record(f"run-{number}"))
        for seq in range(1, 41):
            for number in range(3):
                await journal.append(f"run-{number}", [Entry(seq, content(f"run-{number}", seq))])
        await journal.finish("run-0", Entry(41, finished("run-0")), "completed", 1.0)
        file, log = path.read_bytes(), path.with_name("runs.sqlite-wal").read_bytes()
    dice = random.Random(1)
    last = -1
    for turn, cut in enumerate(sorted([0, 1, len(log), *(dice.randrange(len(log)) for _ in range(30))])):
        again = tmp_path / str(cut) / "runs.sqlite"
        again.parent.mkdir()
        again.write_bytes(file)
        torn = dice.randbytes(len(log) - cut) if turn % 2 else b""  # half of a page is on the disk
        again.with_name("runs.sqlite-wal").write_bytes(log[:cut] + torn)
        async with SqliteJournal(again) as journal:
            records = await journal.runs()
            for record in records:
                await check_run(journal, record, Told())
        known = sum(record.last_seq for record in records)
        assert known >= last
        last = known
    assert last == 121
