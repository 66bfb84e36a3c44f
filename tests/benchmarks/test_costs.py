"""What an update costs, counted and not timed: it is the same on every machine and each time.

Work is counted in instructions of the interpreter, memory in blocks of its allocator. Each version of Python
has instructions of its own, so it has figures of its own in `costs.json`. Where they are missing or exceeded,
the test shows the new ones.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import subprocess
import sys
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest
from stream.wire_agent import end_turn, wire_agent

from thinkwell import Agent, Budget, Session
from thinkwell.listen import AgentQuestion, Handlers, listen

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from types import FrameType

    from _typeshed import TraceFunction

    from thinkwell import ThoughtStream
    from thinkwell.events import Include

AGENT = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "agent.py"))
render: Callable[[str, int, int], bytes] = AGENT["render"]
session_id: Callable[[int], str] = AGENT["session_id"]

FIGURES = Path(__file__).with_name("costs.json")
"""By version of Python: what an update costs in each row."""

WORSE = 1.1
"""How much more it may cost before this fails."""

FEW, MANY = 1_000, 3_000
"""What does not depend on the number of updates is the same in both, and goes by subtraction."""

KINDS: Include = ("thought", "message", "tool_start", "tool_update", "tool_done", "plan", "usage")

ROWS: dict[str, tuple[str, int, str]] = {
    "tokens": ("tokens", 1, ""),
    "mixed": ("mixed", 1, ""),
    "unannounced": ("unannounced", 1, ""),
    "filter": ("mixed", 1, "filter"),
    "listener": ("mixed", 1, "listener"),
    "budget": ("mixed", 1, "budget"),
    "own tools": ("mixed", 1, "tools"),
    "20 sessions": ("tokens", 20, ""),
}
"""The mix of the benchmarks, the sessions, and what the stream goes through."""

VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"


class Counter:
    """How many there were."""

    count = 0


@contextmanager
def counted_instructions(counter: Counter) -> Generator[None]:
    def inside(_frame: FrameType, event: str, _arg: object) -> TraceFunction:
        counter.count += event == "opcode"
        return inside

    def enter(frame: FrameType, _event: str, _arg: object) -> TraceFunction:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return inside

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        yield
    finally:
        sys.settrace(before)


def decline(question: AgentQuestion) -> str:
    return "no"


async def cost(row: str, count: int) -> int:
    """Have an agent send so many updates, and return how many instructions they took."""
    mix, sessions, through = ROWS[row]
    data = render(mix, count // sessions, sessions)
    counter, seen = Counter(), Counter()

    async def read(stream: ThoughtStream[str]) -> None:
        async for _ in stream.events(include={"message"}) if through == "filter" else stream:
            seen.count += 1

    async with wire_agent() as (agent, wire), AsyncExitStack() as stack:
        async with anyio.create_task_group() as tasks:
            asker: Agent | Session = agent
            if through == "tools":
                tasks.start_soon(wire.open_sessions, [session_id(0)])
                asker = await stack.enter_async_context(agent.session())
            budget = Budget(max_tool_calls=count) if through == "budget" else None
            streams = [asker.think().text("go").stream(include=KINDS, budget=budget) for _ in range(sessions)]
            if through != "tools":
                await wire.open_sessions([session_id(number) for number in range(sessions)])
            prompts = [await wire.expect("session/prompt") for _ in streams]
            for stream in streams:
                tasks.start_soon(read, stream)
                if through == "listener":
                    handlers = Handlers()
                    handlers.on("question")(decline)
                    tasks.start_soon(listen, stream, handlers)
            await anyio.wait_all_tasks_blocked()
            with counted_instructions(counter):
                await wire.write_bytes(data)
                await wire.write(*map(end_turn, prompts))
                for stream in streams:
                    await stream.wait()
                await anyio.wait_all_tasks_blocked()
        assert seen.count == (count * 8 // 20 if through == "filter" else count)
    return counter.count


async def blocks_kept(count: int) -> int:
    """Have an agent send so many updates, unread, and return how many blocks they keep."""
    data = render("mixed", count, 1)
    async with wire_agent() as (agent, wire):
        stream = agent.think().text("go").stream(include=KINDS)
        prompt = await wire.begin(session_id(0))
        gc.collect()
        before = sys.getallocatedblocks()
        await wire.write_bytes(data)
        await wire.write(end_turn(prompt))
        await stream.wait()
        gc.collect()
        return sys.getallocatedblocks() - before


async def figures() -> dict[str, float]:
    """Return what one update costs, row by row."""
    found: dict[str, float] = {}
    for row in ROWS:
        await cost(row, 20)  # what is done once is done then
        found[row] = round((await cost(row, MANY) - await cost(row, FEW)) / (MANY - FEW), 1)
    found["blocks kept unread"] = round((await blocks_kept(MANY) - await blocks_kept(FEW)) / (MANY - FEW), 2)
    return found


@pytest.mark.long
def test_no_update_costs_a_tenth_more_than_it_did() -> None:
    known: dict[str, dict[str, float]] = json.loads(FIGURES.read_text("utf-8"))
    # In a process of its own: what other tests have imported or set may listen to each run.
    program = [sys.executable, __file__]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(program, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, float] = json.loads(done.stdout)
    if VERSION not in known:
        pytest.skip(f"no figures are kept for Python {VERSION}; these are they: {json.dumps(found)}")
    before = known[VERSION]
    worse = {row: (before[row], now) for row, now in found.items() if now > WORSE * before[row]}
    assert not worse, f"an update costs more than it did (before, now): {worse}; all: {json.dumps(found)}"


if __name__ == "__main__":
    sys.stdout.write(json.dumps(anyio.run(figures)))
