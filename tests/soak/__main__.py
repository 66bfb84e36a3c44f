"""Runs on a server that is killed: ``cd tests && python -m soak [RUNS [WATCHERS [KILLS [SEED]]]]``.

``thinkwell serve`` in a process of its own, on the loopback, with its journal in an SQLite file. In each
phase a share of the runs is started, and every watcher watches one of them; all phases but the last end with
a SIGKILL, and the last with a SIGTERM. The exit status is 1 where a watcher lost an event or got one again,
where something is not as the agent did it, where a run or a process is left behind, or where the server needs
too much memory.
"""
# ruff: noqa: T201

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import anyio

LIMIT = 900.0
"""Seconds after which something hangs. On two processors it takes three minutes."""


def main(arguments: list[str]) -> int:
    """Soak, print what came of it, and return the exit status."""
    from soak.server_process import ServerProcess, allow_files
    from soak.soak_plan import plan_of
    from soak.soaking import soak

    given = [int(argument) for argument in arguments]
    runs, watchers, kills, seed = (*given, *(500, 2_000, 3, 1)[len(given) :])
    allow_files(watchers + 1_000)
    with tempfile.TemporaryDirectory() as folder:
        server = ServerProcess(Path(folder), 2 * watchers + runs)
        outcome = anyio.run(soak, server, plan_of(seed, runs, watchers, kills), LIMIT)
    print(outcome)
    return 1 if outcome.bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
