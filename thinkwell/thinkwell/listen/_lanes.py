"""Queues of messages for their handlers: all types in one lane, or a type in its own."""

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
    """A message for a handler."""

    def __init__(
        self,
        fields: dict[str, JsonValue],
        *,
        question: Question | None = None,
        report: ev.Report | None = None,
    ) -> None:
        self.fields: Final = fields
        self.question: Final = question
        """The question in it, if any."""
        self.report: Final = report
        """The agent's line, if it can be answered and is not a question."""
        self.scope: Final = anyio.CancelScope()
        """Around its handler."""
        self.dropped = False
        """Whether its answer is no longer needed."""
        self.answer: Answer | None = None
        self.settled: Final = anyio.Event()
        """Set when it has been handled."""
        self.before: anyio.Event | None = None
        """Set when the message before it is answered, if the answers must keep their order."""

    def drop(self) -> None:
        """Do not handle it, or stop."""
        self.dropped = True
        self.scope.cancel()


class Lane:
    """Messages that are handled in order, so many at once."""

    def __init__(self, width: int) -> None:
        self.kept: Final = set[int]()
        """Ranks of messages that are still to come: those of higher rank wait for them."""
        self._width = width
        self._waiting: list[tuple[int, Registered, Job]] = []
        self._running = 0
        self._last: anyio.Event | None = None

    @property
    def busy(self) -> bool:
        """Whether a message waits or is being handled."""
        return bool(self._waiting or self._running)

    def put(self, rank: int, handler: Registered, job: Job) -> None:
        """Let a message wait for those of lower rank."""
        self.kept.discard(rank)
        heappush(self._waiting, (rank, handler, job))
        # A host's answers without ids are matched by their order.
        if job.report is not None and "id" not in job.report.body:
            job.before, self._last = self._last, job.settled

    def next(self) -> tuple[Registered, Job] | None:
        """Start the next message, if one may start."""
        while self._waiting and self._running < self._width:
            if self.kept and min(self.kept) < self._waiting[0][0]:
                break
            _, handler, job = heappop(self._waiting)
            if not job.dropped:
                self._running += 1
                return handler, job
        return None

    def ended(self) -> None:
        """End a message."""
        self._running -= 1


class Lanes:
    """All messages of one listen.

    Args:
        handlers: The handlers by the types of their messages.
        work: Handles a message. It raises only cancellations.
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
        """Reserve a place after all others, for a message that is still to come."""
        self._rank += 1
        self._lanes[type_].kept.add(self._rank)
        return self._rank

    def give_up(self, type_: str, rank: int) -> None:
        """Give a reserved place up."""
        self._lanes[type_].kept.discard(rank)
        self._wake.set()

    def put(self, type_: str, job: Job, rank: int | None = None) -> None:
        """Queue a message, at its reserved place or after all others. Never waits."""
        rank = self.keep(type_) if rank is None else rank
        self._lanes[type_].put(rank, self._handlers[type_], job)
        self._wake.set()

    async def serve(self, tasks: BackgroundTasks) -> None:
        """Start each message as soon as possible, in a separate task; until cancelled.

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
        """Wait until no message waits or is being handled. `serve` must be running."""
        self._idle = anyio.Event()
        self._wake.set()
        await self._idle.wait()

    async def _run(self, lane: Lane, handler: Registered, job: Job) -> None:
        try:
            await self._work(handler, job)
            job.settled.set()  # not if it was cancelled: it then has no answer
        finally:
            lane.ended()
            self._wake.set()
