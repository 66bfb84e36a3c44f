"""Cancelled runs of agents with a family leave no process behind, whenever and however they are cancelled.

``THINKWELL_CANCELLED_RUNS=200 python -m pytest -s tests/limits/test_leaks.py`` cancels two hundred on each
event loop.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
import pytest
from limits.seeds import noted, seeds

from thinkwell import Agent, AgentError, ThoughtCancelled, ThoughtTimeout, open_agent

if TYPE_CHECKING:
    import random
    from collections.abc import Awaitable, Callable

MANY = seeds("THINKWELL_CANCELLED_RUNS", 8)

AT_ONCE: Final = 16
RATE: Final = 5
"""How much faster time goes by: agents that heed nothing are waited for."""
LATEST: Final = 0.5 * RATE
"""Seconds after its start at which a run is cancelled at the latest."""
AT_LAST: Final = 60 * RATE
"""Seconds after which it has taken too long."""

PROGRAM = str(Path(__file__).parent / "programs" / "family_agent.py")
PROC = Path("/proc")

pytestmark = pytest.mark.skipif(
    not (PROC / "self" / "environ").exists(), reason="looks at processes in /proc"
)


def families(folder: Path) -> tuple[set[int], set[int]]:
    """Return the processes that were ever started, and their groups."""
    groups = {file.name: file.read_text() for file in folder.iterdir()}
    return set(map(int, groups)), {int(group) for group in groups.values() if group}


def survivors(folder: Path) -> list[int]:
    """Return the processes that run and have to do with the agents of a folder: by their number, the number
    of their group, or what is in their environment.
    """
    pids, groups = families(folder)
    mark = b"FAMILY_FOLDER=" + os.fsencode(folder)
    found: list[int] = []
    for entry in PROC.iterdir():
        if not entry.name.isdigit():
            continue
        try:
            state, _, group, *_ = (entry / "stat").read_text().rpartition(")")[2].split()
            marked = mark in (entry / "environ").read_bytes().split(b"\0")
        except OSError:  # it has gone meanwhile
            continue
        if state not in "ZX" and (marked or int(entry.name) in pids or int(group) in groups):
            found.append(int(entry.name))
    return found


async def cancels(agent: Agent, dice: random.Random) -> None:
    stream = agent.think().text("Go").stream()
    await anyio.sleep(dice.uniform(0, LATEST))
    stream.cancel()
    await stream.wait()


async def leaves_the_stream(agent: Agent, dice: random.Random) -> None:
    async with agent.think().text("Go").stream():
        await anyio.sleep(dice.uniform(0, LATEST))


async def cancels_the_caller(agent: Agent, dice: random.Random) -> None:
    with anyio.move_on_after(dice.uniform(0, LATEST)):
        await agent.think().text("Go").run()


async def runs_out_of_time(agent: Agent, dice: random.Random) -> None:
    await agent.think().text("Go").run(timeout=dice.uniform(0.001, LATEST))


async def leaves_the_agent(agent: Agent, dice: random.Random) -> None:
    agent.think().text("Go").stream()
    await anyio.sleep(dice.uniform(0, LATEST))


async def fails(agent: Agent, dice: random.Random) -> None:
    await leaves_the_agent(agent, dice)
    raise LookupError("the user's")


WAYS: tuple[Callable[[Agent, random.Random], Awaitable[None]], ...] = (
    cancels,
    leaves_the_stream,
    cancels_the_caller,
    runs_out_of_time,
    leaves_the_agent,
    fails,
)


async def one_run(seed: int, folder: Path, came_to: Counter[str]) -> None:
    with noted(seed) as dice:
        way = dice.choice(WAYS)
        manner = dice.choice(("polite", "late", "deaf", "dies"))
        # One that is not told is given ten seconds, and two where its block is left: that has to do.
        hearing = "stubborn" if way in (leaves_the_agent, fails) and dice.random() < 0.5 else "told"
        command = [sys.executable, "-I", "-S", PROGRAM, manner, hearing]
        # Now and then everything is cancelled from outside, be it that the agent is being started.
        outside = dice.uniform(0, LATEST) if dice.random() < 0.25 else AT_LAST
        with anyio.move_on_after(outside) as scope:
            with suppress(ThoughtCancelled, ThoughtTimeout, AgentError, LookupError):
                async with open_agent(command=command, env={"FAMILY_FOLDER": str(folder)}) as agent:
                    await way(agent, dice)
        assert not (scope.cancel_called and outside == AT_LAST), "it took a minute"
        came_to["from outside" if scope.cancelled_caught else f"{way.__name__}, {manner}, {hearing}"] += 1


@pytest.mark.fast_time(RATE)
async def test_no_process_is_left(tmp_path: Path) -> None:
    came_to: Counter[str] = Counter()
    limiter = anyio.CapacityLimiter(AT_ONCE)

    async def in_turn(seed: int) -> None:
        async with limiter:
            await one_run(seed, tmp_path, came_to)

    async with anyio.create_task_group() as tasks:
        for seed in MANY:
            tasks.start_soon(in_turn, seed)
    left = survivors(tmp_path)
    pids, groups = families(tmp_path)
    print(  # noqa: T201 - the figures
        f"\n{came_to.total()} cancelled runs, {len(groups)} process groups, {len(pids)} processes: "
        f"{len(left)} left\n" + "\n".join(f"{count:4} {how}" for how, count in sorted(came_to.items()))
    )
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == []
    assert len(pids) >= len(MANY), "there was something to leave behind"


def test_the_detector_detects(tmp_path: Path) -> None:
    """Leave processes behind on purpose, with the means of an agent, and one that has left its group."""
    environment = {**os.environ, "FAMILY_FOLDER": str(tmp_path)}
    assert survivors(tmp_path) == []
    sleeper = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(60)"]
    stray = subprocess.Popen(sleeper, env=environment, start_new_session=True)
    agent = subprocess.Popen(
        [sys.executable, "-I", "-S", PROGRAM, "dies", "told"],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert agent.stdin is not None
    with agent.stdin as pipe:
        pipe.write(b'{"method": "session/prompt", "id": 1}\n')
    agent.wait()
    left = survivors(tmp_path)
    assert stray.pid in left
    assert agent.pid not in left
    assert len(left) > 1
    stray.kill()
    stray.wait()
    os.killpg(agent.pid, signal.SIGKILL)
