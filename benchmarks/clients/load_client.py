"""thinkwell under load: a run whose events are not read, or slowly, with and without a bound.

Prints the costs while the run is in progress, and checks that no text is lost that must be kept.
"""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import anyio
from anyio.lowlevel import checkpoint

from benchmarks.agent import WORDS
from benchmarks.clients import _common as common
from thinkwell import Buffer, BufferOverflow, Message, ThoughtEvent, ThoughtStream, open_agent
from thinkwell.events import Dropped, Thought

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence

Mix: TypeAlias = Literal["working", "tokens", "many", "interleaved"]
Policy: TypeAlias = Literal["none", "coalesce", "drop_oldest", "error"]
Readers: TypeAlias = Literal["none", "parked", "slow", "fast", "both"]
"""None; one that takes an event and never another; a slow one; a fast one; a slow one and a fast one."""

PAUSE = 0.01
"""Seconds that the slow reader takes for each event while the run goes on."""

RESET_PEAK = Path("/proc/self/clear_refs")
"""Where Linux is told to forget the most memory that the process has held."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The load for one program."""

    mix: Mix
    policy: Policy
    reader: Readers
    count: int
    max_events: int = 10_000
    backend: str = "asyncio"

    @property
    def order(self) -> common.Order:
        """The order for the agent."""
        return common.Order(action="stream", mix=self.mix, count=self.count)

    @property
    def buffer(self) -> Buffer | None:
        """The bound to set."""
        return None if self.policy == "none" else Buffer(max_events=self.max_events, overflow=self.policy)

    def texts(self) -> dict[str, str]:
        """The agent's texts, by message."""
        parts: dict[str, list[str]] = {}
        words = cycle([json.loads(f'"{word}"') for word in WORDS])
        if self.mix == "working":  # each hundredth update is no text, and the text begins again after it
            block = list(islice(words, 99))
            whole, rest = divmod(self.count, 100)
            return {"message-1": "".join(block) * whole + "".join(block[:rest])}
        for number in range(self.count):
            key = {"tokens": 1, "many": number // 100, "interleaved": number % 2}[self.mix]
            parts.setdefault(f"message-{key}", []).append(next(words))
        return {key: "".join(pieces) for key, pieces in parts.items()}

    def is_told(self, texts: Sequence[str]) -> bool:
        """Whether these are the messages; their beginnings if the run failed before its end."""
        whole = tuple(self.texts().values())
        if self.policy == "error":
            return all(text.startswith(part) for text, part in zip(whole, texts, strict=False))
        return hashed(whole) == hashed(texts)


@dataclass(slots=True)
class Story:
    """The events that one reader received."""

    texts: dict[str | None, list[str]] = field(default_factory=dict)
    events: int = 0
    dropped: int = 0
    seq: int = 0
    behind: list[float] = field(default_factory=list)
    """Seconds between the arrival of an event and its delivery, plus what is the same for all."""

    def take(self, event: ThoughtEvent) -> None:
        """Record an event."""
        if event.seq <= self.seq:
            raise SystemExit(f"event {event.seq} came after event {self.seq}")
        self.seq = event.seq
        if isinstance(event, Dropped):
            self.dropped += event.count
            return
        self.events += 1
        if isinstance(event, Message | Thought):
            self.texts.setdefault(event.message_id, []).append(event.text)

    def check(self, load: Load, who: str) -> None:
        """Check that nothing is missing that must be kept."""
        if load.policy == "drop_oldest":
            complete = self.events + self.dropped == load.count
        else:
            complete = load.is_told(["".join(parts) for parts in self.texts.values()])
        if not complete:
            raise SystemExit(f"{who} missed something: {self.events} events, {self.dropped} dropped")


async def read_slowly(stream: ThoughtStream[str], over: anyio.Event, story: Story) -> None:
    async for event in stream:
        story.take(event)
        if not over.is_set():
            await anyio.sleep(PAUSE)


async def read_fast(stream: ThoughtStream[str], story: Story) -> None:
    now = anyio.current_time
    async for event in stream:
        story.take(event)
        story.behind.append(now() - event.at)


async def count_all(events: AsyncIterator[ThoughtEvent]) -> int:
    return sum([1 async for _ in events])


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[round((len(values) - 1) * share)]


async def bear(load: Load) -> common.Figures:
    slow, fast, parked, over = Story(), Story(), None, anyio.Event()
    async with open_agent(command=load.order.command) as agent, anyio.create_task_group() as tasks:
        forget_peak()
        before, used = common.resident_bytes(), common.cpu_seconds()
        stream = agent.think().text("go").stream(buffer=load.buffer)
        if load.reader == "parked":
            parked = aiter(stream)
            await anext(parked)
        if load.reader in ("slow", "both"):
            tasks.start_soon(read_slowly, stream, over, slow)
        if load.reader in ("fast", "both"):
            tasks.start_soon(read_fast, stream, fast)
        await settle(load, stream)
        used = common.cpu_seconds() - used
        peak = peak_bytes()
        held = common.resident_bytes()
        over.set()
        await checkpoint()
        view = stream.view
        if not load.is_told(view.messages):
            raise SystemExit(f"the text of the view is wrong: {len(view.text)} characters")
    kept = await count_all(aiter(stream))
    for story, who in ((slow, "the slow reader"), (fast, "the fast reader")):
        if story.seq:
            story.check(load, who)
    least = min(fast.behind, default=0.0)
    late = [seconds - least for seconds in fast.behind] or [0.0]
    return {
        "peak_bytes": peak - before,
        "held_bytes": held - before,
        "cpu_per_update": used / load.count,
        "kept": kept,
        "dropped": view.dropped,
        "characters": len(view.text),
        "slow_events": slow.events,
        "late_p50_seconds": percentile(late, 0.5),
        "late_p99_seconds": percentile(late, 0.99),
        "late_most_seconds": max(late),
    }


async def settle(load: Load, stream: ThoughtStream[str]) -> None:
    try:
        await stream.result
        failed = False
    except BufferOverflow:
        failed = True
    await stream.wait()
    if failed != (load.policy == "error"):
        raise SystemExit("the result is not what the policy says")


def hashed(texts: Iterable[str]) -> bytes:
    return hashlib.sha256("".join(texts).encode()).digest()


def forget_peak() -> None:
    if RESET_PEAK.exists():
        RESET_PEAK.write_text("5", encoding="ascii")


def peak_bytes() -> int:
    """The most memory that this process has held since it was told to forget."""
    if not RESET_PEAK.exists():
        return common.peak_bytes()
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM:"))


if __name__ == "__main__":
    given = Load(**json.loads(sys.argv[1]))
    common.report(anyio.run(bear, given, backend=given.backend))
