"""`python -m benchmarks.load`: memory and time of runs that are not read fast enough, by policy.

Each configuration runs in its own process, in turn, and is one line of the table: medians. The client checks
the text that arrives: a policy that loses text that must be kept fails its sample.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, get_args

from benchmarks._plan import MIB, OFFICIAL
from benchmarks._report import environment, number, table
from benchmarks._runner import ROOT, SampleFailed, installed, run
from benchmarks.clients._common import Order
from benchmarks.clients.load_client import Load, Mix, Policy, Readers

if TYPE_CHECKING:
    from benchmarks.clients._common import Figures

MIXES: dict[Mix, str] = {
    "working": "1 % tool calls and plans",
    "tokens": "one message",
    "many": "a message per 100 updates",
    "interleaved": "two messages in turn",
}
READERS: dict[Readers, str] = {
    "none": "no reader",
    "parked": "one event, then none",
    "slow": "100 a second",
    "fast": "fast",
    "both": "100 a second, and fast",
}


@dataclass(slots=True)
class Line:
    """One configuration, and its samples."""

    load: Load
    samples: list[Figures] = field(default_factory=list)
    official: Figures | None = None
    """The memory of a list of the official SDK's updates, if it was measured."""

    def middle(self, figure: str) -> float:
        """The median of one figure."""
        return median(sample[figure] for sample in self.samples)

    @property
    def name(self) -> str:
        """A short name of the configuration."""
        return f"{self.load.mix}, {self.load.policy}, {self.load.reader}"

    def cells(self) -> list[str]:
        """The line of the table."""
        peers = self.official["peak_grown_bytes"] if self.official else None
        peak = self.middle("peak_bytes")
        behind = [number(1e3 * self.middle(f"late_{share}_seconds")) for share in ("p50", "p99")]
        return [
            MIXES[self.load.mix],
            READERS[self.load.reader],
            self.load.policy,
            number(peak / MIB),
            number(self.middle("held_bytes") / MIB),
            number(None if peers is None else peak / peers),
            number(1e6 * self.middle("cpu_per_update")),
            number(self.middle("kept")),
            " / ".join(behind) if self.load.reader in ("fast", "both") else number(None),
        ]


HEADER = (
    "updates",
    "reader",
    "policy",
    "peak, MiB",
    "held, MiB",
    "peak / official SDK's",
    "CPU per update, µs",
    "events kept",
    "behind, p50 / p99, ms",
)


def plan(count: int, max_events: int, backend: str) -> list[Load]:
    """Every policy with every reader on the mix of a working agent, and with a slow one on the others."""
    chosen: list[tuple[Mix, Readers]] = [("working", reader) for reader in READERS]
    chosen += [(mix, "slow") for mix in MIXES if mix != "working"]
    policies: tuple[Policy, ...] = get_args(Policy)
    return [
        Load(mix=mix, policy=policy, reader=reader, count=count, max_events=max_events, backend=backend)
        for mix, reader in chosen
        for policy in policies
    ]


def sample(load: Load) -> Figures:
    """Take one sample."""
    return run([sys.executable, "-m", "benchmarks.clients.load_client", json.dumps(asdict(load))], ROOT)


def sample_official(load: Load) -> Figures:
    """Take one sample of the same updates in an unbounded list, as the official SDK parses them."""
    order = Order(action="unread", mix=load.mix, count=load.count)
    return run(
        [sys.executable, "-m", f"benchmarks.clients.{OFFICIAL.module}", json.dumps(asdict(order))], ROOT
    )


def measure(loads: list[Load], rounds: int, *, compared: bool) -> list[Line]:
    """Take all samples, round by round; one of the official SDK for each mix: it takes half a minute."""
    lines = [Line(load) for load in loads]
    official: dict[str, Figures] = {}
    for turn in range(rounds):
        for line in lines:
            print(f"{turn + 1} of {rounds}: {line.name}", file=sys.stderr, flush=True)
            line.samples.append(sample(line.load))
            mix = line.load.mix
            if compared and mix not in official:
                official[mix] = sample_official(line.load)
    for line in lines:
        line.official = official.get(line.load.mix)
    return lines


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="samples per configuration")
    parser.add_argument("--count", type=int, default=1_000_000, help="updates per run")
    parser.add_argument("--max-events", type=int, default=10_000)
    parser.add_argument("--backend", choices=("asyncio", "trio"), default="asyncio")
    parser.add_argument("--mix", action="append", choices=MIXES, help="these updates only")
    parser.add_argument("--reader", action="append", choices=READERS, help="these readers only")
    parser.add_argument(
        "--alone", action="store_true", help="without the official SDK, which takes most time"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every sample to FILE")
    return parser.parse_args()


def main() -> int:
    asked = arguments()
    loads = [
        load
        for load in plan(asked.count, asked.max_events, asked.backend)
        if (not asked.mix or load.mix in asked.mix) and (not asked.reader or load.reader in asked.reader)
    ]
    try:
        lines = measure(loads, asked.rounds, compared=not asked.alone and installed(OFFICIAL))
    except SampleFailed as failure:
        print(failure, file=sys.stderr)
        return 1
    facts = environment()
    print(f"Python {facts['python']}, {facts['system']}, {facts['processors']} processors.\n")
    print(table(HEADER, [line.cells() for line in lines]))
    if asked.json:
        report = {"environment": facts, "lines": [asdict(line) for line in lines]}
        asked.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
