"""The worker: a process that runs trials. Only here DBOS is imported.

It is started by `thinkwell.trials._engine.process`, which writes its settings on standard input and keeps
that open: it leaves when its program leaves or dies.
"""

from __future__ import annotations

import hashlib
import os
import platform
import secrets
import signal
import sys
import threading
import traceback
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn, TypeVar

import anyio
import anyio.from_thread
import msgspec
from anyio import to_thread

from thinkwell import open_agent
from thinkwell._terminal.ctrl_c import signal_received
from thinkwell.errors import BudgetExceeded
from thinkwell.trials._engine.attempt import Live, run_attempt, words_of
from thinkwell.trials._engine.lease import Lease, bury, owned
from thinkwell.trials._engine.settings import LEAVE, LOST, NO_STORE, Ready, Settings
from thinkwell.trials._engine.store import Attempt, Store
from thinkwell.trials._errors import StoreError
from thinkwell.trials._open_agents import kill_all, killable
from thinkwell.trials._plan import Plan
from thinkwell.trials._purse import unlimited
from thinkwell.trials._trial import Spent, Trial

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection

    from thinkwell import Budget
    from thinkwell.trials._engine.dispatcher import Dispatcher
    from thinkwell.trials._engine.store import Name

T = TypeVar("T")

TICK: Final = 0.2
"""Seconds between two notes of what attempts have come to. A crash loses as much of what they have spent."""

SWEEP: Final = 0.5
"""Seconds between two looks for what dead workers have left."""

RETRY: Final = 0.5
"""Seconds until a store that did not answer is tried again."""

ORPHANED: Final = 4.0
"""Seconds to leave when the program has died."""

PREDECESSOR: Final = 10.0
"""Seconds to wait for the worker of a program that has died, which is leaving."""

NOTHING: Final = Spent()


class _Kept:
    """A plan, with what may still be spent on it."""

    def __init__(self, revision: int, plan: Plan) -> None:
        self.revision = revision
        self.plan = plan
        self.total: Budget = unlimited() if plan.budget is None else plan.budget.budget()
        self.elsewhere = Spent()

    def charge(self, spent: Spent, before: Spent = NOTHING) -> None:
        """Count what was spent, and not counted before."""
        self.total.charge(
            tokens=spent.tokens - before.tokens,
            cost=(spent.cost or 0.0) - (before.cost or 0.0),
            tool_calls=spent.tool_calls - before.tool_calls,
        )

    def used_up(self) -> str | None:
        """Return why no trial may begin; ``None``: one may."""
        error, limits = self.total.exceeded(wants_more=True), self.plan.budget
        if error is None and limits is not None and limits.max_tool_calls is not None:
            used = self.total.spent.tool_calls
            if used >= limits.max_tool_calls:
                error = BudgetExceeded("tool_calls", limits.max_tool_calls, used)
        return None if error is None else words_of(error)


class _Worker:
    """Runs trials.

    Args:
        settings: What to do.
        store: The store.
        portal: The way from other threads to the event loop.
    """

    def __init__(self, settings: Settings, store: Store, portal: anyio.from_thread.BlockingPortal) -> None:
        self.id: Final = f"{platform.node()}-{os.getpid()}-{secrets.token_hex(4)}"
        self.exit_code = 0
        self._lease = Lease(store, self.id, self._lost, settings.lease)
        self._leaving = False
        self._probing = anyio.CancelScope()
        """Around the time in which it finds out which agents can be run here."""
        self._settings = settings
        self._store = store
        self._portal = portal
        self._slots = anyio.CapacityLimiter(settings.limit)
        self._live = dict[Attempt, Live]()
        self._noted = dict[Attempt, Trial]()
        self._plans = dict[str, _Kept]()
        self._mutex = threading.Lock()
        """For the plans, of which each has one budget."""
        self._over = anyio.Event()

    # From other threads

    def run(self, plan: str, name: Name, dispatch: int) -> None:
        """Run a trial, in the thread of its workflow."""
        try:
            self._portal.call(self._trial, plan, name, dispatch)
        except BaseException:  # the worker leaves: another one goes on with what DBOS takes for running
            threading.Event().wait()

    def leave_at_end_of_input(self) -> None:
        """Leave when the program that has started this process says so, or dies. This blocks until then."""
        asked = bool(sys.stdin.buffer.readline())
        if not asked and not self._live:
            _end(0)  # without having waited until DBOS is imported
        _later(LEAVE if asked else ORPHANED, _end, 1)
        self._portal.start_task_soon(partial(self.leave, hurried=not asked))

    def _lost(self, why: str) -> None:
        _later(LEAVE, _end, LOST)
        print(f"{self._store}: {why}", file=sys.stderr, flush=True)  # noqa: T201
        self._portal.start_task_soon(self.leave, LOST)

    def _launch(self, agents: Collection[str]) -> Dispatcher:
        """Take the lease, and begin to take the trials of some agents."""
        from thinkwell.trials._engine.dispatcher import Dispatcher  # imports DBOS

        dispatcher = Dispatcher(self._store, self.id, self.run)
        self._lease.take(agents, platform.node())
        with self._store.translated("written"):
            dispatcher.launch(agents, self._settings.limit, self._settings.paces)
        return dispatcher

    def _sweep(self, dispatcher: Dispatcher) -> None:
        with self._store.translated("used"):  # DBOS uses it, too
            if self._lease.settled.is_set():
                dispatcher.take_over(bury(self._store, self.id))
                dispatcher.revive()
            dispatcher.dispatch()

    def _write(self, now: dict[Attempt, Trial]) -> list[Attempt]:
        """Note what attempts have come to so far; return those that are no longer wanted."""
        changed = [(attempt, trial) for attempt, trial in now.items() if trial != self._noted.get(attempt)]
        if changed:
            self._store.put(changed)
        self._noted = now
        for plan in {attempt.plan for attempt in now}:
            with self._mutex:
                self._settle(plan, self._plans[plan])
        return self._store.unwanted(now)

    def _begin(self, plan: str, name: Name, dispatch: int) -> tuple[Attempt, _Kept] | None:
        """Begin an attempt; ``None`` where the trial has ended, or may not begin."""
        with self._mutex:
            try:
                kept = self._keep(plan)
            except msgspec.MsgspecError as exc:
                self._store.cancel(plan, f"this plan cannot be read here ({exc}); update this thinkwell")
                return None
            self._settle(plan, kept)
            if why := kept.used_up():
                self._store.cancel(plan, why)
                return None
        attempt = self._store.begin(plan, name, dispatch, self.id)
        return None if attempt is None else (attempt, kept)

    def _keep(self, plan: str) -> _Kept:
        """Read a plan, unless its newest revision is known."""
        kept = self._plans.get(plan)
        newer = self._store.plan(plan, None if kept is None else kept.revision)
        if newer is not None or kept is None:
            revision, body = newer or (0, "")
            kept = _Kept(revision, msgspec.json.decode(body, type=Plan))
            kept.charge(self._store.spent(plan))
            kept.elsewhere = self._store.spent(plan, but=self.id)
            self._plans[plan] = kept
        return kept

    def _settle(self, plan: str, kept: _Kept) -> None:
        """Charge a plan's budget with what other workers have spent since."""
        before, kept.elsewhere = kept.elsewhere, self._store.spent(plan, but=self.id)
        kept.charge(kept.elsewhere, before)

    def _end(self, attempt: Attempt, ended: Trial) -> bool:
        """Write what an attempt has come to; return whether this worker still has its lease."""
        self._store.put([(attempt, ended)])
        if ended.status == "cancelled":
            self._store.cancel(attempt.plan, ended.error or "cancelled")
        return any(worker.id == self.id for worker in self._store.workers())

    # In the event loop

    def leave(self, exit_code: int = 0, *, hurried: bool = False) -> None:
        """Cancel the attempts; when they have ended, the worker ends.

        Args:
            exit_code: Its exit code.
            hurried: Whether to kill agents that have not ended after two seconds.
        """
        if hurried:
            _later(ORPHANED / 2, kill_all)
        if not self._leaving:
            self._leaving = True
            self.exit_code = exit_code
            self._probing.cancel()
            for each in self._live.values():
                each.scope.cancel()
        if not self._live:
            self._over.set()

    async def work(self) -> None:
        """Run trials until it is time to leave."""
        ready = await self._ready()
        if self._leaving:
            return
        if not ready.agents:
            _say(ready)
            return
        dispatcher = await to_thread.run_sync(self._launch, ready.agents)
        _say(ready)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._every, TICK, self._note)
            tasks.start_soon(self._every, SWEEP, lambda: to_thread.run_sync(self._sweep, dispatcher))
            await self._over.wait()
            tasks.cancel_scope.cancel()
        await to_thread.run_sync(self._lease.end)

    async def _ready(self) -> Ready:
        """Find out which agents can be run here: those that start, and open a session."""
        refused = dict[str, str]()

        async def probe(agent: str) -> None:
            try:
                async with killable(open_agent(agent)) as opened, opened.session():
                    pass
            except Exception as exc:  # whatever it is, this agent cannot be run here
                refused[agent] = words_of(exc)

        with self._probing:
            async with anyio.create_task_group() as tasks:
                for agent in self._settings.agents if self._settings.probe else ():
                    tasks.start_soon(probe, agent)
        agents = tuple(agent for agent in self._settings.agents if agent not in refused)
        return Ready(worker=self.id, agents=agents, refused=refused)

    async def _every(self, seconds: float, do: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await do()
            except StoreError as exc:  # the lease knows when that has lasted too long
                print(exc, file=sys.stderr, flush=True)  # noqa: T201
            await anyio.sleep(seconds)

    async def _note(self) -> None:
        """Note what attempts have come to so far, and end those that are no longer wanted."""
        now = {attempt: live.now() for attempt, live in self._live.items()}
        for attempt in await to_thread.run_sync(self._write, now):
            if attempt in self._live:
                self._live[attempt].scope.cancel()

    async def _trial(self, plan: str, name: Name, dispatch: int) -> None:
        async with self._slots:
            if self._leaving:
                await anyio.sleep_forever()
            begun = await self._surely(lambda: self._begin(plan, name, dispatch))
            if begun is not None:
                await self._attempt(*begun)

    async def _attempt(self, attempt: Attempt, kept: _Kept) -> None:
        self._live[attempt] = live = Live(attempt.name, kept.total)
        ended: Trial | None = None
        is_known = False
        with live.scope:
            if self._leaving:  # pragma: no cover - it was asked to meanwhile
                live.scope.cancel()
            ended = await run_attempt(kept.plan, live, self._recording(attempt))
        with anyio.CancelScope(shield=True):
            is_known = await self._surely(partial(self._end, attempt, ended or live.given_back()))
        del self._live[attempt]
        if self._leaving:
            self.leave()
        if self._leaving or not is_known:
            await anyio.sleep_forever()  # DBOS must not take it for done: others go on with it

    async def _surely(self, do: Callable[[], T]) -> T:
        """Do something with the store, again and again while it does not answer."""
        while True:
            try:
                return await to_thread.run_sync(do)
            except StoreError as exc:
                if self._leaving and self.exit_code == LOST:
                    raise
                print(exc, file=sys.stderr, flush=True)  # noqa: T201
                await anyio.sleep(RETRY)

    def _recording(self, attempt: Attempt) -> str | None:
        if self._settings.recordings is None:
            return None
        digest = hashlib.sha256(msgspec.json.encode((attempt.plan, attempt.name))).hexdigest()[:16]
        return str(Path(self._settings.recordings) / f"{digest}-{attempt.number}.ndjson")


async def _main(settings: Settings) -> NoReturn:
    store = await to_thread.run_sync(Store, settings.store)
    exit_code = 0
    with owned(store, "worker", PREDECESSOR):
        async with anyio.from_thread.BlockingPortal() as portal:
            worker = _Worker(settings, store, portal)

            def asked() -> None:
                _later(LEAVE, _end, 1)
                worker.leave()

            threading.Thread(target=worker.leave_at_end_of_input, daemon=True).start()
            # Not with the event loop, which has no signals on Windows.
            with signal_received(signal.SIGTERM, asked), signal_received(signal.SIGINT, asked):
                await worker.work()
            await portal.stop(cancel_remaining=True)  # trials that wait for their turn
            exit_code = worker.exit_code
    _end(exit_code)


def _say(ready: Ready) -> None:
    print(msgspec.json.encode(ready).decode(), flush=True)  # noqa: T201


def _later(seconds: float, do: Callable[..., object], *args: object) -> None:
    """Do something after a time, in a thread, whatever happens until then."""
    timer = threading.Timer(seconds, do, args)
    timer.daemon = True
    timer.start()


def _end(exit_code: int) -> NoReturn:
    """End the process, and its agents. Threads of DBOS are in trials that another worker goes on with."""
    for last in (kill_all, sys.stdout.flush, sys.stderr.flush):
        with suppress(Exception):  # the loop may be ending the agents; a dead program reads nothing
            last()
    os._exit(exit_code)


def main() -> None:
    """Run a worker with the settings on standard input."""
    settings = msgspec.json.decode(sys.stdin.buffer.readline(), type=Settings)
    sys.path[:] = dict.fromkeys((*settings.path, *sys.path))
    exit_code = 1
    try:
        try:
            anyio.run(_main, settings)
        except* StoreError as errors:
            print(*errors.exceptions, file=sys.stderr, flush=True)  # noqa: T201
            exit_code = NO_STORE
    except BaseException:
        traceback.print_exc()
    finally:
        _end(exit_code)  # Python would wait for the threads of DBOS


if __name__ == "__main__":  # pragma: no branch - it is a program
    main()
