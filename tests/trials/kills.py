"""Trials whose programs and workers are killed or stopped at random moments, and what is left of them.

``cd tests && python -m trials.kills`` kills the program of 200 trials in a file 50 times. With ``--workers
4`` they are in PostgreSQL, one of so many workers is killed again and again, and one is stopped for two
leases, ``--stops`` times. It prints what it has found.
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
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct
from postgres_servers import running_postgres
from trials.repositories import Repository

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from postgres_servers import PostgresServer

PROGRAMS: Final = Path(__file__).parent / "programs"

PATIENCE: Final = 900.0
"""Seconds for what is left after the last kill."""

LONGEST: Final = 8.0
"""Seconds from a start to a kill at most."""

LEASE: Final = 3.0
"""Seconds of the workers' leases."""

ENDED: Final = (
    "SELECT input, status, attempt FROM thinkwell_trials "
    "WHERE status NOT IN ('waiting', 'running', 'cancelled')"
)

RUNNING: Final = "SELECT input FROM thinkwell_trials WHERE status = 'running'"


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
    """Seconds for which processes lived that should have ended."""


class Scene:
    """A repository, a program that runs trials in it, and all processes that come of it.

    Args:
        folder: A folder to make.
        store: The address of the store.
        trials: How many trials.
        calls: The budget, in tool calls.
        env: The environment.
        ended: Reads the trials that have ended.
    """

    def __init__(
        self,
        folder: Path,
        store: str,
        *,
        trials: int,
        calls: int,
        env: Mapping[str, str],
        ended: Callable[[], list[tuple[str, ...]]],
    ) -> None:
        self._temporary = folder / "temporary"
        self._temporary.mkdir(parents=True)
        self._folder = folder
        self._repository = Repository.make(folder / "api", {"app.py": "one\ntwo\n"})
        self._before = self._repository.state()
        self._counted = folder / "calls"
        self._counted.touch()
        self._read = ended
        self._ended: list[tuple[str, ...]] = []
        self._again = 0
        self._mark = secrets.token_hex(8)
        own = {"THINKWELL_BUILTIN_PACE": "0", "TMPDIR": str(self._temporary)}
        self._env = {**env, **own, "COUNTED_CALLS": str(self._counted)}
        self._command = [
            str(PROGRAMS / "many.py"),
            str(self._repository.path),
            store,
            str(trials),
            str(calls),
            "4",
        ]

    def start(self, name: str, *command: str) -> subprocess.Popen[str]:
        """Start a program, by default that with the trials; its processes are found by the name."""
        env = {**self._env, "KILLED_START": f"{self._mark}-{name}"}
        words = command or self._command
        return subprocess.Popen([sys.executable, *words], env=env, stdout=subprocess.PIPE, text=True)

    def look(self) -> None:
        """Compare the trials that have ended with those of the last time."""
        now = self._read()
        self._again += sum(row not in now for row in self._ended)
        self._ended = now

    def let_marks_age(self) -> None:
        """Let a minute pass for the marks of worktrees: one without a lock may be of a process that lives."""
        for mark in (self._repository.path / ".git").glob("thinkwell-*"):
            os.utime(mark, (0, 0))

    def processes(self, name: str = "") -> list[int]:
        """Return the processes that live and come of a program, by its name; of all by default."""
        found = list[int]()
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                environment = (entry / "environ").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
            if state != "Z" and any(
                line.startswith(f"KILLED_START={self._mark}-{name}") for line in environment
            ):
                found.append(int(entry.name))
        return found

    def wait(self, processes: Callable[[], list[int]]) -> float:
        """Wait until these have ended; return the seconds."""
        began = time.monotonic()
        while processes():
            assert time.monotonic() - began < PATIENCE
            time.sleep(0.1)
        return time.monotonic() - began

    def found(self, lived_on: float) -> Found:
        """Return what was found."""
        self.look()
        report = msgspec.json.decode((self._folder / "report.json").read_bytes(), type=dict[str, msgspec.Raw])
        git = self._repository.path / ".git"
        paths = [*self._temporary.iterdir(), *self._folder.glob("s.sqlite-*")]
        paths += [*git.glob("thinkwell-*"), *git.glob("worktrees/*"), *git.rglob("*.lock")]
        left = [*map(str, paths), *(f"process {number}" for number in self.processes())]
        if self._repository.state() != self._before:
            left.append("the repository has changed")
        return Found(
            rows=msgspec.json.decode(report["trials"], type=list[Row]),
            again=self._again,
            calls=self._counted.read_text().count("x"),
            left=left,
            lived_on=lived_on,
        )


def kill_programs(
    folder: Path, *, trials: int, kills: int, calls: int, seed: int, env: Mapping[str, str]
) -> Found:
    """Run trials in a file, kill their program at random moments, and let it end at last."""
    chance, store = random.Random(seed), folder / "s.sqlite"

    def ended() -> list[tuple[str, ...]]:
        if not store.exists():
            return []
        with closing(sqlite3.connect(store, timeout=30)) as file:
            try:
                return file.execute(ENDED).fetchall()
            except sqlite3.OperationalError:  # it was killed before it had made the tables
                return []

    scene = Scene(folder, str(store), trials=trials, calls=calls, env=env, ended=ended)
    for number in range(kills):
        with scene.start(f"{number}-") as program:
            time.sleep(chance.uniform(0.1, LONGEST))
            program.kill()
        scene.look()
        scene.let_marks_age()
    with scene.start("last") as program:
        lived_on = scene.wait(lambda: [*set(scene.processes()) - set(scene.processes("last"))])
        assert program.wait(PATIENCE) == 0
    return scene.found(lived_on)


def kill_workers(
    folder: Path,
    server: PostgresServer,
    *,
    workers: int,
    trials: int,
    stops: int,
    calls: int,
    seed: int,
    env: Mapping[str, str],
) -> Found:
    """Run trials in PostgreSQL; while they run, kill a worker again and again, and stop and wake one.

    At the end all workers are asked to leave.
    """
    chance, url = random.Random(seed), server.database()

    def asked(query: str) -> list[tuple[str, ...]]:
        tables = server.ask(url, "SELECT to_regclass('thinkwell_trials')")
        return [tuple(line.split("|")) for line in server.ask(url, query).splitlines()] if tables else []

    without = {**env, "NO_WORKER": "1"}
    scene = Scene(folder, url, trials=trials, calls=calls, env=without, ended=lambda: asked(ENDED))
    program = scene.start("program")
    count, living = 0, dict[str, subprocess.Popen[str]]()

    def hire() -> None:
        nonlocal count
        count += 1
        living[f"worker{count}-"] = scene.start(
            f"worker{count}-", str(PROGRAMS / "worker.py"), url, str(LEASE)
        )

    for _ in range(workers):
        hire()
    stopped = 0
    while program.poll() is None:
        if not asked(RUNNING):  # a worker takes its time to start, and a longer one where the machine is busy
            time.sleep(0.3)
            continue
        time.sleep(chance.uniform(0, 3))
        name = chance.choice([*living])
        pids = scene.processes(name)
        if stopped < stops:
            stopped += 1
            for pid in pids:
                _signal(pid, signal.SIGSTOP)
            time.sleep(2 * LEASE)
            for pid in pids:
                _signal(pid, signal.SIGCONT)
        victim = chance.choice([each for each in living if each != name])
        for pid in scene.processes(victim):
            _signal(pid, signal.SIGKILL)
        living.pop(victim).communicate()
        hire()
        scene.look()
    assert program.wait() == 0
    program.communicate()
    for worker in living.values():
        worker.terminate()
    lived_on = scene.wait(scene.processes)
    for worker in living.values():
        worker.communicate()
    return scene.found(lived_on)


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):  # it has just ended
        os.kill(pid, number)


def main() -> None:
    """Print what is found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--stops", type=int, default=20)
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        began, folder = time.monotonic(), Path(temporary, "work")
        settings = Path(temporary, "settings-of-git")
        settings.write_text("[user]\n name = Ada\n email = ada@example.org\n")
        os.environ["GIT_CONFIG_GLOBAL"] = str(settings)
        options = {"trials": chosen.trials, "calls": chosen.calls, "seed": chosen.seed}
        if chosen.workers:
            with running_postgres() as server:
                found = kill_workers(
                    folder, server, workers=chosen.workers, stops=chosen.stops, env=os.environ, **options
                )
        else:
            found = kill_programs(folder, kills=chosen.kills, env=os.environ, **options)
        seconds = time.monotonic() - began
    statuses = [row.status for row in found.rows]
    spent = sum(row.spent["tool_calls"] or 0 for row in found.rows)
    attempts = [row.attempts for row in found.rows]
    lines = (
        f"{chosen}, {seconds:.0f} s; {len({row.input for row in found.rows})} trials in the report",
        f"{ ({status: statuses.count(status) for status in set(statuses)}) }",
        f"attempts: {sum(attempts)}, at most {max(attempts)}; ended trials that changed: {found.again}",
        f"tool calls: {spent:g} counted, of the own tool {found.calls}; budget {chosen.calls}",
        f"left: {found.left or 'nothing'}; processes that should have ended lived {found.lived_on:.1f} s",
    )
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
