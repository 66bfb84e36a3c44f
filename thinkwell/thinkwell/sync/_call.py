"""What comes of a call in the loop's thread, for those who wait for it in others."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    import asyncio

__all__ = ("Call",)

T = TypeVar("T")

WAIT_SLICE: Final = 0.1
"""Seconds after which a wait is restarted: Ctrl-C does not interrupt one on Windows, nor anywhere one that
begins in the same instant."""


class Call(Generic[T]):
    """What comes of a call in the loop's thread.

    It can be waited for where Ctrl-C may come between any two steps. A `Future` of the standard library
    cannot: it has a lock that code in Python takes and gives back, so that Ctrl-C may leave it taken, and the
    loop's thread waits for it forever, or given back too early, which is a `RuntimeError`.
    """

    def __init__(self) -> None:
        self.done: bool = False
        """Whether there is a result, or an error."""
        self.given_up = False
        """Whether it is not waited for any more."""
        self.task: asyncio.Task[None] | None = None
        """What it runs in, from its beginning to its end: who waits frees nothing of the loop's."""
        self._gate = threading.Lock()
        self._gate.acquire()
        self._value: list[T] = []
        self._error: BaseException | None = None

    # In the loop

    def set_result(self, value: T) -> None:
        """End it with what it has returned."""
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
        """Wait for its end.

        Args:
            timeout: Seconds to wait.

        Returns:
            Whether it has ended in time.
        """
        until = None if timeout is None else time.monotonic() + timeout
        while not self.done:
            left = WAIT_SLICE if until is None else min(until - time.monotonic(), WAIT_SLICE)
            if left <= 0:
                return False
            if self._gate.acquire(timeout=left):
                self._gate.release()  # for others who wait
        return True

    def result(self) -> T:
        """Return what it has returned, or raise what it has raised. It has ended."""
        if self._error is None:
            return self._value[0]
        try:
            raise self._error
        finally:
            del self  # else the error refers to itself, by its traceback
