"""``thinkwell worker``: runs the trials that another machine has planned."""

from __future__ import annotations

import json
import signal
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from cli.command import run_command
from cli.typing_in import thinkwell
from postgres_servers import running_postgres

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path


@contextmanager
def working(*options: str) -> Generator[subprocess.Popen[str]]:
    """Run a worker until the end of the block."""
    process = subprocess.Popen([*thinkwell("worker"), *options], stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def heard(process: subprocess.Popen[str], what: str) -> str:
    """Wait for a line with a text."""
    assert process.stderr is not None
    lines = list[str]()
    for line in process.stderr:
        lines.append(line)
        if what in line:
            return line
    raise AssertionError(lines)


@pytest.mark.long
def test_it_runs_what_another_program_has_planned(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text('task = "Greet"\ninputs = ["Ada", "Bob"]\nagents = ["builtin"]\nrepeat = 2\n')
    with running_postgres() as server:
        store = server.database()
        options = ("--at-once", "builtin=1", "--rate", "builtin=100/1", "--limit", "2")
        with working("-a", "builtin", "-a", "cloude", "--db", store, *options) as worker:
            assert "'cloude'" in heard(worker, "Not cloude: ")
            assert heard(worker, "Worker ").endswith(" runs builtin\n")
            done = run_command("trials", str(plan), "--db", store, "--no-worker", "--json")
            assert done.code == 0, done.err
            assert [trial["status"] for trial in json.loads(done.out)["trials"]] == ["passed"] * 4
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(20) == 128 + signal.SIGTERM


def test_it_leaves_where_it_can_run_no_agent(tmp_path: Path) -> None:
    done = run_command("worker", "-a", "cloude", "--db", str(tmp_path / "trials.sqlite"))
    assert done.code == 3
    assert "Not cloude: " in done.err
    assert done.err.endswith(" runs no agent\n")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["-a", "builtin"], "there is none; give the store of the trials, or put it in THINKWELL_DB"),
        (
            ["-a", "builtin", "--db", "postgresql://me:secret@host/db"],
            "can read a password on the command line",
        ),
        (
            ["-a", "builtin", "--db", "postgresql://h/db?password=secret"],
            "can read a password on the command",
        ),
        (["-a", "builtin", "--db", "x", "--at-once", "builtin=0"], "'builtin=0': write it as in claude=2"),
        (["-a", "builtin", "--db", "x", "--at-once", "claude=2"], "'claude' is none of this worker's agents"),
        (["-a", "builtin", "--db", "x", "--rate", "builtin=2"], "'builtin=2': write it as in claude=30/60"),
        (["--db", "x"], "Missing option '--agent'"),
    ],
)
def test_options_that_cannot_be_used(options: list[str], why: str) -> None:
    done = run_command("worker", *options)
    assert done.code == 2
    assert why in " ".join(done.err.split())
    assert "secret" not in done.err
