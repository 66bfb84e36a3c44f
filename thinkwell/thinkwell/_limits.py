"""What a run may use: silence, and a budget that several runs can share."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import anyio
from msgspec import Struct

from thinkwell.errors import BudgetExceeded

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

logger = logging.getLogger("thinkwell")

TICK_SHARE: Final = 0.5
"""The share of the allowed silence after which a warning is given."""


class Spent(Struct, frozen=True, kw_only=True):
    """What was used of a budget, as far as the agents report it."""

    tokens: int = 0
    """Tokens that the agents say their models took and gave."""
    cost: float = 0.0
    """In the budget's currency."""
    tool_calls: int = 0
    seconds: float = 0.0
    """Since the first run began."""


class Budget:
    """What one run, or several together, may use: give the same object to each.

    A run that goes beyond it is cancelled, and so are the others that share it; its result raises
    `BudgetExceeded`. Tokens and cost count where the agent reports them, and when it does: some do in the
    middle of a turn, others at its end, some never.

    Args:
        max_tokens: Tokens taken and given, all in all.
        max_cost: Money, in `currency`. What an agent reports in another currency does not count.
        max_tool_calls: Calls of any tools, the agent's own and yours, but not of ``return_result``.
        max_seconds: Time since the first run with this budget began.
        currency: ISO 4217 code.

    Raises:
        ValueError: A limit is negative, or there is none.
    """

    def __init__(
        self,
        *,
        max_tokens: int | None = None,
        max_cost: float | None = None,
        max_tool_calls: int | None = None,
        max_seconds: float | None = None,
        currency: str = "USD",
    ) -> None:
        limits: dict[str, float | None] = {
            "tokens": max_tokens,
            "cost": max_cost,
            "tool_calls": max_tool_calls,
            "seconds": max_seconds,
        }
        self._limits = {what: limit for what, limit in limits.items() if limit is not None}
        if not self._limits:
            raise ValueError("Budget(): set a limit: max_tokens, max_cost, max_tool_calls or max_seconds")
        for what, limit in self._limits.items():
            if not limit >= 0:  # NaN is neither
                raise ValueError(f"Budget(max_{what}={limit}): it must not be negative")
        self.currency = currency
        self._tokens = 0
        self._cost = 0.0
        self._tool_calls = 0
        self._began: float | None = None
        self._meters: set[Meter] = set()
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        spent = self.spent
        used = ", ".join(f"{getattr(spent, what):g}/{limit:g} {what}" for what, limit in self._limits.items())
        return f"<Budget {used}>"

    @property
    def spent(self) -> Spent:
        """What was used so far."""
        return Spent(
            tokens=self._tokens, cost=self._cost, tool_calls=self._tool_calls, seconds=self._seconds()
        )

    def _seconds(self) -> float:
        return 0.0 if self._began is None else max(0.0, time.monotonic() - self._began)

    def exceeded(self, *, wants_more: bool = False) -> BudgetExceeded | None:
        """Return the error for what is used up; ``None`` where nothing is.

        Args:
            wants_more: Whether a limit that is reached exactly counts.
        """
        spent = self.spent
        for what, limit in self._limits.items():
            used: float = getattr(spent, what)
            if used > limit or (wants_more and used >= limit and what != "tool_calls"):
                return BudgetExceeded(what, limit, used)
        return None

    @contextmanager
    def shared_by(self, meter: Meter) -> Generator[float | None]:
        """Count a run in for the time of a block, which gets the seconds that are left, where time is limited."""
        with self._lock:
            if self._began is None:
                self._began = time.monotonic()
            self._meters.add(meter)
        limit = self._limits.get("seconds")
        try:
            yield None if limit is None else max(0.0, limit - self._seconds())
        finally:
            with self._lock:
                self._meters.discard(meter)

    def run_out(self) -> BudgetExceeded:
        """Return the error for the time that is used up."""
        limit = self._limits["seconds"]
        return BudgetExceeded("seconds", limit, max(limit, self._seconds()))

    def charge(self, *, tokens: int = 0, cost: float = 0.0, tool_calls: int = 0) -> None:
        """Count what a run has used, and stop all runs where that is too much."""
        with self._lock:
            self._tokens += tokens
            self._cost += cost
            self._tool_calls += tool_calls
            error = self.exceeded()
            meters = tuple(self._meters) if error is not None else ()
        for meter in meters:
            assert error is not None
            meter.stop(error)


class Meter:
    """Counts what one run uses of its budget."""

    def __init__(
        self, budget: Budget, stop: Callable[[Exception], None], *, cost_before: float | None
    ) -> None:
        self.budget = budget
        self._stop = stop
        self._thread = threading.get_ident()
        self._cost = cost_before
        self._calls: set[str] = set()
        self._context = 0
        """Tokens that are charged for the turn that runs."""

    def stop(self, error: BudgetExceeded) -> None:
        """End the run. One of another thread ends when it uses more."""
        if threading.get_ident() == self._thread:
            self._stop(error)

    def call(self, tool_id: str) -> None:
        """Count a tool call, once."""
        if tool_id not in self._calls:
            self._calls.add(tool_id)
            self.budget.charge(tool_calls=1)

    def cost(self, amount: float, currency: str) -> None:
        """Count what the session has cost so far: the difference is this run's."""
        if currency != self.budget.currency:
            logger.warning("The agent counts cost in %s, the budget in %s", currency, self.budget.currency)
            return
        before = amount if self._cost is None else self._cost
        self._cost = amount
        self.budget.charge(cost=max(0.0, amount - before))

    def context(self, tokens: int) -> None:
        """Count what the model's context holds: the turn has used that much at least."""
        if tokens > self._context:
            self.budget.charge(tokens=tokens - self._context)
            self._context = tokens

    def turn(self, tokens: int) -> None:
        """Count the tokens of a turn that has ended, as the agent says then."""
        self.budget.charge(tokens=max(0, tokens - self._context))
        self._context = 0


class IdleClock:
    """Measures how long nothing was heard of the agent. It stands still while something else is waited for."""

    def __init__(self, now: Callable[[], float], last_update: Callable[[], float]) -> None:
        self._now = now
        self._last_update = last_update
        self._reset_at = now()
        self._held = 0

    def reset(self) -> None:
        """Begin anew."""
        self._reset_at = self._now()

    @contextmanager
    def held(self) -> Generator[None]:
        """Stand still for the time of a block."""
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1
            self.reset()

    @property
    def idle(self) -> float:
        """Seconds of silence."""
        if self._held:
            return 0.0
        return self._now() - max(self._reset_at, self._last_update())

    async def watch(self, limit: float, busy: Callable[[], bool], warn: Callable[[float], None]) -> None:
        """Return when it has been silent for too long.

        Args:
            limit: Seconds of silence.
            busy: Whether the agent has a reason to be silent, such as a tool that runs.
            warn: Is called at half of the limit, once for each silence.
        """
        warned = False
        while True:
            if busy():
                self.reset()
            idle = self.idle
            if idle >= limit:
                return
            if idle < limit * TICK_SHARE:
                warned = False
            elif not warned:
                warned = True
                warn(idle)
            await anyio.sleep((limit if warned else limit * TICK_SHARE) - idle)
