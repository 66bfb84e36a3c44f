"""`python -m benchmarks.trials`: what the engine of trials adds to each, beside plain `Agent.map`.

The agent of these benchmarks starts in about 10 ms. Both ways start it once for each input, four at a time.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from thinkwell import open_agent, think
from thinkwell.trials import trials

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

AGENT = Path(__file__).parent / "agent.py"
COMMAND = [sys.executable, "-I", "-S", str(AGENT), "tokens", "10", "1"]
LIMIT = 4
TASK = think().text("Go: ")


async def plain(count: int) -> None:
    """Run each input with `Agent.map`, in an agent of its own."""
    slots = anyio.CapacityLimiter(LIMIT)

    async def one(number: int) -> None:
        async with slots, open_agent(command=COMMAND) as agent:
            (outcome,) = await agent.map(TASK, [number]).results()
            assert outcome.result

    async with anyio.create_task_group() as tasks:
        for number in range(count):
            tasks.start_soon(one, number)


async def engine(count: int, store: str) -> None:
    """Run each input as a trial."""
    report = await trials(TASK, inputs=range(count), agents=["bench"], limit=LIMIT, store=store)
    assert all(trial.status == "passed" for trial in report.trials)


def seconds(run: Callable[..., Awaitable[None]], *arguments: object) -> float:
    began = time.monotonic()
    anyio.run(run, *arguments)
    return time.monotonic() - began


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trials", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="how many trials")
    parser.add_argument("--store", help="the URL of a PostgreSQL database; by default an SQLite file")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        profiles = Path(folder, "thinkwell", "agents")
        profiles.mkdir(parents=True)
        (profiles / "bench.toml").write_text(f"[program]\ncommand = {json.dumps(COMMAND)}\n", "utf-8")
        os.environ["XDG_CONFIG_HOME"] = folder
        alone = seconds(plain, chosen.count)
        engaged = seconds(engine, chosen.count, chosen.store or str(Path(folder, "trials.sqlite")))
    print(f"{chosen.count} inputs, {LIMIT} at a time")
    print(f"Agent.map: {alone:.1f} s, {alone / chosen.count * 1000:.0f} ms each")
    print(f"trials:    {engaged:.1f} s, {engaged / chosen.count * 1000:.0f} ms each")
    print(f"the engine adds {(engaged - alone) / chosen.count * 1000:.0f} ms to each")


if __name__ == "__main__":
    main()
