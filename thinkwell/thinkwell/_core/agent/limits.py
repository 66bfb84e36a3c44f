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

    from thinkwell._core.agent.login import SharedLogin
    from thinkwell._core.log.budget import Budget
    from thinkwell._core.turn.run_record import RunRecord
    from thinkwell_acp._tasks import BackgroundTasks

X = TypeVar("X")


@contextmanager
def limited(
    record: RunRecord[Any], agent: str, idle_timeout: float | None, login: SharedLogin, tasks: BackgroundTasks
) -> Generator[None]:
    """Stop a run if it exceeds its budget, or its agent is silent for too long, during a block.

    Args:
        record: The run's record.
        agent: The agent's name.
        idle_timeout: Seconds of silence; ``None``: unlimited.
        login: The agent's login, which is a reason for silence.
        tasks: The agent's tasks.
    """

    def warn(idle: float) -> None:
        record.tell(ev.Stalled, idle=idle, limit=idle_timeout)
        record.log.publish()
        about = "Run %s: agent %s was silent for %.0f s; it is cancelled after %g s"
        record.lines(logging.WARNING, about, record.id, agent, idle, idle_timeout)

    async def watch_silence(limit: float) -> None:
        await record.idle.watch(limit, lambda: record.tool_runs() or login.running, warn)
        record.stop(ThoughtTimeout(limit, idle=True))

    with ExitStack() as watches:
        if idle_timeout is not None:
            record.idle.reset()
            watches.enter_context(during(tasks, watch_silence, idle_timeout))
        if record.meter is not None:
            watches.enter_context(_metered(tasks, record.meter))
        yield


@contextmanager
def within_budget(
    budget: Budget | None, stop: Callable[[Exception], None], tasks: BackgroundTasks
) -> Generator[None]:
    """Stop what waits in a block where its budget is used up."""
    with nullcontext() if budget is None else _metered(tasks, Meter(budget, stop)):
        yield


@contextmanager
def _metered(tasks: BackgroundTasks, meter: Meter) -> Generator[None]:
    with meter.budget.shared_by(meter) as seconds_left, during(tasks, meter.watch, seconds_left):
        yield


@contextmanager
def during(tasks: BackgroundTasks, watch: Callable[[X], Awaitable[None]], argument: X) -> Generator[None]:
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
