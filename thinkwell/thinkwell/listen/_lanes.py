"""Messages that wait for their handlers in their order: all types in one lane, or a type in its own."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final

import anyio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from thinkwell import events as ev
    from thinkwell._core.exit import BackgroundTasks
    from thinkwell.events import JsonValue
    from thinkwell.listen._registered import Registered
    from thinkwell.questions import Answer, Question


class Job:
    """A message that is to be handled."""

    def __init__(
        self,
        fields: dict[str, JsonValue],
        *,
        question: Question | None = None,
        report: ev.Report | None = None,
    ) -> None:
        self.fields: Final = fields
        self.question: Final = question
        """What is asked by it."""
        self.report: Final = report
        """The line that it is, where it can be answered and is no question."""
        self.scope: Final = anyio.CancelScope()
        """Around its handler."""
        self.dropped = False
        """Whether its answer is not waited for any more."""
        self.answer: Answer | None = None
        self.settled: Final = anyio.Event()
        """Set where it has been handled."""
        self.before: anyio.Event | None = None
        """Set where the answer of the message before it is out, where they must not change places."""

    def drop(self) -> None:
        """Do not handle it, or stop doing so."""
        self.dropped = True
        self.scope.cancel()


class Lane:
    """Messages that are handled in their order, so many at once."""

    def __init__(self, width: int) -> None:
        self.kept: Final = set[int]()
        """Ranks of messages that are yet to come: those of higher rank wait for them."""
        self._width = width
        self._waiting: list[tuple[int, Registered, Job]] = []
        self._running = 0
        self._last: anyio.Event | None = None

    @property
    def busy(self) -> bool:
        """Whether anything waits or is being handled."""
        return bool(self._waiting or self._running)

    def put(self, rank: int, handler: Registered, job: Job) -> None:
        """Let a message wait for those of lower rank."""
        self.kept.discard(rank)
        heappush(self._waiting, (rank, handler, job))
        # Only ids tell a host's answers apart; without them it goes by their order.
        if job.report is not None and "id" not in job.report.body:
            job.before, self._last = self._last, job.settled

    def next(self) -> tuple[Registered, Job] | None:
        """Begin with the next message, where one may begin."""
        while self._waiting and self._running < self._width:
            if self.kept and min(self.kept) < self._waiting[0][0]:
                break
            _, handler, job = heappop(self._waiting)
            if not job.dropped:
                self._running += 1
                return handler, job
        return None

    def ended(self) -> None:
        """Be done with a message."""
        self._running -= 1


class Lanes:
    """All messages of one listen.

    Args:
        handlers: The handlers by the types of their messages.
        work: Handles a message. It raises nothing but cancellations.
    """

    def __init__(
        self, handlers: Mapping[str, Registered], work: Callable[[Registered, Job], Awaitable[None]]
    ) -> None:
        in_order = Lane(1)
        self._handlers = dict(handlers)
        self._lanes = {
            type_: in_order if handler.concurrency is None else Lane(handler.concurrency)
            for type_, handler in handlers.items()
        }
        self._work = work
        self._wake = anyio.Event()
        self._idle = anyio.Event()
        self._rank = 0

    def __contains__(self, type_: str) -> bool:
        return type_ in self._lanes

    def keep(self, type_: str) -> int:
        """Return a place behind all that were given, for a message that is yet to come."""
        self._rank += 1
        self._lanes[type_].kept.add(self._rank)
        return self._rank

    def give_up(self, type_: str, rank: int) -> None:
        """Keep a place no longer."""
        self._lanes[type_].kept.discard(rank)
        self._wake.set()

    def put(self, type_: str, job: Job, rank: int | None = None) -> None:
        """Have a message handled, at the place that was kept for it, or behind all others. Never waits."""
        rank = self.keep(type_) if rank is None else rank
        self._lanes[type_].put(rank, self._handlers[type_], job)
        self._wake.set()

    async def serve(self, tasks: BackgroundTasks) -> None:
        """Begin with each message as soon as it may begin, in a task of its own; until cancelled.

        The tasks have the context variables of the caller.
        """
        lanes = frozenset(self._lanes.values())
        while True:
            self._wake = anyio.Event()
            for lane in lanes:
                while (found := lane.next()) is not None:
                    tasks.start_soon(self._run, lane, *found)
            if not any(lane.busy for lane in lanes):
                self._idle.set()
            await self._wake.wait()

    async def drained(self) -> None:
        """Wait until nothing waits and nothing is being handled. `serve` has to run."""
        self._idle = anyio.Event()
        self._wake.set()
        await self._idle.wait()

    async def _run(self, lane: Lane, handler: Registered, job: Job) -> None:
        try:
            await self._work(handler, job)
            job.settled.set()  # not where it was cancelled: that it has no answer is no answer
        finally:
            lane.ended()
            self._wake.set()
