"""The file of a journal is its process's alone, and what is wrong with it is told."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import stat
import subprocess
import sys
import tempfile
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest
from journals import entries, run_record

from thinkwell.journal import Entry, JournalError, SqliteJournal

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

PROGRAMS = Path(__file__).with_name("programs")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.sqlite"


def permissions(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def reason(path: Path) -> str:
    """Return why a file cannot be opened, and see that the error names it."""
    with anyio.fail_after(30), pytest.raises(JournalError) as raised:
        await SqliteJournal(path).open()
    assert raised.value.where == f"the journal {path}"
    assert str(raised.value) == f"the journal {path}: {raised.value.reason}"
    return raised.value.reason


async def have_runs(path: Path, count: int, *, size: int = 100) -> None:
    """Let there be a file with runs."""
    async with SqliteJournal(path) as journal:
        for number in range(count):
            await journal.create(run_record(f"run-{number}"))
            await journal.append(f"run-{number}", entries(1, 10, b"x" * size))
            await journal.finish(f"run-{number}", Entry(11, b"end"), "completed", 1.0)


# Where it is


async def test_its_files_and_new_folders_are_for_their_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "new" / "newer" / "runs.sqlite"
    async with SqliteJournal(path) as journal:
        await journal.create(run_record("run-1"))
        assert sorted(file.name for file in path.parent.iterdir()) == [
            "runs.sqlite",
            "runs.sqlite-lock",
            "runs.sqlite-shm",
            "runs.sqlite-wal",
        ]
        assert {permissions(file) for file in path.parent.iterdir()} == {0o600}
    assert {permissions(tmp_path / "new"), permissions(path.parent)} == {0o700}
    assert sorted(file.name for file in path.parent.iterdir()) == ["runs.sqlite", "runs.sqlite-lock"]


async def test_what_is_there_keeps_its_permissions(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    path = tmp_path / "runs.sqlite"
    path.touch()
    path.chmod(0o640)
    async with SqliteJournal(path):
        assert permissions(tmp_path / "runs.sqlite-wal") == 0o640
    assert (permissions(tmp_path), permissions(path)) == (0o755, 0o640)


async def test_its_name_may_be_relative_and_odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (":memory:", "file:a?mode=ro", "a b'c", "-x"):
        journal = SqliteJournal(name)
        assert journal.path == tmp_path / name
        async with journal:
            await journal.create(run_record("run-1"))
        async with SqliteJournal(tmp_path / name) as journal:
            assert len(await journal.runs()) == 1


async def test_it_says_what_it_is(path: Path) -> None:
    journal = SqliteJournal(path)
    assert repr(journal) == f"<SqliteJournal the journal {path}, closed>"
    async with journal:
        await journal.create(run_record("run-1"))
        assert repr(journal) == f"<SqliteJournal the journal {path}, 1 running>"


# Whose it is


@contextmanager
def holder(path: Path) -> Generator[subprocess.Popen[str]]:
    """Run another process that has the journal."""
    command = [sys.executable, str(PROGRAMS / "holding_journal.py"), str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "open\n"
            yield process
        finally:
            process.kill()


async def test_two_processes_cannot_have_it(path: Path) -> None:
    with holder(path) as other:
        for _ in range(2):
            assert "another server has it; end that one" in await reason(path)
        other.communicate()
        async with SqliteJournal(path) as journal:
            await journal.create(run_record("run-1"))


async def test_a_process_that_is_killed_has_it_no_more(path: Path) -> None:
    with holder(path) as other:
        assert "another server has it" in await reason(path)
        other.kill()
        other.wait()
        async with SqliteJournal(path) as journal:
            await journal.create(run_record("run-1"))


async def test_two_journals_of_a_process_cannot_have_it(path: Path) -> None:
    link = path.with_name("link")
    link.symlink_to(path)
    async with SqliteJournal(path) as journal:
        assert "another server has it" in await reason(path)
        assert "another server has it" in await reason(link)
        await journal.create(run_record("run-1"))
    async with SqliteJournal(link) as journal:
        assert len(await journal.runs()) == 1


async def test_of_two_that_come_at_once_one_has_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock, flock = path.with_name("runs.sqlite-lock"), fcntl.flock
    with ExitStack() as other:

        def late(descriptor: int, operation: int) -> None:
            monkeypatch.setattr(fcntl, "flock", flock)
            its_own = other.enter_context(lock.open())
            flock(its_own, operation)
            flock(descriptor, operation)

        monkeypatch.setattr(fcntl, "flock", late)
        assert "another server has it" in await reason(path)
        assert "another server has it" in await reason(path)  # the lock of the other one is still there
    async with SqliteJournal(path):
        pass


async def test_a_lock_that_was_removed_is_none(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock, flock = path.with_name("runs.sqlite-lock"), fcntl.flock

    def late(descriptor: int, operation: int) -> None:
        lock.unlink()  # by one that was refused, who had it first
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    assert "another server has it" in await reason(path)
    monkeypatch.undo()
    async with SqliteJournal(path):
        pass


# What it is


async def test_what_is_no_database_is_left_alone(path: Path) -> None:
    path.write_bytes(b"Dear diary, " * 1000)
    assert "it is not a database; give the journal another file" in await reason(path)
    assert path.read_bytes() == b"Dear diary, " * 1000
    path.unlink()
    async with SqliteJournal(path):
        pass


async def test_another_program_s_database_is_left_alone(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE runs (metres INTEGER)")
    before = path.read_bytes()
    assert "another program's database; give the journal a file of its own" in await reason(path)
    assert path.read_bytes() == before


async def test_a_newer_form_is_left_alone(path: Path) -> None:
    await have_runs(path, 1)
    with closing(sqlite3.connect(path)) as connection:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        connection.execute(f"PRAGMA user_version = {version + 1}")
    told = await reason(path)
    assert f"it is of a newer thinkwell (form {version + 1}, and this one knows {version}); update" in told
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    async with SqliteJournal(path) as journal:
        assert len(await journal.runs()) == 1


async def test_an_empty_database_becomes_a_journal(path: Path) -> None:
    path.touch()
    await have_runs(path, 1)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA auto_vacuum").fetchone() == (2,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


async def test_what_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder-lock").touch()
    for name in ("folder", "file/runs.sqlite", "loop/runs.sqlite", "nul\0", "n" * 300):
        assert "it cannot be opened (" in await reason(tmp_path / name)
    assert (tmp_path / "folder-lock").exists()  # another process may have it


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pipes with names")
async def test_what_is_a_file_by_name_only_is_left_alone(path: Path) -> None:
    os.mkfifo(path)
    assert "it is a device, not a file; give the journal a file of its own" in await reason(path)
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are of another kind")
@pytest.mark.parametrize("part", ["folder", "file"])
def test_what_may_not_be_written_is_told(part: str) -> None:
    program = str(PROGRAMS / "unprivileged_journal.py")
    with tempfile.TemporaryDirectory() as folder:  # pytest's own are closed to others
        path = Path(folder, "runs.sqlite")
        path.touch()
        path.chmod(0o444)
        path.parent.chmod(0o555 if part == "folder" else 0o777)
        result = subprocess.run(
            [sys.executable, program, str(path)], capture_output=True, text=True, timeout=60, check=False
        )
        path.parent.chmod(0o755)
    assert "it cannot be opened (Permission denied); check the path, and whose its folder is" in result.stdout


# What becomes of it


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such limits")
def test_a_full_disk_costs_what_was_not_stored_and_nothing_else(path: Path) -> None:
    program = str(PROGRAMS / "crowded_journal.py")
    result = subprocess.run(
        [sys.executable, program, str(path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert result.stderr == ""
    told, before, after = result.stdout.splitlines()
    assert told.startswith("JournalUnwritable: the disk has failed, or is full; look at it, then try again")
    assert int(before) > 10
    assert int(after) == int(before) + 1


def delete(path: Path) -> None:
    path.unlink()


def delete_its_log(path: Path) -> None:
    path.with_name(f"{path.name}-wal").unlink()


def replace_it(path: Path) -> None:
    path.rename(path.with_name("other"))
    path.write_bytes(path.with_name("other").read_bytes())


@pytest.mark.skipif(sys.platform == "win32", reason="no file can be deleted that is open")
@pytest.mark.parametrize("do", [delete, delete_its_log, replace_it])
async def test_a_file_that_is_taken_away_while_it_is_open_is_told(
    path: Path, do: Callable[[Path], None]
) -> None:
    async with SqliteJournal(path) as journal:
        await journal.create(run_record("run-1"))
        await journal.append("run-1", entries(1, 1))
        do(path)
        for _ in range(2):
            with pytest.raises(JournalError, match="it was deleted, moved or replaced while it was open"):
                await journal.append("run-1", entries(2, 2))
        with pytest.raises(JournalError, match="put it back, or end the server"):
            await journal.create(run_record("run-2"))
        if do is replace_it:
            assert len(await journal.read("run-1")) == 1
        else:
            with pytest.raises(JournalError, match="it was deleted, moved or replaced"):
                await journal.read("run-1")
    async with SqliteJournal(path) as journal:
        assert {run.id for run in await journal.runs()} <= {"run-1"}


@pytest.mark.skipif(sys.platform == "win32", reason="no file can be moved that is open")
async def test_a_file_that_was_moved_goes_on_when_it_is_put_back(path: Path) -> None:
    async with SqliteJournal(path) as journal:
        await journal.create(run_record("run-1"))
        path.rename(path.with_name("other"))
        with pytest.raises(JournalError, match="it was deleted, moved or replaced"):
            await journal.append("run-1", entries(1, 1))
        path.with_name("other").rename(path)
        await journal.append("run-1", entries(1, 1))
    async with SqliteJournal(path) as journal:
        assert len(await journal.read("run-1")) == 1


async def test_a_damaged_file_is_told(path: Path) -> None:
    await have_runs(path, 200, size=1000)
    whole = path.read_bytes()
    damaged = bytearray(whole)
    damaged[3 * 4096 :] = b"\xff" * (len(whole) - 3 * 4096)
    path.write_bytes(damaged)

    async def read_all() -> None:
        async with SqliteJournal(path) as journal:
            for number in range(200):
                await journal.read(f"run-{number}")

    with pytest.raises(JournalError, match="it is damaged; put a copy from before in its place"):
        await read_all()
    path.write_bytes(whole)
    async with SqliteJournal(path) as journal:
        assert len(await journal.read("run-7")) == 11


async def test_a_damaged_record_is_told(path: Path) -> None:
    await have_runs(path, 2)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE runs SET record = '{' WHERE id = 'run-1'")
    async with SqliteJournal(path) as journal:
        with pytest.raises(JournalError, match="it is damaged"):
            await journal.runs()
        assert await journal.get("run-0") is not None


@pytest.mark.long
async def test_deleted_runs_give_their_space_back(path: Path) -> None:
    async with SqliteJournal(path) as journal:
        for number in range(4):
            await journal.create(run_record(f"run-{number}"))
            await journal.append(f"run-{number}", entries(1, 1000, b"x" * 8000))
            await journal.append(f"run-{number}", entries(1001, 1001, b"x" * 6_000_000))
            await journal.finish(f"run-{number}", Entry(1002, b"end"), "completed", 1.0)
    full = path.stat().st_size
    async with SqliteJournal(path) as journal:
        for number in (0, 2, 3):
            await journal.delete(f"run-{number}")
        assert path.stat().st_size < full / 3
        assert sum(len(entry.data) for entry in await journal.read("run-1", 1000)) == 6_000_000
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT DISTINCT place >> 32 FROM entries").fetchall() == [(2,)]
        assert connection.execute("SELECT count(*) FROM doomed").fetchone() == (0,)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


async def test_what_a_killed_process_has_not_deleted_is_deleted_by_the_next(path: Path) -> None:
    await have_runs(path, 3)
    with closing(sqlite3.connect(path)) as connection, connection:  # as far as it may have come
        connection.execute("INSERT INTO doomed SELECT number, 3 FROM runs WHERE id = 'run-1'")
        connection.execute("DELETE FROM logs WHERE number = (SELECT number FROM runs WHERE id = 'run-1')")
        connection.execute("DELETE FROM runs WHERE id = 'run-1'")
    async with SqliteJournal(path) as journal:
        assert await journal.read("run-1") == []
        await journal.create(run_record("run-1"))
        assert await journal.read("run-1") == []
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT place >> 32, count(*) FROM entries GROUP BY 1").fetchall() == [
            (1, 11),
            (3, 11),
        ]
        assert connection.execute("SELECT count(*) FROM doomed").fetchone() == (0,)


async def test_numbers_of_deleted_runs_are_not_used_again(path: Path) -> None:
    await have_runs(path, 2)
    async with SqliteJournal(path) as journal:
        await journal.delete("run-1")
        await journal.create(run_record("run-9"))
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT number FROM runs").fetchall() == [(1,), (3,)]
