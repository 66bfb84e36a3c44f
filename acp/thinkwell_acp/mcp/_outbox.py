"""A queue whose sender never waits."""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

import anyio

T = TypeVar("T")


class Outbox(Generic[T]):
    """A queue: one task adds items without waiting, another takes them out in order."""

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self._changed = anyio.Event()
        self._closed = False

    def put(self, item: T) -> None:
        """Add an item. After `close` it is dropped."""
        if not self._closed:
            self._items.append(item)
            self._changed.set()

    def close(self) -> None:
        """Accept no more items. Those inside can still be taken out."""
        self._closed = True
        self._changed.set()

    async def get(self) -> T:
        """Take out the next item and return it.

        Raises:
            anyio.EndOfStream: The outbox is closed and empty.
        """
        await self.peek()
        return self._items.popleft()

    async def peek(self) -> T:
        """Return the next item and leave it inside.

        Raises:
            anyio.EndOfStream: The outbox is closed and empty.
        """
        while not self._items:
            if self._closed:
                raise anyio.EndOfStream
            self._changed = anyio.Event()
            await self._changed.wait()
        return self._items[0]
