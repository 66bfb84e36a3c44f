"""`trials`: many inputs, many agents, several times each; and `serve_worker`, for other machines."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

from anyio import to_thread

from thinkwell.trials._engine.settings import LEASE, Settings
from thinkwell.trials._plan import make_plan

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from thinkwell import Budget, ThinkBuilder
    from thinkwell.permissions import PermissionMode
    from thinkwell.trials._checks import Check
    from thinkwell.trials._engine.settings import Pace, Ready
    from thinkwell.trials._report import Report
    from thinkwell.trials._travel import Repository
    from thinkwell.trials._trial import Trial
    from thinkwell.trials._worktree import Worktree

T = TypeVar("T")

__all__ = ("serve_worker", "trials")


async def trials(
    task: ThinkBuilder[T] | Callable[..., ThinkBuilder[T]],
    *,
    inputs: Iterable[object] | Mapping[str, object],
    agents: Iterable[str],
    repeat: int = 1,
    workspace: Worktree | Repository | None = None,
    check: Check | None = None,
    store: str | os.PathLike[str] | None = None,
    limit: int = 4,
    budget: Budget | None = None,
    timeout: float | None = None,  # noqa: ASYNC109 - of each run
    idle_timeout: float | None = None,
    permissions: PermissionMode = "allow",
    worker: bool = True,
    rerun_errors: bool = False,
    recordings: str | os.PathLike[str] | None = None,
    on_change: Callable[[Sequence[Trial]], object] = lambda _: None,
) -> Report:
    """Run a task over many inputs, with several agents, several times each, and return the report.

    They run in another process, a worker, which this starts. What has ended is kept in the store: the same
    call with the same store runs only the rest, also after a crash. A trial that was under way then begins
    again. Cancelling this cancels the trials; the next call runs them.

    Args:
        task: The task, to which each input is added by ``.text(str(input))``; or a function of a module that
            returns the task of an input. A script needs ``if __name__ == "__main__":`` around this call.
        inputs: The inputs: JSON. Each has a key, which names it for good: that of a mapping or of an `Input`,
            else a hash of its content.
        agents: The names of known agents.
        repeat: How often each agent gets each input.
        workspace: Where the agents work: each trial in a `Worktree` of its own. With a `Repository`, other
            machines can run trials, too. By default the agents work in the current folder.
        check: What says whether a trial has passed: a `Command`, a `Judge`, or a function of a module. By
            default, a trial with a result has.
        store: The path of an SQLite file, which one program at a time can use, or the URL of a PostgreSQL
            database. By default, nothing is kept.
        limit: How many trials run at a time in this worker.
        budget: The budget of all trials together, those of other workers and lost attempts included. What it
            stops can run again with a larger one.
        timeout: Seconds for each run.
        idle_timeout: Seconds of silence of the agent; see `ThinkBuilder.stream`.
        permissions: What the agents may do when they ask; see `open_agent`.
        worker: Whether to start a worker here. Without it, those of ``thinkwell worker`` run the trials.
        rerun_errors: Whether to run those again that ended with the status ``error``, for example after a
            login.
        recordings: A folder for a recording of each run.
        on_change: Called with all trials when one has changed; they are without results and changes.

    Raises:
        AgentNotFound: An agent is unknown or not installed here, and a worker is to run it here.
        PlanError: A script began the trials again, as it has no ``if __name__ == "__main__":``.
        StoreError: The store cannot be used, or another program uses it.
        WorkerFailed: The worker dies again and again.
        TypeError: Something cannot be given to another process.
        ValueError: An argument is out of range, or two inputs have the same key.
    """
    from thinkwell.trials._engine.running import run_plan  # imports SQLAlchemy

    making = partial(
        make_plan,
        task,
        inputs=inputs,
        agents=agents,
        repeat=repeat,
        workspace=workspace,
        check=check,
        limit=limit,
        budget=budget,
        timeout=timeout,
        idle_timeout=idle_timeout,
        permissions=permissions,
        travels="://" in str(store),
    )
    plan = await to_thread.run_sync(making)
    return await run_plan(
        plan,
        store=store,
        worker=worker,
        rerun_errors=rerun_errors,
        recordings=recordings,
        on_change=on_change,
    )


async def serve_worker(
    store: str | os.PathLike[str],
    *,
    agents: Sequence[str],
    limit: int = 4,
    paces: Mapping[str, Pace] | None = None,
    recordings: str | os.PathLike[str] | None = None,
    ready: Callable[[Ready], object] = lambda _: None,
    lease: float = LEASE,
) -> None:
    """Run trials of any plan in a store, until this is cancelled; that takes up to 20 seconds.

    Args:
        store: The URL of a PostgreSQL database, or a path of an SQLite file that no other program uses.
        agents: The agents to run. Those that do not start here, or are not logged in, are left out.
        limit: How many trials to run at a time.
        paces: The limits of agents, for all workers of the store together; the last that were given count.
        recordings: A folder for recordings of the runs.
        ready: Called when the worker begins, with the agents that it can run, and those that it cannot.
        lease: Seconds without a sign of life after which others take over its trials.

    Raises:
        StoreError: The store cannot be used, or another program uses it.
        WorkerFailed: The worker dies again and again.
    """
    from thinkwell.trials._engine.running import serve

    settings = Settings(
        agents=tuple(agents),
        limit=limit,
        probe=True,
        paces=dict(paces or {}),
        lease=lease,
        recordings=None if recordings is None else str(recordings),
    )
    await serve(store, settings, ready)
