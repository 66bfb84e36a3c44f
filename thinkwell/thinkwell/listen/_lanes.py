"""Messages that wait for their handlers: a lane for each type, in which they are handled in their order."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final

import anyio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from thinkwell import events as ev
    from thinkwell.events import JsonValue
    from thinkwell.listen._handlers import Registered
    from thinkwell.questions import Answer, Question
    from thinkwell_acp._tasks import BackgroundTasks


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
        """Whether nobody waits for its answer any more."""
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
    """The messages of one type."""

    def __init__(self, handler: Registered) -> None:
        self.handler: Final = handler
        self._waiting: list[tuple[int, Job]] = []
        self._running = 0
        self._last: anyio.Event | None = None

    @property
    def busy(self) -> bool:
        """Whether anything waits or is being handled."""
        return bool(self._waiting or self._running)

    def put(self, rank: int, job: Job) -> None:
        """Let a message wait for those of lower rank."""
        heappush(self._waiting, (rank, job))
        # Only ids tell a host's answers apart; without them it goes by their order.
        if job.report is not None and "id" not in job.report.body:
            job.before, self._last = self._last, job.settled

    def next(self) -> Job | None:
        """Begin with the next message, where one may begin."""
        while self._waiting and self._running < self.handler.concurrency:
            _, job = heappop(self._waiting)
            if not job.dropped:
                self._running += 1
                return job
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
        self._lanes = {type_: Lane(handler) for type_, handler in handlers.items()}
        self._work = work
        self._wake = anyio.Event()
        self._idle = anyio.Event()
        self._rank = 0

    def __contains__(self, type_: str) -> bool:
        return type_ in self._lanes

    def rank(self) -> int:
        """Return a place behind all that were given."""
        self._rank += 1
        return self._rank

    def put(self, type_: str, job: Job, rank: int | None = None) -> None:
        """Have a message handled. Never waits."""
        self._lanes[type_].put(self.rank() if rank is None else rank, job)
        self._wake.set()

    async def serve(self, tasks: BackgroundTasks) -> None:
        """Begin with each message as soon as it may begin, in a task of its own; until cancelled.

        The tasks have the context variables of whoever called this.
        """
        while True:
            self._wake = anyio.Event()
            for lane in self._lanes.values():
                while (job := lane.next()) is not None:
                    tasks.start_soon(self._run, lane, job)
            if not any(lane.busy for lane in self._lanes.values()):
                self._idle.set()
            await self._wake.wait()

    async def drained(self) -> None:
        """Wait until nothing waits and nothing is being handled. Somebody has to serve."""
        self._idle = anyio.Event()
        self._wake.set()
        await self._idle.wait()

    async def _run(self, lane: Lane, job: Job) -> None:
        try:
            await self._work(lane.handler, job)
            job.settled.set()  # not where it was cancelled: that it has no answer is no answer
        finally:
            lane.ended()
            self._wake.set()
