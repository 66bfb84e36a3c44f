"""``python -m tests.simulation --seeds 10000``: many worlds, what went wrong in them, and what was checked.

A failure names its seed, shows what happened message by message, and says how to repeat it.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import anyio

from thinkwell.testing import Simulation, SimulationFailed, SimulationReport, simulate_once

from .processes import SCENES, play
from .steering import steered
from .sweeps import sweep
from .worlds import world

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Program: TypeAlias = Callable[[Simulation], Awaitable[object]]

WORLDS: Final[Mapping[str, Program]] = {"runs": world, "steering": steered}

SEED_VARIABLE: Final = "THINKWELL_SEED"

CHUNK: Final = 50
"""Seeds that a worker process does at once."""

FAILURES_SHOWN: Final = 3


def simulated(
    name: str, program: Program, seeds: Sequence[int], backends: Sequence[str]
) -> tuple[SimulationReport, list[SimulationFailed]]:
    """Play these worlds."""
    report, failed = SimulationReport(), list[SimulationFailed]()
    for seed in seeds:
        for backend in backends:
            try:
                report.add(simulate_once(program, seed, backend).report)
            except SimulationFailed as exc:
                exc.add_note(f"--world {name}")
                failed.append(exc)
    return report, failed


def swept(backends: Sequence[str]) -> tuple[SimulationReport, list[SimulationFailed]]:
    """Play the canonical run with a fault and a cancellation at each step."""
    report, failed = SimulationReport(), list[SimulationFailed]()
    for backend in backends:
        for in_session in (False, True):
            for name, at, program in sweep(backend, in_session=in_session):
                try:
                    report.add(simulate_once(program, at, backend).report)
                except SimulationFailed as exc:
                    exc.args = (exc.seed, backend, f"{name} at message {at}: {exc.why}", exc.trace)
                    failed.append(exc)
    return report, failed


def processes(many: int, backends: Sequence[str]) -> SimulationReport:
    """Play scenes with agents that are processes, in real time."""
    report = SimulationReport()
    for number in range(many):
        backend = backends[number % len(backends)]
        with tempfile.TemporaryDirectory() as folder:
            anyio.run(play, report, SCENES[number % len(SCENES)], Path(folder), backend=backend)
    return report


def chunks(options: argparse.Namespace) -> Iterator[range]:
    end = options.first + options.seeds
    for begin in range(options.first, end, CHUNK):
        yield range(begin, min(begin + CHUNK, end))


def shown(failure: SimulationFailed) -> str:
    notes: list[str] = getattr(failure, "__notes__", [])  # which world it is
    command = " ".join([f"{sys.executable} -m tests.simulation --backend {failure.backend}", *notes])
    return f"{failure}\n{SEED_VARIABLE}={failure.seed} {command}"


def main(arguments: Sequence[str] | None = None, worlds: Mapping[str, Program] = WORLDS) -> int:
    """Run the command.

    Args:
        arguments: Those of the command line if not given.
        worlds: What to simulate, by name. Worker processes have to be able to import it.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--backend", action="append", choices=["asyncio", "trio"], help="both by default")
    parser.add_argument("--world", action="append", choices=[*worlds], help="which; by default all")
    parser.add_argument("--workers", type=int, default=2, help="processes to use; 1: this one")
    parser.add_argument("--processes", type=int, default=40, help="scenes with agents that are processes")
    parser.add_argument("--no-sweep", action="store_true", help="leave out the faults at each message")
    parser.add_argument(
        "--digests", action="store_true", help="print a digest of what happened for each seed"
    )
    parser.add_argument("--trace", action="store_true", help="print what happened")
    options = parser.parse_args(arguments)
    backends: list[str] = options.backend or ["asyncio", "trio"]
    programs = {name: worlds[name] for name in options.world or worlds}
    only = os.environ.get(SEED_VARIABLE)
    if only is not None:
        options.first, options.seeds = int(only), 1
    if only is not None or options.digests or options.trace:
        return look(options, backends, programs)
    began = time.perf_counter()
    report, failures = SimulationReport(), list[SimulationFailed]()
    for part, failed in in_parts(options, backends, programs):
        report.add(part)
        failures += failed
        if len(failures) >= FAILURES_SHOWN:
            break
    if not failures and options.processes:
        report.add(processes(options.processes, backends))
    seconds = time.perf_counter() - began
    for failure in failures[:FAILURES_SHOWN]:
        print(shown(failure), end="\n\n")  # noqa: T201 - the figures
    print(report)  # noqa: T201 - the figures
    speed = f"{report.runs / seconds:.0f} a second"
    print(f"{report.runs} runs in {seconds:.0f} s: {speed}; {len(failures)} failed")  # noqa: T201 - the figures
    return 1 if failures else 0


def in_parts(
    options: argparse.Namespace, backends: Sequence[str], programs: Mapping[str, Program]
) -> Iterator[tuple[SimulationReport, list[SimulationFailed]]]:
    """Play the worlds, here or in worker processes."""
    if options.workers == 1:
        for chunk in chunks(options):
            for name, program in programs.items():
                yield simulated(name, program, chunk, backends)
        if not options.no_sweep:
            yield swept(backends)
        return
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        waiting = [
            pool.submit(simulated, *named, chunk, backends)
            for chunk in chunks(options)
            for named in programs.items()
        ]
        if not options.no_sweep:
            waiting.append(pool.submit(swept, backends))
        try:
            for done in as_completed(waiting):
                yield done.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def look(options: argparse.Namespace, backends: Sequence[str], programs: Mapping[str, Program]) -> int:
    """Play some worlds one by one, and say more of each."""
    for seed in range(options.first, options.first + options.seeds):
        for backend, (name, program) in product(backends, programs.items()):
            try:
                done = simulate_once(program, seed, backend)
            except SimulationFailed as exc:
                exc.add_note(f"--world {name}")
                print(shown(exc))  # noqa: T201 - the figures
                return 1
            if options.digests:
                print(seed, backend, done.digest())  # noqa: T201 - the figures
            else:
                print(*done.trace(), done.report, sep="\n")  # noqa: T201 - the figures
    return 0
