"""The worker: a process that runs trials. Only here DBOS is imported.

It is started by `thinkwell.trials._process`, which writes its settings on standard input and keeps that open: it
leaves when its program leaves or dies.
"""

from __future__ import annotations

import hashlib
import os
import platform
import secrets
import signal
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import anyio
import anyio.from_thread
import msgspec
from anyio import to_thread
from msgspec import Struct

from thinkwell import open_agent
from thinkwell._display.summary import error_words
from thinkwell.trials._attempt import Purse, run_attempt, total_budget
from thinkwell.trials._errors import StoreError
from thinkwell.trials._lease import Lease, bury, owned
from thinkwell.trials._pace import Pace  # noqa: TC001 - type of a field
from thinkwell.trials._plan import Plan
from thinkwell.trials._store import LeaseLost, Store

if TYPE_CHECKING:
    from collections.abc import Callable

    from thinkwell import Budget
    from thinkwell.trials._dispatcher import Dispatcher
    from thinkwell.trials._store import Attempt, Name, Running
    from thinkwell.trials._trial import Spent

__all__ = ("LOST", "NO_STORE", "Ready", "Settings")

T = TypeVar("T")

TICK: Final = 0.2
"""Seconds between two notes of what attempts have come to. A crash loses as much of what they have spent."""

SWEEP: Final = 0.5
"""Seconds between two looks for what dead workers have left."""

RETRY: Final = 0.5
"""Seconds until a store that did not answer is tried again."""

LEAVE: Final = 18.0
"""Seconds to leave when asked to: ending an agent that does not listen takes up to 15."""

ORPHANED: Final = 4.0
"""Seconds to leave when the program has died."""

PROBE: Final = 120.0
"""Seconds for an agent to show that it starts and is logged in; it may be installed first."""

PREDECESSOR: Final = 10.0
"""Seconds to wait for the worker of a program that has died, which is leaving."""

LOST: Final = 75
NO_STORE: Final = 74
"""Exit codes: the lease is lost, or the store cannot be used."""


class Settings(Struct, frozen=True, kw_only=True):
    """What a worker is to do."""

    store: str
    agents: tuple[str, ...]
    limit: int
    probe: bool = False
    """Whether to find out first which of the agents start here, and are logged in."""
    paces: dict[str, Pace] = {}
    lease: float
    recordings: str | None = None
    """The folder for recordings of the runs."""


class Ready(Struct, frozen=True, kw_only=True):
    """What a worker says when it begins."""

    worker: str
    agents: tuple[str, ...]
    refused: dict[str, str]
    """The agents that it cannot run, and why."""


class _Live:
    """An attempt that goes on."""

    def __init__(self, scope: anyio.CancelScope, purse: Purse) -> None:
        self.scope = scope
        self.purse = purse
        self.now: Callable[[], Running] = Running
        self.noted = Running()


class _Kept:
    """A plan, with what may still be spent on it."""

    def __init__(self, revision: int, plan: Plan) -> None:
        self.revision = revision
        self.plan = plan
        self.total: Budget = total_budget(plan.budget)
        self.elsewhere = Spent()


class _Worker:
    """Runs trials.

    Args:
        settings: What to do.
        store: The store.
        portal: The way from other threads to the event loop.
    """

    def __init__(self, settings: Settings, store: Store, portal: anyio.from_thread.BlockingPortal) -> None:
        self.id: Final = f"{platform.node()}-{os.getpid()}-{secrets.token_hex(4)}"
        self.lease: Final = Lease(store, self.id, self._lost, settings.lease)
        self.exit_code = 0
        self._settings = settings
        self._store = store
        self._portal = portal
        self._slots = anyio.CapacityLimiter(settings.limit)
        self._live = dict[Attempt, _Live]()
        self._plans = dict[str, _Kept]()
        self._leaving = False
        self._over = anyio.Event()

    # From other threads

    def run(self, plan: str, name: Name) -> None:
        """Run a trial, in the thread of its workflow."""
        try:
            self._portal.call(self._trial, plan, name)
        except BaseException:  # the worker leaves: another one goes on with what DBOS takes for running
            threading.Event().wait()

    def _lost(self, why: str) -> None:
        end_within(LEAVE, LOST)
        print(f"{self._store}: {why}", file=sys.stderr, flush=True)  # noqa: T201
        self._portal.start_task_soon(self.leave, LOST)

    def _sweep(self, dispatcher: Dispatcher) -> None:
        if self.lease.settled.is_set():
            dispatcher.take_over(bury(self._store, self.id))
            dispatcher.revive()
        dispatcher.dispatch()

    def _note(self) -> None:
        live = list(self._live.items())
        now = [(attempt, each.now()) for attempt, each in live]
        changed = [(attempt, new) for (attempt, new), (_, each) in zip(now, live, strict=True)
                   if new != each.noted]
        over = self._store.note(changed) | self._store.unwanted([attempt for attempt, _ in live])
        for attempt, each in live:
            each.noted = dict(changed).get(attempt, each.noted)
            if attempt in over:
                self._portal.start_task_soon(_cancel, each.scope)
        for plan in {attempt.plan for attempt, _ in live}:
            self._charge(self._plans[plan], plan)

    def _begin(self, plan: str, name: Name) -> tuple[Attempt, _Kept] | None:
        """Begin an attempt, unless the trial has ended, or the budget is used up."""
        revision, body = self._store.plan(plan)
        kept = self._plans.get(plan)
        if kept is None or kept.revision != revision:
            kept = self._plans[plan] = _Kept(revision, msgspec.json.decode(body, type=Plan))
            kept.elsewhere = self._store.spent(plan, but=None)
        ...

    def _charge(self, kept: _Kept, plan: str) -> None:
        """Charge a plan's budget with what other workers have spent since."""
        known, spent = kept.elsewhere, self._store.spent(plan, but=self.id)
        kept.elsewhere = spent
        kept.total.charge(
            tokens=spent.tokens - known.tokens,
            cost=(spent.cost or 0.0) - (known.cost or 0.0),
            tool_calls=spent.tool_calls - known.tool_calls,
        )
