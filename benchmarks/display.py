"""`python -m benchmarks.display`: the cost of watching a run, and the time to the command's first output.

Each configuration runs in its own process, in turn. Figures are medians; ratios are those of medians.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, get_args

from benchmarks._report import environment, number, table
from benchmarks._runner import ROOT, SampleFailed, run
from benchmarks.clients.command_client import COMMANDS
from benchmarks.clients.display_client import Show, Style

if TYPE_CHECKING:
    from benchmarks.clients._common import Figures

STEADY = 2_000
"""Updates per second of a steady run: more than any agent writes for long."""

HEADER = (
    "updates",
    "display",
    "updates/s",
    "/ without",
    "CPU per update, µs",
    "/ without",
    "CPU, % of a core",
    "frames/s",
    "last frame after, ms",
)


@dataclass(slots=True)
class Line:
    """One configuration, and its samples."""

    show: Show
    samples: list[Figures] = field(default_factory=list)

    def middle(self, figure: str) -> float:
        """The median of one figure."""
        return median(sample[figure] for sample in self.samples)

    @property
    def name(self) -> str:
        """The configuration in a few words."""
        pace = f"{self.show.rate:,.0f} a second" if self.show.rate else "as fast as can be"
        return f"{self.show.mix}, {pace}"

    def cells(self, without: Line) -> list[str]:
        """The line of the table.

        Args:
            without: The same run without a display.
        """
        speed, cost = self.middle("updates_per_second"), self.middle("cpu_per_100k")
        return [
            self.name,
            self.show.style,
            number(speed),
            number(speed / without.middle("updates_per_second")),
            number(10 * cost),
            number(cost / without.middle("cpu_per_100k")),
            number(100 * self.middle("cpu_share")),
            number(self.middle("frames") / self.middle("turn_seconds")),
            number(1e3 * self.middle("last_frame_seconds")),
        ]


def plan(count: int, seconds: float, backend: str) -> list[Show]:
    """Two mixes at full speed, one steady; each without a display and with each of them."""
    paces = [("working", count, 0.0), ("mixed", count, 0.0), ("mixed", int(STEADY * seconds), float(STEADY))]
    styles: tuple[Style, ...] = get_args(Style)
    return [
        Show(mix=mix, count=updates, rate=rate, style=style, backend=backend)
        for mix, updates, rate in paces
        for style in styles
    ]


def measure(shows: list[Show], rounds: int) -> list[Line]:
    """Take all samples, round by round."""
    lines = [Line(show) for show in shows]
    for turn in range(rounds):
        for line in lines:
            print(f"{turn + 1} of {rounds}: {line.name}, {line.show.style}", file=sys.stderr, flush=True)
            order = json.dumps(asdict(line.show))
            line.samples.append(run([sys.executable, "-m", "benchmarks.clients.display_client", order], ROOT))
    return lines


def measure_commands(rounds: int) -> dict[str, list[Figures]]:
    """Take all samples of the command and of the imports that bound it."""
    samples: dict[str, list[Figures]] = {name: [] for name in COMMANDS}
    for turn in range(rounds):
        for name, taken in samples.items():
            print(f"{turn + 1} of {rounds}: {name}", file=sys.stderr, flush=True)
            taken.append(run([sys.executable, "-m", "benchmarks.clients.command_client", name], ROOT))
    return samples


def commands_table(samples: dict[str, list[Figures]]) -> str:
    """Time to the first byte and to the end, beside that of the imports alone."""

    def middle(name: str, figure: str) -> float:
        return median(sample[figure] for sample in samples[name])

    floor = middle("import thinkwell, typer, rich", "first_seconds")
    rows = [
        [
            f"`{name}`",
            number(1e3 * middle(name, "first_seconds")),
            number(1e3 * middle(name, "last_seconds")),
            number(middle(name, "first_seconds") / floor),
        ]
        for name in samples
    ]
    return table(("program", "first byte, ms", "end, ms", "first byte / imports alone"), rows)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.display", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="samples per configuration")
    parser.add_argument("--count", type=int, default=100_000, help="updates of a run that pours")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long the steady run takes")
    parser.add_argument("--backend", choices=("asyncio", "trio"), default="asyncio")
    parser.add_argument("--only", choices=("runs", "commands"), help="one of the two tables")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every sample to FILE")
    return parser.parse_args()


def main() -> int:
    asked = arguments()
    lines: list[Line] = []
    commands: dict[str, list[Figures]] = {}
    try:
        if asked.only != "commands":
            lines = measure(plan(asked.count, asked.seconds, asked.backend), asked.rounds)
        if asked.only != "runs":
            commands = measure_commands(asked.rounds)
    except SampleFailed as failure:
        print(failure, file=sys.stderr)
        return 1
    facts = environment()
    print(f"Python {facts['python']}, {facts['system']}, {facts['processors']} processors.\n")
    if lines:
        plain = {line.name: line for line in lines if line.show.style == "none"}
        print(table(HEADER, [line.cells(plain[line.name]) for line in lines]), end="\n\n")
    if commands:
        print(commands_table(commands))
    if asked.json:
        report = {"environment": facts, "lines": [asdict(line) for line in lines], "commands": commands}
        asked.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
