"""A call in the loop's thread; other threads wait for its result."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")

WAIT_SLICE: Final = 0.1
"""Seconds after which a wait is restarted: on Windows, Ctrl-C does not interrupt a wait; elsewhere, it does
not interrupt one that begins in the same instant."""


class Call(Generic[T]):
    """A call in the loop's thread.

    You can wait for it even if Ctrl-C may come between any two steps. This is not true of the standard
    library's `Future`: its lock is taken and released in Python code. Ctrl-C may leave it taken, so that the
    loop's thread waits forever, or released too early, which raises `RuntimeError`.
    """

    def __init__(self) -> None:
        self.done: bool = False
        """Whether there is a result, or an error."""
        self.given_up = False
        """Whether every waiter has given up."""
        self.task: asyncio.Task[None] | None = None
        """The task in which it runs. A waiter frees none of the loop's objects."""
        self._gate = threading.Lock()
        self._gate.acquire()
        self._value: list[T] = []
        self._error: BaseException | None = None

    # In the loop

    def set_result(self, value: T) -> None:
        """End it with its result."""
        self._value.append(value)
        self._open()

    def set_exception(self, error: BaseException) -> None:
        """End it with an error."""
        self._error = error
        self._open()

    def _open(self) -> None:
        self.done, self.task = True, None
        self._gate.release()

    # Elsewhere

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end of the call.

        Args:
            timeout: Seconds to wait.

        Returns:
            Whether it ended in time.
        """
        until = None if timeout is None else time.monotonic() + timeout
        while not self.done:
            left = WAIT_SLICE if until is None else min(until - time.monotonic(), WAIT_SLICE)
            if left <= 0:
                return False
            if self._gate.acquire(timeout=left):
                self._gate.release()  # for other waiters
        return True

    def result(self) -> T:
        """Return the result, or raise the error. The call has ended."""
        if self._error is None:
            return self._value[0]
        try:
            raise self._error
        finally:
            del self  # otherwise the error refers to itself through its traceback
