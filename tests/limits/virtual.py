"""Time that passes when nothing else can: waits of an hour take no time, on both event loops."""

from __future__ import annotations

import asyncio
import selectors
from typing import Any, Final, TypeAlias

import anyio
from trio.testing import MockClock

Backend: TypeAlias = tuple[str, dict[str, Any]]

FIRST_TIME: Final = 1000.0

FOR_EVER: Final = 24 * 3600.0
"""asyncio waits this long at once for a timer that is never due. Such a wait is for a thread."""

WAIT: Final = 0.01
"""Seconds to wait for a thread, in real time."""

LEAST_STEP: Final = 1e-6
"""Less than that might not be seen on the clock."""


class _JumpingSelector(selectors.SelectSelector):
    """Does not wait for a timer: moves the clock on to it, where no file is ready."""

    def __init__(self) -> None:
        super().__init__()
        self.now = FIRST_TIME

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout >= FOR_EVER:
            return super().select(None if timeout is None else WAIT)
        ready = super().select(0)
        if not ready:
            self.now += max(timeout, LEAST_STEP)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop of asyncio with such a clock, as `MockClock` is for trio."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


def virtual_backend(name: str) -> Backend:
    """Return what an `anyio_backend` fixture has to return for virtual time."""
    options: dict[str, dict[str, Any]] = {
        "asyncio": {"loop_factory": VirtualLoop},
        "trio": {"clock": MockClock(autojump_threshold=0)},
    }
    return name, options[name]


class Stopwatch:
    """Tells how much of such time has passed."""

    def __init__(self) -> None:
        self._began = anyio.current_time()

    @property
    def seconds(self) -> float:
        return round(anyio.current_time() - self._began, 2)
