"""Running a plan: it is saved, a worker is started, and the store is watched until all trials have ended."""

from __future__ import annotations

import hashlib
import logging
import sys
import time
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import anyio
import msgspec
from anyio import to_thread
from msgspec.structs import replace

if find_spec("sqlalchemy") is None:
    raise ImportError(
        "thinkwell.trials needs sqlalchemy, which is not installed; pip install 'thinkwell[trials]'",
        name="sqlalchemy",
    )

from thinkwell.trials._engine.lease import owned
from thinkwell.trials._engine.process import run_worker
from thinkwell.trials._engine.settings import Settings
from thinkwell.trials._engine.store import Store
from thinkwell.trials._errors import StoreError
from thinkwell.trials._report import Report
from thinkwell.trials._trial import run_again

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Generator, Sequence

    from thinkwell.trials._engine.settings import Ready
    from thinkwell.trials._plan import Plan
    from thinkwell.trials._trial import Status, Trial

__all__ = ("kept_trials", "run_plan", "serve")

logger = logging.getLogger("thinkwell")

LOOK: Final = 0.2
"""Least seconds between two looks at the store."""

SHARE: Final = 0.1
"""The share of a processor that looks take at most: each reads all trials, which may be thousands."""

UNSERVED: Final = 8.0
"""Seconds after which a warning names the agents that no worker can run."""

OUTAGE: Final = 15.0
"""Seconds in which a store that does not answer may come back."""


async def run_plan(
    plan: Plan,
    *,
    store: str | os.PathLike[str] | None = None,
    worker: bool = True,
    rerun_errors: bool = False,
    recordings: str | os.PathLike[str] | None = None,
    on_change: Callable[[Sequence[Trial]], object] = lambda _: None,
) -> Report:
    """Run the trials of a plan that have not ended, and return the report of all, in the plan's order.

    Cancelling this cancels the trials; if the program dies, they stay as they are.

    Args:
        plan: The plan.
        store: A path of an SQLite file, or the URL of a PostgreSQL database; by default a temporary file.
        worker: Whether to start a worker here. Without it, those of `serve_worker` have to run the trials.
        rerun_errors: Whether to run those again that ended with the status ``error``.
        recordings: A folder for recordings of the runs, which is made.
        on_change: Called with the trials when one has changed; they are without results and changes.

    Raises:
        AgentNotFound: An agent is unknown or not installed here, and a worker is started.
        StoreError: The store cannot be used, or another program uses it.
        WorkerFailed: The worker dies again and again.
    """
    worker = worker or "://" not in str(store)  # a file has one worker, that of its owner
    if worker:
        await to_thread.run_sync(plan.find_agents)
    folder = await to_thread.run_sync(_recordings, recordings)
    with _opened(store) as kept, owned(kept, "owner"):
        run = _Run(kept, plan, on_change)
        await to_thread.run_sync(run.save, run_again(rerun_errors=rerun_errors))
        settings = Settings(
            store=kept.address, agents=plan.agents, limit=plan.limit, recordings=folder, path=_path()
        )
        try:
            return Report(await run.go(settings if worker else None))
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(kept.cancel, run.id, "cancelled")
            raise


async def serve(store: str | os.PathLike[str], settings: Settings, ready: Callable[[Ready], object]) -> None:
    """Run a worker; see `thinkwell.trials.serve_worker`."""
    folder = await to_thread.run_sync(_recordings, settings.recordings)
    with _opened(store) as kept, owned(kept, "owner"):
        await run_worker(replace(settings, store=kept.address, recordings=folder), ready)


def kept_trials(plan: Plan, store: str) -> list[Trial]:
    """Return the trials of a plan that are in a store, without results and changes. This blocks.

    Raises:
        StoreError: The store cannot be used.
    """
    if "://" not in store and not Path(store).exists():
        return []
    with _opened(store) as kept:
        return kept.trials(plan_id(plan), whole=False)


def _path() -> tuple[str, ...]:
    """Return where this program's modules are found."""
    return tuple(str(Path(entry).absolute()) for entry in sys.path)


def _recordings(folder: str | os.PathLike[str] | None) -> str | None:
    if folder is None:
        return None
    path = Path(folder).absolute()
    path.mkdir(parents=True, exist_ok=True)
    return str(path)


class _Run:
    """One call for a plan.

    Args:
        store: The store.
        plan: The plan.
        watch: Called with the trials when one has changed.
    """

    def __init__(self, store: Store, plan: Plan, watch: Callable[[Sequence[Trial]], object]) -> None:
        self.id: Final = plan_id(plan)
        self._store = store
        self._plan = plan
        self._watch = watch
        self._names = plan.trials()
        self._shown: list[Trial] = []
        self._took = 0.0
        """Seconds of a processor that the last look has taken."""
        self._served = dict.fromkeys(plan.agents, time.monotonic())
        """When a worker could run an agent, for the last time; infinite after a warning."""

    def save(self, again: Sequence[Status]) -> None:
        """Save the plan and its trials; let those with these statuses wait again."""
        body = msgspec.json.encode(self._plan).decode()
        self._store.save(self.id, body, self._names, again)

    async def go(self, settings: Settings | None) -> list[Trial]:
        """Wait for the end of the trials, and return them. With settings, a worker runs beside."""
        failures: list[Exception] = []

        async def work(settings: Settings) -> None:
            try:
                while True:  # it may have been asked to leave, by a signal
                    await run_worker(settings, lambda _: None)
            except Exception as exc:  # the loop below may be about to end
                failures.append(exc)
                tasks.cancel_scope.cancel()

        async with anyio.create_task_group() as tasks:
            try:
                if settings is not None and not await self._ended():
                    tasks.start_soon(work, settings)
                while not await self._ended():
                    if settings is None:
                        with suppress(StoreError):
                            await to_thread.run_sync(self._warn)
                    await anyio.sleep(max(LOOK, self._took / SHARE - self._took))
            except StoreError as exc:
                failures.append(exc)
            tasks.cancel_scope.cancel()
        if failures and not (self._shown and all(trial.ended for trial in self._shown)):
            raise failures[0]
        return await self._look(whole=True)

    async def _ended(self) -> bool:
        trials = await self._look(whole=False)
        if trials != self._shown:
            self._shown = trials
            self._watch(trials)
        return all(trial.ended for trial in trials)

    async def _look(self, *, whole: bool) -> list[Trial]:
        """Return the trials, in the order of the plan. A store that does not answer may come back."""
        until = time.monotonic() + OUTAGE
        while True:
            try:
                return await to_thread.run_sync(partial(self._read, whole=whole))
            except StoreError:
                if time.monotonic() > until:
                    raise
                await anyio.sleep(LOOK)

    def _read(self, *, whole: bool) -> list[Trial]:
        began = time.thread_time()
        by_name = {trial.name: trial for trial in self._store.trials(self.id, whole=whole)}
        trials = [by_name[name] for name in self._names]
        self._took = time.thread_time() - began
        return trials

    def _warn(self) -> None:
        """Warn of agents that no worker can run, though trials wait for them."""
        now = time.monotonic()
        waiting = {trial.agent for trial in self._shown if trial.status == "waiting"}
        workers = [worker for worker in self._store.workers() if not worker.late]
        self._served.update({agent: now for worker in workers for agent in worker.agents})
        for agent in waiting:
            if now - self._served[agent] > UNSERVED:
                self._served[agent] = inf  # one warning
                logger.warning(
                    "%s: no worker can run the agent %r, so its trials wait; start `thinkwell worker` where "
                    "it is installed and logged in",
                    self._store,
                    agent,
                )


def plan_id(plan: Plan) -> str:
    """Return what names a plan in a store: what is asked, where, and how it is checked.

    Other inputs, agents, repeats and limits are the same plan, so that what has ended is not run again.
    """
    same = replace(
        plan,
        inputs=(),
        agents=(),
        repeat=1,
        limit=1,
        budget=None,
        timeout=None,
        idle_timeout=None,
        workspace=None if plan.workspace is None else plan.workspace.alike(),
    )
    return hashlib.sha256(msgspec.json.encode(same, order="sorted")).hexdigest()[:32]


@contextmanager
def _opened(store: str | os.PathLike[str] | None) -> Generator[Store]:
    with ExitStack() as stack:
        if store is None:
            store = Path(stack.enter_context(TemporaryDirectory(prefix="thinkwell-")), "trials.sqlite")
        kept = Store(str(store))
        stack.callback(kept.close)
        yield kept
