"""Runs in which a seed decides everything: the faults, the order of tasks, the clock."""

from __future__ import annotations

import hashlib
import os
import random
import re
import signal
import threading
import time
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVarTuple, cast

import anyio
from typing_extensions import Unpack

from thinkwell import events as ev
from thinkwell import open_agent
from thinkwell.testing._chaos import Chaos, Fault
from thinkwell.testing._chaotic import ChaoticTransport, chaotic
from thinkwell.testing._invariants import Wire, answers_missing, shown
from thinkwell.testing._leftovers import Leftovers, leftovers, other_tasks
from thinkwell.testing._virtual import virtual_backend
from thinkwell.testing._watch import SessionWatch, Watch, check_nothing_lost

if TYPE_CHECKING:
    import logging
    from collections.abc import AsyncGenerator, Generator, Iterable, Mapping
    from types import FrameType

    from anyio.abc import TaskGroup

    from thinkwell import Agent, Buffer, Session, ThoughtStream
    from thinkwell.testing._memory import OpenOptions, PlayedAgent
    from thinkwell_acp import Transport

Args = TypeVarTuple("Args")

SEED_VARIABLE: Final = "THINKWELL_SEED"
"""Environment variable that names the one seed to run."""

LEAST_GRACE: Final = 0.001
"""Seconds between a question and the end of everything in which it need not be answered."""

GIVEN_UP: Final = "so its process is ended"
"""The log message when thinkwell ends an agent that does not end a turn."""

LINE_SHOWN: Final = 400
"""Characters of a message shown in a trace."""

WITHIN: Final = 3600.0
"""Seconds of virtual time for one run: far more than all limits of thinkwell together."""

AGAIN_AFTER: Final = 1.0
"""Seconds until it is stopped again: an event loop swallows an exception at the wrong moment."""

REAL_LIMIT: Final = 60.0
"""Seconds of real time for one run."""

_RANDOM: Final = re.compile(r'thinkwell[0-9a-f]{12}|\brun-\d+|(?:(?<=Id":")|(?<=Id": "))[0-9a-f]{24}(?=")')
"""Names that differ from run to run by intention: names that must not be guessed, and numbers of runs."""


class DoesNotHold(AssertionError):  # noqa: N818 - a sentence, with its message
    """An invariant does not hold."""


class SimulationFailed(AssertionError):  # noqa: N818 - named as ScriptFailed is
    """A simulated run went wrong.

    Attributes:
        seed: Its seed.
        backend: Its event loop.
        why: What went wrong.
        trace: What happened, line by line.
    """

    def __init__(self, seed: int, backend: str, why: str, trace: Sequence[str]) -> None:
        super().__init__(seed, backend, why, trace)
        self.seed = seed
        self.backend = backend
        self.why = why
        self.trace: tuple[str, ...] = tuple(trace)

    def __str__(self) -> str:
        lines = "\n".join(self.trace)
        return (
            f"{self.why}\n{lines}\n"
            f"Seed {self.seed} on {self.backend}. Repeat it with {SEED_VARIABLE}={self.seed}"
        )


@dataclass(kw_only=True)
class SimulationReport:
    """The outcome of a simulation."""

    runs: int = 0
    """Seeds, on each event loop."""
    injected: Counter[Fault] = field(default_factory=Counter[Fault])
    """How often each fault occurred."""
    checked: Counter[str] = field(default_factory=Counter[str])
    """How often each invariant was checked."""
    noted: Counter[str] = field(default_factory=Counter[str])
    """Your own counts."""
    virtual_seconds: float = 0.0
    seconds: float = 0.0

    def add(self, other: SimulationReport) -> None:
        """Add another report to this one."""
        self.runs += other.runs
        self.injected += other.injected
        self.checked += other.checked
        self.noted += other.noted
        self.virtual_seconds += other.virtual_seconds
        self.seconds += other.seconds

    def __str__(self) -> str:
        hours = self.virtual_seconds / 3600
        lines = [f"{self.runs} runs, {hours:.1f} hours of virtual time in {self.seconds:.1f} s"]
        faults = Counter({str(fault): number for fault, number in self.injected.items()})
        for title, counts in (("faults", faults), ("invariants checked", self.checked), ("seen", self.noted)):
            if counts:
                lines.append(f"{counts.total()} {title}")
                lines += [f"{number:9} {name}" for name, number in sorted(counts.items())]
        return "\n".join(lines)


class Simulation:
    """One simulated run. Created by `simulate`."""

    def __init__(self, seed: int, backend: str) -> None:
        self.seed = seed
        self.backend = backend
        self.dice: random.Random = random.Random(seed)  # noqa: S311 - nothing secret
        """The source of all random decisions of the program."""
        self.report: SimulationReport = SimulationReport(runs=1)
        self._killed = False
        self.error_logs_expected = False
        """Whether errors in the log are allowed."""
        self._connections: list[ChaoticTransport] = []
        self._watches: list[tuple[Watch, ChaoticTransport]] = []
        self._sessions: list[tuple[SessionWatch, ChaoticTransport]] = []
        self._notes: list[tuple[float, str]] = []
        self._tasks: TaskGroup | None = None
        self._began = 0.0

    # For the program

    def chaotic(
        self,
        transport: Transport,
        *,
        rates: Mapping[Fault, float] | None = None,
        at: Mapping[int, Fault] | None = None,
    ) -> ChaoticTransport:
        """Return a connection to an agent, with faults.

        Args:
            transport: The client's end of the connection.
            rates: The probability of each fault; see `Chaos`.
            at: Faults at certain messages; see `Chaos`.
        """
        connection = chaotic(transport, Chaos(self.dice.getrandbits(32), rates=rates, at=at))
        self._connections.append(connection)
        return connection

    @asynccontextmanager
    async def open(
        self,
        agent: PlayedAgent,
        *,
        rates: Mapping[Fault, float] | None = None,
        at: Mapping[int, Fault] | None = None,
        **options: Unpack[OpenOptions],
    ) -> AsyncGenerator[Agent]:
        """Open a test agent, with faults on its connection.

        Args:
            agent: The agent, such as a `ScriptedAgent`.
            rates: The probability of each fault; see `Chaos`.
            at: Faults at certain messages; see `Chaos`.
            options: Those of `thinkwell.open_agent`.
        """
        async with agent.connect() as transport:
            connection = self.chaotic(transport, rates=rates, at=at)
            async with open_agent(agent.name, transport=connection, **options) as opened:
                yield opened

    def watch(
        self,
        stream: ThoughtStream[Any],
        connection: ChaoticTransport | None = None,
        *,
        mark: str | None = None,
        include: ev.Include | None = None,
        buffer: Buffer | None = None,
    ) -> None:
        """Watch a run with an additional reader, and check it at the end.

        Args:
            stream: The run.
            connection: Its connection, if there are several: its events are compared with those there.
            mark: A text that only its prompt has, if other runs share its session.
            include: The `include` of the run.
            buffer: The buffer of the run.
        """
        kept = ev.DEFAULT_TYPES if include is None else ev.included(include)
        watch = Watch(stream, mark=mark, kept=kept, buffer=buffer)
        self._watches.append((watch, self._only(connection)))
        self.in_background(watch.read)
        self.in_background(watch.wait)

    def watch_session(self, session: Session, connection: ChaoticTransport | None = None) -> None:
        """Check that no event of a session is lost.

        All of its runs have to be watched, and keep everything.

        Args:
            session: The session.
            connection: Its connection, if there are several.
        """
        watch = SessionWatch(session)
        self._sessions.append((watch, self._only(connection)))
        self.in_background(watch.read)

    def _only(self, connection: ChaoticTransport | None) -> ChaoticTransport:
        if connection is None and len(self._connections) != 1:
            raise ValueError("say on which connection it runs: there is not just one")
        return connection or self._connections[0]

    def in_background(
        self, function: Callable[[Unpack[Args]], Coroutine[Any, Any, object]], *args: *Args
    ) -> None:
        """Run a function beside the program. It has to end by itself."""
        assert self._tasks is not None
        self._tasks.start_soon(function, *args)

    def check(self, name: str, holds: bool, why: str = "") -> None:
        """Count an invariant, and fail the run if it does not hold.

        Args:
            name: The invariant.
            holds: Whether it holds.
            why: Details for the failure.
        """
        self.report.checked[name] += 1
        if not holds:
            raise DoesNotHold(
                f"It does not hold that {name}: {why}" if why else f"It does not hold that {name}"
            )

    def count(self, name: str) -> None:
        """Count something for the report."""
        self.report.noted[name] += 1

    def note(self, text: str) -> None:
        """Add a line to the trace."""
        self._notes.append((anyio.current_time(), text))

    # For the code that runs it

    def trace(self) -> list[str]:
        """Return what happened, line by line, with times. The same for the same seed, in every process."""
        entries = [(at, f"   {text}") for at, text in self._notes]
        for number, connection in enumerate(self._connections, 1):
            for passed in connection.chaos.passed:
                arrow = "<-" if passed.way == "in" else "->"
                fault = f" [{passed.fault}]" if passed.fault else ""
                line = passed.line[: 10 * LINE_SHOWN].decode("utf-8", "replace")
                entries.append((passed.at, f"{number}{arrow}{fault} {line}"))
        names: dict[str, str] = {}

        def rename(match: re.Match[str]) -> str:
            return names.setdefault(match[0], f"#{len(names) + 1}")

        entries.sort(key=lambda entry: entry[0])
        return [f"{at - self._began:10.4f} {_RANDOM.sub(rename, text)[:LINE_SHOWN]}" for at, text in entries]

    def digest(self) -> str:
        """Return a short hash of the trace, to compare two runs."""
        return hashlib.sha256("\n".join(self.trace()).encode()).hexdigest()[:16]

    async def run(self, program: Program, within: float) -> None:
        """Run the program, with the checks that need a running event loop."""
        began = self._began = anyio.current_time()
        before = other_tasks()
        try:
            with anyio.fail_after(within):
                async with anyio.create_task_group() as tasks:
                    self._tasks = tasks
                    await program(self)
                    await self._check_watches()
        except TimeoutError as exc:
            raise DoesNotHold(f"It does not end within {within:g} seconds") from exc
        finally:
            self.report.virtual_seconds = anyio.current_time() - began
        for connection in self._connections:
            self._check_connection(connection)
        self.check("no task is left", other_tasks() == before, f"{other_tasks() - before} are")

    async def _check_watches(self) -> None:
        marks = [watch.mark for watch, _ in self._watches if watch.mark is not None]
        wires = {connection: Wire(connection.chaos.passed) for connection in self._connections}
        for watch, connection in self._watches:
            others = [mark for mark in marks if mark != watch.mark]
            await watch.check(self.check, wires[connection], others)
        for session, connection in self._sessions:
            self._check_session(session, wires[connection])

    def _check_session(self, session: SessionWatch, wire: Wire) -> None:
        watches = [watch for watch, _ in self._watches if watch.stream.session_id == session.id]
        if all(watch.complete for watch in watches):
            told = [event for watch in watches for event in watch.seen] + session.seen
            check_nothing_lost(self.check, wire, session.id, shown(told), session.ended_at)

    def _check_connection(self, connection: ChaoticTransport) -> None:
        chaos = connection.chaos
        self.report.injected += chaos.injected
        grace = LEAST_GRACE + (chaos.longest_delay if chaos.injected[Fault.SLOW_WRITE] else 0)
        # An agent that was killed because it did not end a turn need not get answers to its other questions.
        until = None if self._killed else connection.left_at
        missing = answers_missing(Wire(chaos.passed), until=until, grace=grace)
        self.check("each request is answered once", not missing, "; ".join(missing))

    def check_leftovers(self, found: Leftovers) -> None:
        """Run the checks after the end of the event loop."""
        self.check("no file is left open", not found.descriptors, f"{found.descriptors}")
        self.check("no temporary file is left", not found.files, f"{found.files}")
        self.check("there is no warning", not found.warnings, f"{found.warnings}")
        self.check("no exception is lost", not found.lost, f"{found.lost}")
        if not self.error_logs_expected:
            self.check("no error is logged", not found.errors, f"{found.errors}")

    def logged(self, record: logging.LogRecord) -> None:
        """Add a log record to the trace."""
        self._killed = self._killed or GIVEN_UP in record.getMessage()
        try:
            self.note(f"{record.name} {record.levelname}: {record.getMessage():.300}")
        except (RuntimeError, anyio.NoEventLoopError):  # without a running event loop there is no time
            self._notes.append((self._began + self.report.virtual_seconds, record.getMessage()))


Program: TypeAlias = Callable[[Simulation], Awaitable[object]]
"""The current simulation."""


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
