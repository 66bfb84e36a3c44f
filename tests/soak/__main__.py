"""Runs on servers that are killed: ``cd tests && python -m soak [RUNS [WATCHERS [KILLS [SEED [JOURNAL]]]]]``.

``thinkwell serve`` in a process of its own, on the loopback, with its journal in an SQLite file; then two of
them that have one journal in Redis. In each phase a share of the runs is started, and every watcher watches
one of them; all phases but the last end with a SIGKILL, and the last with a SIGTERM. The exit status is 1
where a watcher lost an event or got one again, where something is not as the agent did it, where a run or a
process is left behind, or where a server needs too much memory.
"""
# ruff: noqa: T201

from __future__ import annotations

import shutil
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from soak.soaking import Outcome

LIMIT = 900.0
"""Seconds after which something hangs. On two processors it takes three minutes."""

JOURNALS = ("sqlite", "redis")


def main(arguments: list[str]) -> int:
    """Soak, print what came of it, and return the exit status."""
    given = [int(argument) for argument in arguments[:4]]
    runs, watchers, kills, seed = (*given, *(500, 2_000, 3, 1)[len(given) :])
    bad = 0
    for journal in arguments[4:] or JOURNALS:
        if journal == "redis" and shutil.which("redis-server") is None:
            print("redis is left out: there is no redis-server on PATH", flush=True)
            continue
        print(f"{journal}: {runs:,} runs, {watchers:,} watchers, {kills} kills, seed {seed}", flush=True)
        outcome = soak_with(journal, runs, watchers, kills, seed)
        print(outcome, flush=True)
        if outcome.bad:
            bad = 1
            again = f"RUNS={runs} WATCHERS={watchers} KILLS={kills} SEED={seed} JOURNAL={journal}"
            print(f"the same once more: make soak {again}", flush=True)
    return bad


def soak_with(journal: str, runs: int, watchers: int, kills: int, seed: int) -> Outcome:
    """Soak servers that have their runs in a journal of some kind."""
    from redis_servers import running_redis
    from soak.server_process import ServerProcess, allow_files
    from soak.soak_plan import plan_of
    from soak.soaking import soak

    allow_files(watchers + 1_000)
    with ExitStack() as stack:
        redis = stack.enter_context(running_redis()).url if journal == "redis" else ""
        folders = [Path(stack.enter_context(tempfile.TemporaryDirectory())) for _ in range(2 if redis else 1)]
        servers = [ServerProcess(folder, 2 * watchers + runs, redis=redis) for folder in folders]
        return anyio.run(soak, servers, plan_of(seed, runs, watchers, kills), LIMIT)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
