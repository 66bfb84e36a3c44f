"""The queue for a session: first come, first served."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from types import TracebackType


class Turns:
    """The queue for a session. A lock would not work: tasks get to it in any order."""

    def __init__(self) -> None:
        self._queue: deque[anyio.Event] = deque()

    def ask(self, *others: Turns) -> Ticket:
        """Return a place in the queue. As ``async with``, it waits for the session and gives it back.

        Args:
            others: Queues for other necessary resources. All of them must be requested at once, as here, so
                that no two tasks wait for each other.
        """
        return Ticket((self, *others))

    def join(self) -> anyio.Event:
        """Take a place in the queue, and return an event that is set when it is the first."""
        called = anyio.Event()
        self._queue.append(called)
        self._call()
        return called

    def leave(self, called: anyio.Event) -> None:
        """Give up a place in the queue, wherever it is."""
        self._queue.remove(called)
        self._call()

    def _call(self) -> None:
        if self._queue:
            self._queue[0].set()


class Ticket:
    """A place in several queues. It must be entered at some time, or the places after it get no turn."""

    def __init__(self, queues: tuple[Turns, ...]) -> None:
        self._places = [(queue, queue.join()) for queue in queues]

    async def __aenter__(self) -> None:
        try:
            for _, called in self._places:
                await called.wait()
        except BaseException:
            self._leave()
            raise

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._leave()

    def _leave(self) -> None:
        for queue, called in self._places:
            queue.leave(called)
