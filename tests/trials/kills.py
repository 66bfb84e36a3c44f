"""Trials whose program is killed at random moments, and what is left of them.

``cd tests && python -m trials.kills --trials 200 --kills 50`` prints what it has found.
"""

from __future__ import annotations

import argparse
import os
import random
import secrets
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct
from trials.repositories import Repository

if TYPE_CHECKING:
    from collections.abc import Mapping

PROGRAM: Final = Path(__file__).parent / "programs" / "many.py"

PATIENCE: Final = 900.0
"""Seconds for what is left after the last kill."""

LONGEST: Final = 8.0
"""Seconds from a start to a kill at most."""


class Row(Struct, frozen=True):
    """A trial in a report."""

    input: str
    status: str
    attempts: int
    spent: dict[str, float | None]


class Found(Struct, frozen=True, kw_only=True):
    """What was found."""

    rows: list[Row]
    """The trials of the report."""
    again: int
    """How many trials that had ended have changed after that."""
    calls: int
    """How often the tool was called."""
    left: list[str]
    """What is left: worktrees, branches, locks, processes."""
    lived_on: float
    """Seconds after the last start until all processes of the starts before were gone."""


def kill_often(
    folder: Path, *, trials: int, kills: int, calls: int, seed: int, env: Mapping[str, str]
) -> Found:
    """Run trials, kill their program at random moments, and let it end at last.

    Args:
        folder: An empty folder.
        trials: How many trials.
        kills: How often to kill it.
        calls: The budget, in tool calls.
        seed: Of the moments.
        env: The environment.
    """
    chance = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    repository = Repository.make(folder / "api", {"app.py": "one\ntwo\n"})
    before = repository.state()
    store, counted, temporary = folder / "s.sqlite", folder / "calls", folder / "temporary"
    temporary.mkdir()
    counted.touch()
    mark = secrets.token_hex(8)
    command = (sys.executable, str(PROGRAM), str(repository.path), str(store), str(trials), str(calls), "4")
    ended, again = dict[str, tuple[str, int]](), 0
    env = {**env, "COUNTED_CALLS": str(counted), "THINKWELL_BUILTIN_PACE": "0", "TMPDIR": str(temporary)}
    for number in range(kills):
        with subprocess.Popen(command, env={**env, "KILLED_START": f"{mark}-{number}"}) as process:
            time.sleep(chance.uniform(0.1, LONGEST))
            process.send_signal(signal.SIGKILL)
        now = _ended(store)
        again += sum(now.get(name) != found for name, found in ended.items())
        ended = now
    with subprocess.Popen(command, env={**env, "KILLED_START": f"{mark}-last"}) as process:
        began = time.monotonic()
        while any("-last" not in found for found in _processes(mark)):
            time.sleep(0.1)
        lived_on = time.monotonic() - began
        assert process.wait(PATIENCE) == 0
    now = _ended(store)
    again += sum(now.get(name) != found for name, found in ended.items())
    report = msgspec.json.decode((folder / "report.json").read_bytes(), type=dict[str, msgspec.Raw])
    left = [*_processes(mark), *map(str, temporary.iterdir())]
    left += [str(path) for path in folder.glob("s.sqlite*") if path != store]
    git = repository.path / ".git"
    left += [str(path) for path in (*git.glob("thinkwell-*"), *git.glob("worktrees/*"), *git.rglob("*.lock"))]
    if repository.state() != before:
        left.append("the repository has changed")
    return Found(
        rows=msgspec.json.decode(report["trials"], type=list[Row]),
        again=again,
        calls=counted.read_text().count("x"),
        left=left,
        lived_on=lived_on,
    )


def _ended(store: Path) -> dict[str, tuple[str, int]]:
    """Return the trials that have ended, with their status and attempts."""
    if not store.exists():
        return {}
    with closing(sqlite3.connect(store, timeout=30)) as file:
        try:
            rows = file.execute(
                "SELECT input, status, attempt FROM thinkwell_trials "
                "WHERE status NOT IN ('waiting', 'running', 'cancelled')"
            ).fetchall()
        except sqlite3.OperationalError:  # it was killed before it had made the tables
            return {}
    return {name: (status, attempt) for name, status, attempt in rows}


def _processes(mark: str) -> list[str]:
    """Return the processes that live, by the mark in their environment and the start that they belong to."""
    found = list[str]()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                environment = (entry / "environ").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
            starts = [line for line in environment if line.startswith(f"KILLED_START={mark}")]
            found += [f"process {entry.name}: {line}" for line in starts if state != "Z"]
    return found


def main() -> None:
    """Print what is found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        settings = Path(folder, "settings-of-git")
        settings.write_text("[user]\n name = Ada\n email = ada@example.org\n")
        os.environ["GIT_CONFIG_GLOBAL"] = str(settings)
        found = kill_often(Path(folder, "work").absolute(), env=dict(os.environ), **vars(chosen))
        seconds = time.monotonic() - began
    statuses = [row.status for row in found.rows]
    spent = sum(row.spent["tool_calls"] or 0 for row in found.rows)
    attempts = [row.attempts for row in found.rows]
    print(
        f"{chosen.kills} kills, {seconds:.0f} s; {len(set(row.input for row in found.rows))} trials in the report"
    )
    print({status: statuses.count(status) for status in set(statuses)})
    print(f"attempts: {sum(attempts)}, at most {max(attempts)}; ended trials that changed: {found.again}")
    print(f"tool calls: {spent:g} counted, of the own tool {found.calls}; budget {chosen.calls}")
    print(f"left: {found.left or 'nothing'}; processes of earlier starts lived {found.lived_on:.1f} s")


if __name__ == "__main__":
    main()
