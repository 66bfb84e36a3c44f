"""The process of a command: its end by a signal, which leaves no agent behind, and what it says and logs."""

from __future__ import annotations

import logging
import signal
import sys
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final

import anyio

from thinkwell._display.text import clean
from thinkwell._terminal.ctrl_c import signal_received

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

SIGNALS: Final = tuple(
    signal.Signals[name] for name in ("SIGINT", "SIGTERM", "SIGHUP") if name in signal.Signals.__members__
)
"""What asks a program to end. By itself it would leave its agent behind."""

HURRY: Final = 1.0
"""Seconds that an agent gets to leave by itself after a signal; its sender may kill us soon, and
then nothing would end the agent."""


class Ending:
    """What signals do: the first one ends everything in good order, a second one at once."""

    def __init__(self) -> None:
        self.scope = anyio.CancelScope()
        """Around everything that is to end."""
        self.signal: signal.Signals | None = None
        """The signal that has ended it."""
        self._begun = anyio.Event()
        self._hurried = anyio.Event()

    @contextmanager
    def signals(self) -> Generator[None]:
        """Receive signals for the time of a block."""
        with ExitStack() as received:
            for number in SIGNALS:
                received.enter_context(signal_received(number, partial(self.begin, number)))
            yield

    def begin(self, number: signal.Signals) -> None:
        """Know of a signal."""
        if self.signal is None:
            self.signal = number
            self._begun.set()
            self.scope.cancel()
        else:
            self._hurried.set()

    async def hurry(self, kill: Callable[[], None], patience: float = HURRY) -> None:
        """Kill what takes too long to leave.

        Args:
            kill: Kills it.
            patience: Seconds from the first signal until then.
        """
        await self._begun.wait()
        with anyio.move_on_after(patience):
            await self._hurried.wait()
        kill()


def say(text: str) -> None:
    """Write a line to standard error. Where that has no reader any more, the command goes on."""
    with suppress(OSError):
        sys.stderr.write(clean(text.removesuffix("\n") + "\n"))
        sys.stderr.flush()


def silence_logs() -> None:
    """Keep what the library logs off the screen: the command tells it in its own way, or need not."""
    logging.getLogger("thinkwell").addHandler(logging.NullHandler())


class _PlainLines(logging.Formatter):
    """Writes what is logged as errors are told."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as lines of which nothing controls a terminal."""
        return clean(f"{record.levelname.capitalize()}: {super().format(record)}")


HELD: Final = 1000
"""Lines that are held back at most."""


@contextmanager
def log_held(verbose: bool) -> Generator[Callable[[], None]]:
    """Hold back what the library logs while a display draws; write it to standard error at the end.

    Args:
        verbose: Whether there is anything to write. Without it, logging is left as it is.

    Yields:
        Writes what is held by now.
    """
    if not verbose:
        yield lambda: None
        return
    from logging.handlers import MemoryHandler  # it takes milliseconds

    held = MemoryHandler(HELD, flushLevel=logging.CRITICAL + 1, target=_to_stderr())
    logger = logging.getLogger("thinkwell")
    before = logger.level
    logger.addHandler(held)
    logger.setLevel(logging.INFO)
    try:
        yield held.flush
    finally:
        logger.setLevel(before)
        logger.removeHandler(held)
        held.close()


def log_to_stderr(level: int = logging.WARNING, name: str = "thinkwell") -> None:
    """Let what the library logs be read.

    Args:
        level: From which level on.
        name: The logger, where it is that of another library.
    """
    told = logging.getLogger(name)
    told.addHandler(_to_stderr())
    told.setLevel(level)


def _to_stderr() -> logging.Handler:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_PlainLines())
    return handler
