"""What ``thinkwell serve`` says of a journal that it cannot use. It changes nothing of that."""

from __future__ import annotations

import re
import sqlite3
import sys
from pathlib import Path

import pytest
from cli.command import run_command
from cli.typing_in import home

__all__ = ("home",)


def refused(where: str) -> str:
    """Return what is said of a journal, of which everything has to stay as it is."""
    before = {path: path.read_bytes() for path in Path.cwd().rglob("*") if path.is_file()}
    done = run_command("serve", "--port", "0", "--journal", where)
    assert (done.code, done.out) == (1, "")
    assert {path: path.read_bytes() for path in Path.cwd().rglob("*") if path.is_file()} == before
    return " ".join(re.sub(r"[│╭╮╰╯─]", " ", done.err).split())


def test_a_file_that_is_no_journal(home: Path) -> None:
    Path("README.md").write_text("# Hello\n" * 100, "utf-8")
    told = refused("README.md")
    assert f"Error: the journal {home}/README.md: it is not a database" in told
    assert "Next: give the journal another file" in told


def test_a_database_of_another_program(home: Path) -> None:
    connection = sqlite3.connect("other.db")
    connection.execute("CREATE TABLE bills (amount INTEGER)")
    connection.close()
    told = refused("other.db")
    assert "it is another program's database" in told
    assert "give the journal a file of its own" in told


def test_a_journal_of_a_newer_version(home: Path) -> None:
    connection = sqlite3.connect("runs.db")
    connection.executescript(
        "PRAGMA application_id = 1415006796; PRAGMA user_version = 2; CREATE TABLE runs (a);"
    )
    connection.close()
    told = refused("runs.db")
    assert "it is of a newer thinkwell (form 2, and this one knows 1)" in told
    assert "update thinkwell, or give this one a file of its own" in told


def test_a_folder(home: Path) -> None:
    Path("runs").mkdir()
    told = refused("runs")
    assert f"the journal {home}/runs: it cannot be opened (Is a directory)" in told
    assert "check the path, and whose its folder is" in told


def test_a_file_in_a_file(home: Path) -> None:
    assert "it cannot be opened (Not a directory)" in refused("parser.py/runs.db")


@pytest.mark.skipif(sys.platform == "win32", reason="a device of POSIX systems")
def test_a_device(home: Path) -> None:
    told = refused("/dev/null")
    assert "the journal /dev/null: it is a device, not a file" in told
    assert not Path("/dev/null-lock").exists()


def test_what_another_server_has_locked_stays_locked(home: Path) -> None:
    Path("runs.db").write_bytes(b"no database at all")
    Path("runs.db-lock").write_bytes(b"")
    refused("runs.db")
    assert Path("runs.db-lock").exists()
