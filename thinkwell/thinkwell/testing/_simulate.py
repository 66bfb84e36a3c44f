"""Runs in which a seed decides everything: the faults, the order of tasks, the clock."""

from __future__ import annotations

import os
import signal
import threading
import time
import traceback
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final, cast

import anyio

from thinkwell.testing._leftovers import leftovers
from thinkwell.testing._simulation import (
    SEED_VARIABLE,
    DoesNotHold,
    Simulation,
    SimulationFailed,
    SimulationReport,
)
from thinkwell.testing._virtual import virtual_backend

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence
    from types import FrameType

    from thinkwell.testing._simulation import Program

WITHIN: Final = 3600.0
"""Seconds of virtual time for one run: far more than all limits of thinkwell together."""

AGAIN_AFTER: Final = 1.0
"""Seconds until it is stopped again: an event loop swallows an exception at the wrong moment."""

REAL_LIMIT: Final = 60.0
"""Seconds of real time for one run."""


def simulate_once(
    program: Program, seed: int, backend: str, *, within: float = WITHIN, real_limit: float = REAL_LIMIT
) -> Simulation:
    """Run a program once, under virtual time; see `simulate`.

    Raises:
        SimulationFailed: It raised an exception, or violated an invariant.
    """
    simulation = Simulation(seed, backend)
    name, options = virtual_backend(backend, seed)
    began = time.perf_counter()
    try:
        with _real_limit(real_limit), leftovers(simulation.logged) as found:
            anyio.run(partial(simulation.run, program, within), backend=name, backend_options=options)
        simulation.check_leftovers(found)
    except Exception as exc:
        raise SimulationFailed(seed, backend, _why(exc), simulation.trace()) from exc
    simulation.report.seconds = time.perf_counter() - began
    return simulation


def _why(exc: BaseException) -> str:
    """Return the message of an exception; for a group of one, the message of that one."""
    meant = exc
    while isinstance(meant, BaseExceptionGroup):
        inner = cast("BaseExceptionGroup[BaseException]", meant).exceptions
        meant = inner[0]
        if len(inner) > 1:
            meant = exc
            break
    if isinstance(meant, DoesNotHold):
        return str(meant)
    return "".join(traceback.format_exception(exc)).rstrip()


@contextmanager
def _real_limit(seconds: float) -> Generator[None]:
    """Stop a block that hangs in real time, if the system supports that."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise DoesNotHold(f"It does not end within {seconds:g} seconds of real time")

    previous = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN_AFTER)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def simulate(
    program: Program,
    *,
    seeds: int | Iterable[int] = 100,
    backends: Sequence[str] = ("asyncio", "trio"),
    within: float = WITHIN,
    real_limit: float = REAL_LIMIT,
) -> SimulationReport:
    """Run a program once for each seed, under virtual time, and check the invariants.

    If the environment variable ``THINKWELL_SEED`` is set, only that seed runs.

    Args:
        program: An async function that takes a `Simulation`.
        seeds: How many seeds, from 0, or which.
        backends: The event loops to run each seed on.
        within: Maximum seconds of virtual time for one run.
        real_limit: Maximum seconds of real time for one run.

    Raises:
        SimulationFailed: A run raised an exception, or violated an invariant. The error names the seed.
        ValueError: There are no seeds, or no event loops.
    """
    only = os.environ.get(SEED_VARIABLE)
    chosen = tuple(range(seeds) if isinstance(seeds, int) else seeds)
    if not chosen or not backends:
        raise ValueError(f"simulate(seeds={seeds!r}, backends={backends!r}): that would run nothing")
    if only is not None:
        chosen = (int(only),)
    report = SimulationReport()
    for seed in chosen:
        for backend in backends:
            done = simulate_once(program, seed, backend, within=within, real_limit=real_limit)
            report.add(done.report)
    return report
