"""The limits of a run: silence, and a budget that several runs can share."""

from __future__ import annotations

import copy
import logging
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

import anyio
from anyio.lowlevel import EventLoopToken, current_token
from msgspec import Struct

from thinkwell.errors import BudgetExceeded

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

logger = logging.getLogger("thinkwell")

STALLED_SHARE: Final = 0.5
"""The share of the allowed silence after which a warning is given."""

LATE_SHARE: Final = 0.1
"""The share of the allowed silence by which our own event loop may be late. If it is later, updates of the
agent may not have been read, so the silence may not be the agent's."""

LATE_LEAST: Final = 0.1
"""Seconds by which it may be late in any case: that happens on a busy machine."""

LEAST_SLEEP: Final = 0.001
"""Least seconds between two looks at the clock: the rest may be shorter than a clock's resolution."""

MOST: Final = 2**63
"""The largest number of tokens that is counted; larger numbers are an agent's mistake."""

DIGITS: Final = 9
"""Decimal places of the sum of costs, so that ten times 0.1 is not more than 1."""


class Spent(Struct, frozen=True, kw_only=True):
    """The usage of a budget, as far as the agents report it."""

    tokens: int = 0
    """Input and output tokens, as the agents report them."""
    cost: float = 0.0
    """In the budget's currency."""
    tool_calls: int = 0
    seconds: float = 0.0
    """Seconds since the first run began."""


class Budget:
    """Limits the usage of one run, or of several together: pass the same object to each.

    A run that exceeds it is cancelled, and so are the others that share it, in any agent or thread;
    their results raise `BudgetExceeded`. A run that already has its result keeps it. Reaching a limit
    exactly does not exceed it, but a run that begins there is refused, as it could use nothing; this does not
    apply to tool calls, as the run may need none.

    Tokens and cost count when the agent reports them: some report them during a turn, others at its end, some
    never. Reports after the end of a turn do not count.

    Args:
        max_tokens: Input and output tokens in total. During a turn, the size of the model's context counts as
            input (ACP, ``usage_update.used``); at its end, the agent's own figure.
        max_cost: Money, in `currency`. Amounts in another currency do not count.
        max_tool_calls: Calls of any tools, the agent's own and yours, but not of ``return_result``.
        max_seconds: Seconds since the first run with this budget began.
        currency: ISO 4217 code.

    Raises:
        TypeError: A limit is not a number.
        ValueError: A limit is negative, or you gave none.
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
            _check_limit(what, limit)
        self.currency: str = currency.upper()
        self._tokens = 0
        self._cost = 0.0
        self._tool_calls = 0
        self._began: float | None = None
        self._foreign: set[str] = set()
        self._meters: set[Meter] = set()
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        spent = self.spent
        used = ", ".join(f"{getattr(spent, what):g}/{limit:g} {what}" for what, limit in self._limits.items())
        return f"<Budget {used}>"

    @property
    def spent(self) -> Spent:
        """The usage so far."""
        return Spent(
            tokens=self._tokens, cost=self._cost, tool_calls=self._tool_calls, seconds=self._seconds()
        )

    def _seconds(self) -> float:
        # Not the event loop's clock: each has its own.
        return 0.0 if self._began is None else max(0.0, time.monotonic() - self._began)

    def exceeded(self, *, wants_more: bool = False) -> BudgetExceeded | None:
        """Return the error for an exceeded limit, or ``None``.

        Args:
            wants_more: Whether a limit that is reached exactly counts as exceeded.
        """
        spent = self.spent
        for what, limit in self._limits.items():
            used: float = getattr(spent, what)
            if used > limit or (wants_more and used >= limit and what != "tool_calls"):
                return BudgetExceeded(what, limit, used)
        return None

    @contextmanager
    def shared_by(self, meter: Meter) -> Generator[float | None]:
        """Include a run during a block, which gets the seconds left of the time limit."""
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
        """Return the error for the exceeded time limit."""
        limit = self._limits["seconds"]
        return BudgetExceeded("seconds", limit, max(limit, self._seconds()))

    def charge(self, *, tokens: int = 0, cost: float = 0.0, tool_calls: int = 0) -> None:
        """Count a run's usage, and stop all runs if it is too much."""
        with self._lock:
            self._tokens = min(self._tokens + tokens, MOST)
            self._cost = round(self._cost + cost, DIGITS)
            self._tool_calls += tool_calls
            error = self.exceeded()
            meters = tuple(self._meters)
        if error is not None:
            for meter in meters:
                meter.stop(copy.copy(error))  # a copy for each: they are raised in several tasks

    def foreign(self, currency: str) -> None:
        """Warn that cost in another currency cannot be counted, once."""
        with self._lock:
            known = currency in self._foreign
            self._foreign.add(currency)
        if not known:
            logger.warning(
                "An agent reports cost in %.20r, and the budget is in %s: it does not count",
                currency,
                self.currency,
            )


class Meter:
    """Counts one run's usage of its budget.

    Args:
        budget: The budget.
        stop: Ends the run. It is called in the thread that makes the meter.
    """

    def __init__(self, budget: Budget, stop: Callable[[Exception], None]) -> None:
        self.budget = budget
        self._stop = stop
        self._thread = threading.get_ident()
        self._loop = current_token()
        self._error: BudgetExceeded | None = None
        self._noticed = anyio.Event()
        self._cost: float | None = None
        """The part of the session's cost that is counted, or belongs to earlier runs; ``None``: unknown."""
        self._cost_heard = False
        self._context = 0
        """Tokens that are charged for the current turn."""

    async def watch(self, seconds: float | None) -> None:
        """Stop the run when the time is over, or when a run in another thread has exceeded the budget.

        Args:
            seconds: The remaining time; ``None``: unlimited.
        """
        with anyio.move_on_after(seconds):
            await self._noticed.wait()
        self._stop(self._error or self.budget.run_out())

    def stop(self, error: BudgetExceeded) -> None:
        """End the run, at once in its own thread, and soon in another."""
        if threading.get_ident() == self._thread:
            self._stop(error)
            return
        self._error = error
        with suppress(RuntimeError):  # that event loop has ended
            _call_soon(self._loop, self._noticed.set)

    # Tool calls

    def tool_call(self, more: int = 1) -> None:
        """Count a call, or subtract one that the agent has shown and that turns out to be of a tool of ours.

        Args:
            more: 1, or -1 to subtract it. Some agents show only later whose tool it is.
        """
        self.budget.charge(tool_calls=more)

    # Cost: an agent reports the session's cost so far (ACP, usage_update)

    def begin(self, cost_before: float | None) -> None:
        """Begin to count cost.

        Args:
            cost_before: The session's cost before; ``None`` if unknown.
        """
        self._cost = cost_before

    def cost(self, amount: float, currency: str) -> None:
        """Count the session's cost so far: the increase belongs to this run."""
        if currency.upper() != self.budget.currency:
            self.budget.foreign(currency)
            return
        known = self._cost
        if known is None:
            known = amount
        elif amount < known and not self._cost_heard:
            known = 0.0  # this agent counts from zero again in each turn
        self._cost_heard = True
        self._cost = max(known, amount)  # a lower amount is a correction, not a credit
        self.budget.charge(cost=self._cost - known)

    # Tokens

    def context(self, tokens: int) -> None:
        """Count the size of the model's context: the turn has used at least that much."""
        if tokens > self._context:
            self.budget.charge(tokens=tokens - self._context)
            self._context = tokens

    def end_turn(self, tokens: int) -> None:
        """Count the tokens of a turn that has ended, as the agent reports them; 0 if it does not."""
        more = max(0, tokens - self._context)
        self._context = 0
        self.budget.charge(tokens=more)


def _check_limit(what: str, limit: object) -> None:
    if not isinstance(limit, int | float) or isinstance(limit, bool):
        raise TypeError(f"Budget(max_{what}={limit!r:.100}): it must be a number")
    if not limit >= 0:  # also refuses NaN
        raise ValueError(f"Budget(max_{what}={limit}): it must not be negative")


def _call_soon(loop: EventLoopToken, function: Callable[[], object]) -> None:
    """Call a function in another thread's event loop without waiting for it; anyio's own way would wait."""
    native: Any = loop.native_token
    if hasattr(native, "run_sync_soon"):  # trio
        native.run_sync_soon(function)
    else:
        native.call_soon_threadsafe(function)


class IdleClock:
    """Measures the agent's silence. It stops while something else is waited for.

    Args:
        now: The time, in seconds.
        last_update: When the agent sent its last update, by the same clock.
    """

    def __init__(self, now: Callable[[], float], last_update: Callable[[], float]) -> None:
        self._now = now
        self._last_update = last_update
        self._reset_at = now()
        self._held = 0

    def reset(self) -> None:
        """Restart the clock after a sign of life other than an update."""
        self._reset_at = self._now()

    @contextmanager
    def held(self) -> Generator[None]:
        """Stop during a block."""
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1
            self.reset()

    async def watch(self, limit: float, busy: Callable[[], bool], warn: Callable[[float], None]) -> None:
        """Return when the agent has been silent for too long.

        Args:
            limit: Seconds of silence.
            busy: Whether the agent has a reason to be silent, such as a tool that runs.
            warn: Called at half of the limit, once for each silence.
        """
        warned_of: float | None = None
        while True:
            if self._held or busy():
                self.reset()
            since = max(self._reset_at, self._last_update())
            idle = self._now() - since
            if idle >= limit:
                return
            if idle >= limit * STALLED_SHARE and warned_of != since:
                warned_of = since
                warn(idle)
            until = limit if warned_of == since else limit * STALLED_SHARE
            wake_at = self._now() + max(until - idle, LEAST_SLEEP)
            await anyio.sleep(wake_at - self._now())
            if self._now() - wake_at > max(limit * LATE_SHARE, LATE_LEAST):
                self.reset()
