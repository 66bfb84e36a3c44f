"""The common part of the measured programs: their order, their clocks, and their reports. Imports no client.

Each program is started as `python -m benchmarks.clients.NAME JSON`, where JSON is an `Order`. It measures
itself and prints its figures as the last line of its output.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import sys
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterable, Sequence

T = TypeVar("T")

AGENT = Path(__file__).parents[1] / "agent.py"

STARTED = "THINKWELL_BENCH_STARTED"
"""Environment variable with the monotonic clock's reading just before this program was spawned."""

WARM_UP = 200
"""Requests sent before round trips are timed."""

Figures = dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What one program must measure."""

    action: str
    """stream, unread, round_trip, startup or idle."""
    mix: str = "tokens"
    count: int = 10
    """Updates per session, requests, or seconds."""
    sessions: int = 1
    through: str = ""
    """What else a stream goes through, of features only thinkwell has: filter, listener, budget or tools."""
    backend: str = "asyncio"
    rate: float = 0.0
    """Updates per second; 0: as fast as they are taken."""

    @property
    def command(self) -> list[str]:
        """How to start the agent for this order."""
        return [
            sys.executable,
            "-I",
            "-S",
            str(AGENT),
            self.mix,
            str(self.count if self.streams else 1),
            str(self.sessions),
            *([str(self.rate)] if self.rate else []),
        ]

    @property
    def streams(self) -> bool:
        return self.action not in ("round_trip", "idle")


class Reading(NamedTuple):
    """What one consumer saw of one session."""

    first: float
    last: float
    updates: int
    characters: int
    """Length of all text in it: the proof that every client read the same."""


class Inbox(Generic[T]):
    """An `async for` over a callback's items, for clients that have none. As lean as possible.

    Available items are delivered without suspending, and the waiting consumer is woken once per batch, so
    that a peer's figures are its own and not those of a slow queue.
    """

    def __init__(self, changed: asyncio.Event) -> None:
        self.items: deque[T | None] = deque()
        self._changed = changed

    def put(self, item: T | None) -> None:
        """Append an item; None ends the iteration."""
        self.items.append(item)
        self._changed.set()

    def __aiter__(self) -> Inbox[T]:
        return self

    async def __anext__(self) -> T:
        while not self.items:
            self._changed.clear()
            await self._changed.wait()
        item = self.items.popleft()
        if item is None:
            raise StopAsyncIteration
        return item


def order() -> Order:
    """The order on the command line."""
    return Order(**json.loads(sys.argv[1]))


def report(figures: Figures) -> None:
    """Print the figures for the runner."""
    print(json.dumps(figures), flush=True)


def cpu_seconds() -> float:
    """User and system time of this process so far, all threads."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def peak_bytes() -> int:
    """The most memory that this process has held."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def resident_bytes() -> int:
    """Memory that this process holds now; if the system does not report it, the most it has held."""
    gc.collect()
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return peak_bytes()
    return pages * resource.getpagesize()


class Meter:
    """Takes the figures of one turn: create it just before the prompt is sent."""

    def __init__(self, task: Order) -> None:
        self._task = task
        self._resident = resident_bytes()
        self._cpu = cpu_seconds()
        self._asked = perf_counter()

    def throughput(self, readings: Sequence[Reading]) -> Figures:
        """Figures of a turn that was consumed while it ran."""
        used = cpu_seconds() - self._cpu
        first, last = min(r.first for r in readings), max(r.last for r in readings)
        updates = self._checked(readings)
        return {
            "updates": updates,
            "characters": sum(r.characters for r in readings),
            "seconds": last - first,
            "turn_seconds": last - self._asked,
            "updates_per_second": (updates - 1) / (last - first),
            "cpu_seconds": used,
            "cpu_per_100k": used / updates * 100_000,
        }

    def memory(self) -> Figures:
        """Figures of a turn that ended before it was read."""
        seconds = perf_counter() - self._asked
        grown = resident_bytes() - self._resident
        peak = peak_bytes()
        grown_at_peak = peak - self._resident
        return {
            "grown_bytes": grown,
            "peak_bytes": peak,
            "peak_grown_bytes": grown_at_peak,
            "seconds": seconds,
        }

    def unread(self, figures: Figures, readings: Sequence[Reading]) -> Figures:
        """The same with the updates that were read afterwards: none may be missing."""
        characters = sum(r.characters for r in readings)
        return {**figures, "updates": self._checked(readings), "characters": characters}

    def _checked(self, readings: Sequence[Reading]) -> int:
        expected, seen = self._task.count * self._task.sessions, sum(r.updates for r in readings)
        if seen != expected:
            raise SystemExit(f"{expected} updates were sent, {seen} arrived")
        return seen


def startup(spawned: float, reading: Reading) -> Figures:
    """Time to the first event, from the agent's spawn and from this program's own."""
    now = monotonic() - (perf_counter() - reading.first)
    return {
        "spawn_to_first_seconds": reading.first - spawned,
        "program_to_first_seconds": now - float(os.environ[STARTED]),
        "updates": reading.updates,
        "characters": reading.characters,
    }


def idled(before: float) -> Figures:
    """Processor time since then, while nothing happened."""
    return {"cpu_seconds": cpu_seconds() - before}


def round_trips(seconds: Iterable[float]) -> Figures:
    """The distribution of single requests' times."""
    ordered = sorted(seconds)
    at = len(ordered) - 1
    return {
        "p50_seconds": ordered[round(at * 0.50)],
        "p99_seconds": ordered[round(at * 0.99)],
        "mean_seconds": sum(ordered) / len(ordered),
        "requests": len(ordered),
    }
