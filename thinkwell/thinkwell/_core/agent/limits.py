"""The limits of a run: silence and budget."""

from __future__ import annotations

import logging
from contextlib import ExitStack, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

from thinkwell import events as ev
from thinkwell._core.log.budget import Meter
from thinkwell.errors import ThoughtTimeout

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

    from thinkwell._core.log.budget import Budget
    from thinkwell._core.turn.run_record import RunRecord
    from thinkwell_acp._tasks import BackgroundTasks

X = TypeVar("X")


class RunLimits:
    """Enforces a run's budget and idle timeout.

    Args:
        record: The run's record.
        agent: The agent's name.
        idle_timeout: Seconds of silence; ``None``: unlimited.
        logging_in: Whether a login is in progress, which is a reason for silence.
    """

    def __init__(
        self, record: RunRecord[Any], agent: str, idle_timeout: float | None, logging_in: Callable[[], bool]
    ) -> None:
        self._record = record
        self._agent = agent
        self._idle_timeout = idle_timeout
        self._logging_in = logging_in

    @contextmanager
    def watched(self, tasks: BackgroundTasks) -> Generator[None]:
        """Stop the run if it exceeds a limit during a block."""
        idle, meter = self._record.idle, self._record.meter
        with ExitStack() as watches:
            if self._idle_timeout is not None:
                idle.reset()
                watches.enter_context(_running(tasks, self._watch_silence, self._idle_timeout))
            if meter is not None:
                watches.enter_context(_metered(tasks, meter))
            yield

    async def _watch_silence(self, limit: float) -> None:
        record = self._record

        def warn(idle: float) -> None:
            record.tell(ev.Stalled, idle=idle, limit=limit)
            record.log.publish()
            about = "Run %s: agent %s was silent for %.0f s; it is cancelled after %g s"
            record.lines(logging.WARNING, about, record.id, self._agent, idle, limit)

        await record.idle.watch(limit, lambda: record.tool_runs() or self._logging_in(), warn)
        record.stop(ThoughtTimeout(limit, idle=True))


@contextmanager
def within_budget(
    budget: Budget | None, stop: Callable[[Exception], None], tasks: BackgroundTasks
) -> Generator[None]:
    """Stop what waits in a block where its budget is used up."""
    with nullcontext() if budget is None else _metered(tasks, Meter(budget, stop)):
        yield


@contextmanager
def _metered(tasks: BackgroundTasks, meter: Meter) -> Generator[None]:
    with meter.budget.shared_by(meter) as seconds_left, _running(tasks, meter.watch, seconds_left):
        yield


@contextmanager
def _running(tasks: BackgroundTasks, watch: Callable[[X], Awaitable[None]], argument: X) -> Generator[None]:
    """Run a function in the background during a block."""
    scope = anyio.CancelScope()

    async def task() -> None:
        with scope:
            await watch(argument)

    tasks.start_soon(task)
    try:
        yield
    finally:
        scope.cancel()
