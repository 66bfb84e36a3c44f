"""Who has a session, and who waits for it: first asked, first served."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from types import TracebackType


class Turns:
    """The queue for a session. A lock would not do: tasks get to it in any order."""

    def __init__(self) -> None:
        self._queue: deque[Ticket] = deque()

    def ask(self) -> Ticket:
        """Return a place in the queue; ``async with`` it waits for the session and gives it back."""
        ticket = Ticket(self)
        self._queue.append(ticket)
        self._call()
        return ticket

    def leave(self, ticket: Ticket) -> None:
        """Take a ticket out of the queue, wherever it is."""
        self._queue.remove(ticket)
        self._call()

    def _call(self) -> None:
        if self._queue:
            self._queue[0].called.set()


class Ticket:
    """A place in the queue. It must be entered at some time, or nobody behind it gets the session."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self.called = anyio.Event()

    async def __aenter__(self) -> None:
        try:
            await self.called.wait()
        except BaseException:
            self._turns.leave(self)
            raise

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._turns.leave(self)
