"""`python -m benchmarks.serving`: the cost of showing a run to many, compared with a loop in Starlette.

Each sample has its own server, the same agent behind it and the same clients before it, in three processes.
Configurations take turns; figures are medians, ratios those of medians.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, TypeAlias

from benchmarks._report import environment, number, table
from benchmarks._runner import ROOT, SampleFailed, run
from benchmarks.clients._chromium import CHROMIUM, find_chromium
from benchmarks.clients.serving_client import Action, Serving

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from benchmarks.clients._common import Figures

REDIS = "THINKWELL_BENCH_REDIS"
"""Environment variable with the address of a Redis server."""

KINDS = {
    "memory": "thinkwell, in memory",
    "sqlite": "thinkwell, SQLite",
    "redis": "thinkwell, Redis",
    "each": "loop, one by one",
    "joined": "loop, joined",
    "items": "thinkwell, in memory, items",
}

BROWSING: tuple[Action, ...] = ("browser", "page", "open")
"""The scenes that need a real browser."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A column of a table."""

    name: str
    title: str
    scale: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What all servers do in turn."""

    action: Action
    watchers: int
    count: int = 1
    rate: float = 0.0
    log: int = 0
    mix: str = ""

    def serving(self, kind: str) -> Serving:
        """The order for one server."""
        return Serving(kind=kind, **asdict(self))

    @property
    def client(self) -> str:
        """The client program for it."""
        if self.action == "open":
            return "opening_client"
        return "browser_client" if self.action in BROWSING else "serving_client"

    @property
    def title(self) -> str:
        """A short title."""
        if self.action == "open":
            return f"{self.count:,} events"
        if self.action == "idle":
            return f"{self.watchers:,} watchers, {self.log:,} updates before them"
        pace = f", {self.rate:g} updates a second" if self.rate else ""
        mix = f", {self.mix}" if self.mix else ""
        return f"{self.watchers:,} watcher{'s' * (self.watchers > 1)}{pace}{mix}"

    @property
    def peers(self) -> dict[str, str]:
        """The servers that the others are compared with, and their names."""
        if self.action == "open":
            return {}
        return {"memory": "events"} if self.action == "items" else {"each": "one by one", "joined": "joined"}

    def has(self, kind: str) -> bool:
        """Whether a server takes part."""
        if self.action == "open":
            return kind == "sqlite"
        return kind in ("memory", "items") if self.action == "items" else kind != "items"


FIGURES: dict[Action, tuple[Figure, ...]] = {
    "pour": (
        Figure(name="per_second", title="events/s"),
        Figure(name="cpu_per_delivery", title="CPU per event, µs", scale=1e6),
    ),
    "paced": (
        Figure(name="cpu_per_delivery", title="CPU per event, µs", scale=1e6),
        Figure(name="late_p50_seconds", title="p50, ms", scale=1e3),
        Figure(name="late_p99_seconds", title="p99, ms", scale=1e3),
    ),
    "idle": (Figure(name="per_watcher_bytes", title="memory per watcher, KiB", scale=1 / 1024),),
    "items": (
        Figure(name="cpu_per_event", title="CPU per event, all watchers, µs", scale=1e6),
        Figure(name="watcher_bytes", title="kB to a watcher", scale=1e-3),
        Figure(name="resident_bytes", title="server's memory, MiB", scale=2**-20),
    ),
    "browser": (
        Figure(name="late_p50_seconds", title="p50, ms", scale=1e3),
        Figure(name="late_p99_seconds", title="p99, ms", scale=1e3),
    ),
    "page": (
        Figure(name="late_p50_seconds", title="text p50, ms", scale=1e3),
        Figure(name="late_p99_seconds", title="text p99, ms", scale=1e3),
        Figure(name="drawn_p50_seconds", title="frame p50, ms", scale=1e3),
        Figure(name="drawn_p99_seconds", title="frame p99, ms", scale=1e3),
    ),
    "open": (
        Figure(name="asked_seconds", title="items requested after, ms", scale=1e3),
        Figure(name="came_seconds", title="first items, ms", scale=1e3),
        Figure(name="first_seconds", title="first frame, ms", scale=1e3),
        Figure(name="sent_seconds", title="last items, ms", scale=1e3),
        Figure(name="whole_seconds", title="all rows, ms", scale=1e3),
        Figure(name="script_seconds", title="script, ms", scale=1e3),
        Figure(name="layout_seconds", title="style and layout, ms", scale=1e3),
        Figure(name="server_cpu_seconds", title="server's CPU, ms", scale=1e3),
        Figure(name="items_bytes", title="kB of items", scale=1e-3),
    ),
}

Samples: TypeAlias = "dict[Scene, dict[str, list[Figures]]]"


def scenes(*, quick: bool) -> list[Scene]:
    """Few clients and many, at full speed and at a rate; many idle ones; a browser, and what it shows."""
    if quick:
        return [
            Scene(action="pour", watchers=3, count=50),
            Scene(action="paced", watchers=3, count=5, rate=50),
            Scene(action="idle", watchers=20, log=50),
            Scene(action="items", watchers=3, count=20, rate=100, mix="mixed"),
            Scene(action="browser", watchers=1, count=5, rate=50),
            Scene(action="page", watchers=1, count=5, rate=50),
            Scene(action="open", watchers=1, count=200),
        ]
    return [
        Scene(action="pour", watchers=1, count=50_000),
        Scene(action="pour", watchers=100, count=5_000),
        Scene(action="pour", watchers=1_000, count=1_000),
        Scene(action="paced", watchers=1, count=500, rate=100),
        Scene(action="paced", watchers=100, count=100, rate=20),
        Scene(action="paced", watchers=1_000, count=40, rate=5),
        Scene(action="idle", watchers=1_000),
        Scene(action="idle", watchers=1_000, log=2_000),
        Scene(action="items", watchers=1, count=1_000, rate=100, mix="mixed"),
        Scene(action="items", watchers=1, count=1_000, rate=100, mix="tokens"),
        Scene(action="items", watchers=100, count=1_000, rate=100, mix="mixed"),
        Scene(action="items", watchers=1_000, count=200, rate=20, mix="mixed"),
        Scene(action="browser", watchers=1, count=500, rate=100),
        Scene(action="page", watchers=1, count=500, rate=100),
        Scene(action="open", watchers=1, count=200_000),
    ]


@contextmanager
def redis_server() -> Generator[bool]:
    """Run a Redis server, if there is a program or an address. Return whether there is one."""
    program = shutil.which("redis-server")
    if os.environ.get(REDIS) or program is None:
        yield bool(os.environ.get(REDIS))
        return
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "redis.sock"
        command = [program, "--port", "0", "--unixsocket", str(place), "--save", "", "--dir", folder]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
            os.environ[REDIS] = f"unix://{place}"
            try:
                yield True
            finally:
                del os.environ[REDIS]
                server.terminate()


def measure(chosen: Sequence[Scene], kinds: Sequence[str], rounds: int) -> Samples:
    """Take all samples, round by round, in each round one server after the other."""
    samples: Samples = {scene: {kind: [] for kind in kinds if scene.has(kind)} for scene in chosen}
    for turn in range(rounds):
        for scene, taken in samples.items():
            for kind in taken:
                told = f"{turn + 1} of {rounds}: {scene.action}, {scene.title}: {KINDS[kind]}"
                print(told, file=sys.stderr, flush=True)
                order = json.dumps(asdict(scene.serving(kind)))
                program = [sys.executable, "-m", f"benchmarks.clients.{scene.client}", order]
                taken[kind].append(run(program, ROOT))
    return samples


def shown(samples: Samples, action: Action) -> str:
    """The table of one kind of scene."""
    figures = FIGURES[action]
    header: list[str] = []
    lines: list[list[str]] = []
    for scene, taken in samples.items():
        if scene.action != action:
            continue
        header = ["", "server"]
        for figure in figures:
            header += [figure.title, *(f"/ {peer}" for peer in scene.peers.values())]
        for kind, each in taken.items():
            cells = [scene.title, KINDS[kind]]
            for figure in figures:
                middle = median(sample[figure.name] for sample in each)
                cells.append(number(middle * figure.scale))
                for peer in scene.peers:
                    beside = [sample[figure.name] for sample in taken.get(peer, ())]
                    known = kind not in scene.peers and bool(beside) and bool(median(beside))
                    cells.append(number(middle / median(beside) if known else None))
            lines.append(cells)
    return table(header, lines)


def left_out(name: str, program: str, remedy: str) -> None:
    """Report what is not measured."""
    print(f"left out: {name}, as there is no {program}: {remedy}", file=sys.stderr, flush=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serving", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="samples per configuration")
    parser.add_argument("--only", action="append", choices=FIGURES, help="these tables only")
    parser.add_argument("--kind", action="append", choices=KINDS, help="these servers only")
    parser.add_argument("--quick", action="store_true", help="only show that everything runs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every sample to FILE")
    return parser.parse_args()


def main() -> int:
    asked = arguments()
    chosen = [scene for scene in scenes(quick=asked.quick) if not asked.only or scene.action in asked.only]
    if find_chromium() is None and any(scene.action in BROWSING for scene in chosen):
        left_out(" and ".join(BROWSING), "Chromium", f"put one on PATH or its path into {CHROMIUM}")
        chosen = [scene for scene in chosen if scene.action not in BROWSING]
    kinds = [kind for kind in KINDS if not asked.kind or kind in asked.kind]
    with redis_server() as has_redis:
        if "redis" in kinds and not has_redis:
            left_out("redis", "redis-server", f"put one on PATH or an address into {REDIS}")
            kinds.remove("redis")
        try:
            samples = measure(chosen, kinds, 1 if asked.quick else asked.rounds)
        except SampleFailed as failure:
            print(failure, file=sys.stderr)
            return 1
    facts = environment()
    print(f"Python {facts['python']}, {facts['system']}, {facts['processors']} processors.")
    for action in FIGURES:
        if any(scene.action == action for scene in samples):
            print(f"\n{action}\n\n{shown(samples, action)}")
    if asked.json:
        lines = [{"scene": asdict(scene), "samples": taken} for scene, taken in samples.items()]
        asked.json.write_text(json.dumps({"environment": facts, "lines": lines}, indent=2) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
