"""Runs the measured programs in turn, one process per sample, and collects their output."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from benchmarks.clients._common import STARTED, Order

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks._plan import Measurement, Peer
    from benchmarks.clients._common import Figures

ROOT = Path(__file__).parents[1]

TIME_LIMIT = 300.0
"""Seconds for one sample. The slowest one takes about ten: a program that takes longer hangs."""

IMPORT = """
import sys
from time import perf_counter
for tracing in ("opentelemetry", "logfire"):
    sys.modules[tracing] = None
started = perf_counter()
import {package}
print('{{"import_seconds": %r}}' % (perf_counter() - started))
"""
"""Times an import in a fresh interpreter; hides the same packages as `clients/official_client.py`."""


class SampleFailed(Exception):  # noqa: N818
    """A measured program failed; the message is the end of its output."""


@dataclass(slots=True)
class Results:
    """Samples by measurement and peer, and failures."""

    samples: dict[str, dict[str, list[Figures]]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)

    def add(self, measurement: str, peer: str, figures: Figures) -> None:
        """Keep one sample."""
        self.samples.setdefault(measurement, {}).setdefault(peer, []).append(figures)


def installed(peer: Peer) -> bool:
    """Whether the peer can be measured here."""
    return peer.package is None or importlib.util.find_spec(peer.package) is not None


def run(program: Sequence[str], cwd: Path) -> Figures:
    """Start one measured program and return the figures on its last line."""
    environment = {**os.environ, STARTED: repr(monotonic())}
    try:
        done = subprocess.run(
            program, cwd=cwd, env=environment, capture_output=True, text=True, timeout=TIME_LIMIT, check=False
        )
    except subprocess.TimeoutExpired as expired:
        raise SampleFailed(f"no result after {TIME_LIMIT:.0f} s") from expired
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        said = (done.stderr or done.stdout).strip().splitlines()[-3:]
        raise SampleFailed(f"exit code {done.returncode}: " + " | ".join(said))
    figures: Figures = json.loads(lines[-1])
    return figures


def sample(measurement: Measurement, peer: Peer) -> Figures:
    """Take one sample of a measurement on a peer."""
    if measurement.action == "import":
        # Not in the project's own folder: there, every package would first be searched for among its folders.
        code = IMPORT.format(package=peer.package)
        return run([sys.executable, "-I", "-c", code], Path(tempfile.gettempdir()))
    order = Order(
        action=measurement.action,
        mix=measurement.mix,
        count=measurement.count,
        sessions=measurement.sessions,
        backend=peer.backend,
        through=measurement.through if peer.package == "thinkwell" else "",
    )
    return run([sys.executable, "-m", f"benchmarks.clients.{peer.module}", json.dumps(asdict(order))], ROOT)


def measure(
    measurements: Sequence[Measurement], peers: Sequence[Peer], rounds: int, tell: Callable[[str], None]
) -> Results:
    """Take all samples: round by round, one peer after the other in each, so that noise affects all alike.

    A peer that fails in one measurement is left out of the rest of that measurement, and reported.
    """
    results = Results(missing=[peer.label for peer in peers if not installed(peer)])
    present = [peer for peer in peers if installed(peer)]
    for measurement in measurements:
        chosen = [peer for peer in present if peer in measurement.peers]
        for number in range(rounds * measurement.repeat):
            tell(f"{measurement.key}: {number + 1} of {rounds * measurement.repeat}")
            for peer in chosen:
                name = f"{measurement.key}, {peer.label}"
                if name in results.failures:
                    continue
                try:
                    results.add(measurement.key, peer.key, sample(measurement, peer))
                except SampleFailed as failure:
                    results.failures[name] = str(failure)
                    tell(f"{name}: {failure}")
    return results
