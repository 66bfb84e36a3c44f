"""`trials`: many inputs, many agents, for callers who block."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

from thinkwell.sync._loop import call_once

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from thinkwell import Budget, ThinkBuilder
    from thinkwell.permissions import PermissionMode
    from thinkwell.trials import Check, Report, Repository, Trial, Worktree

T = TypeVar("T")


def trials(
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
    timeout: float | None = None,
    idle_timeout: float | None = None,
    permissions: PermissionMode = "allow",
    worker: bool = True,
    rerun_errors: bool = False,
    recordings: str | os.PathLike[str] | None = None,
    on_change: Callable[[Sequence[Trial]], object] = lambda _: None,
) -> Report:
    """Run a task over many inputs, with several agents; see `thinkwell.trials.trials` for its arguments.

    Ctrl-C cancels the trials, which takes up to 20 seconds; the next call with the same store runs them. A
    script needs ``if __name__ == "__main__":`` around this call. `on_change` is called in the event loop of
    the blocking API, and must not block.

    Raises:
        AgentNotFound: An agent is unknown or not installed here, and a worker is to run it here.
        PlanError: A script began the trials again, as it has no ``if __name__ == "__main__":``.
        StoreError: The store cannot be used, or another program uses it.
        WorkerFailed: The worker dies again and again.
        TypeError: Something cannot be given to another process.
        ValueError: An argument is out of range, or two inputs have the same key.
    """
    from thinkwell.trials import trials as async_trials  # needs an extra

    return call_once(
        partial(
            async_trials,
            task,
            inputs=inputs,
            agents=agents,
            repeat=repeat,
            workspace=workspace,
            check=check,
            store=store,
            limit=limit,
            budget=budget,
            timeout=timeout,
            idle_timeout=idle_timeout,
            permissions=permissions,
            worker=worker,
            rerun_errors=rerun_errors,
            recordings=recordings,
            on_change=on_change,
        )
    )
