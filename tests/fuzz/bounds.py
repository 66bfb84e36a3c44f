"""What an input may cost: seconds of this process, and bytes in proportion to its size."""

from __future__ import annotations

import signal
import tracemalloc
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Generator

SECONDS: Final = 20.0
"""Time of the processor, not of the clock: other programs do not count, but a slow machine does. Honest work
takes at most a tenth of this; work that grows with the square of the size takes many times as much."""

MEASURED: Final = 2_000
"""Bytes of an input from which on memory is measured, which slows everything down."""

SPARE: Final = 8_000_000
"""Bytes that any input may use."""

FACTOR: Final = 400
"""Bytes for each byte of input. A list in a list takes 2 bytes as text and 64 as a value, and is copied."""


class CostsTooMuch(AssertionError):  # noqa: N818 - says what is the case
    """An input takes more work or memory than its size explains."""


class _TooLong(BaseException):
    """Breaks off what does not end. No handler of ours may catch it."""


class _Watch:
    def __init__(self) -> None:
        self.fired = False

    def fire(self, _number: int, _frame: object) -> None:
        self.fired = True
        raise _TooLong


@contextmanager
def bounded(size: int) -> Generator[None]:
    """Fail when the block takes too much time or memory for an input of this many bytes."""
    watch = _Watch()
    measures = size >= MEASURED
    has_timer = hasattr(signal, "ITIMER_VIRTUAL")  # Windows has none
    before = signal.signal(signal.SIGVTALRM, watch.fire) if has_timer else None
    if has_timer:
        signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    if measures:
        tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1] if measures else 0
        most = SPARE + FACTOR * size
        if peak > most:
            raise CostsTooMuch(f"an input of {size} bytes took {peak:,} bytes of memory, more than {most:,}")
    except BaseException:
        if watch.fired:
            raise CostsTooMuch(f"an input of {size} bytes took more than {SECONDS} s of work") from None
        raise
    finally:
        if has_timer:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            signal.signal(signal.SIGVTALRM, before)
        if measures:
            tracemalloc.stop()
    if watch.fired:
        raise CostsTooMuch(f"an input of {size} bytes took more than {SECONDS} s, and something caught that")
