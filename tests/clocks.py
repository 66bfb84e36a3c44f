"""Event loops whose time goes by faster, for waits beside which there are processes."""

from __future__ import annotations

import asyncio
import selectors
from functools import partial
from typing import TYPE_CHECKING

from trio.testing import MockClock

if TYPE_CHECKING:
    from thinkwell.testing import Backend

__all__ = ("fast_backend",)


class _FastSelector(selectors.DefaultSelector):
    """Waits a fraction of the time that it is given."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self._rate = rate

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready: list[tuple[selectors.SelectorKey, int]] = super().select(timeout and timeout / self._rate)
        return ready


class _FastLoop(asyncio.SelectorEventLoop):
    """An event loop of asyncio with such a clock, as `trio.testing.MockClock` is for trio."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        super().__init__(_FastSelector(rate))

    def time(self) -> float:
        return super().time() * self._rate


def fast_backend(name: str, rate: float) -> Backend:
    """Return an event loop on which `rate` seconds take one."""
    if name == "asyncio":
        return name, {"loop_factory": partial(_FastLoop, rate)}
    return name, {"clock": MockClock(rate=rate)}
