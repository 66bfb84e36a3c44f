"""The process of a command: its end by a signal, which leaves no agent behind, its output and its log."""

from __future__ import annotations

import logging
import signal
import sys
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final, ParamSpec

import anyio

from thinkwell._display.text import clean
from thinkwell._terminal.ctrl_c import signal_received

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator
    from contextlib import AbstractAsyncContextManager

    from thinkwell import Agent

P = ParamSpec("P")

SIGNALS: Final = tuple(
    signal.Signals[name] for name in ("SIGINT", "SIGTERM", "SIGHUP") if name in signal.Signals.__members__
)
"""Signals that ask a program to end. By default they would leave its agent behind."""

HURRY: Final = 1.0
"""Seconds that an agent gets to leave by itself after a signal. The sender may kill us soon, and then
nothing would end the agent."""


class Ending:
    """Handles signals: the first one ends everything in good order, a second one at once."""

    def __init__(self) -> None:
        self.scope = anyio.CancelScope()
        """The scope around everything that has to end."""
        self.signal: signal.Signals | None = None
        """The signal that ended it."""
        self._agents: set[Agent] = set()
        self._begun = anyio.Event()
        self._hurried = anyio.Event()

    @contextmanager
    def signals(self) -> Generator[None]:
        """Receive signals during a block."""
        with ExitStack() as received:
            for number in SIGNALS:
                received.enter_context(signal_received(number, partial(self.begin, number)))
            yield

    def begin(self, number: signal.Signals) -> None:
        """Note a signal."""
        if self.signal is None:
            self.signal = number
            self._begun.set()
            self.scope.cancel()
        else:
            self._hurried.set()

    @property
    def exit_code(self) -> int:
        """The exit code after the signal, as in shells; 0 without one."""
        return 0 if self.signal is None else 128 + self.signal

    def counting(
        self, opening: Callable[P, AbstractAsyncContextManager[Agent]]
    ) -> Callable[P, AbstractAsyncContextManager[Agent]]:
        """Return a function that opens an agent, too, but one that `kill` kills."""

        @asynccontextmanager
        async def counted(*args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[Agent]:
            async with opening(*args, **kwargs) as agent:
                self._agents.add(agent)
                try:
                    yield agent
                finally:
                    self._agents.discard(agent)

        return counted

    def kill(self) -> None:
        """Kill the counted agents."""
        for agent in self._agents:
            agent.kill()

    async def hurry(self, kill: Callable[[], None], patience: float = HURRY) -> None:
        """Kill an object that takes too long to close.

        Args:
            kill: Kills it.
            patience: Seconds after the first signal.
        """
        await self._begun.wait()
        with anyio.move_on_after(patience):
            await self._hurried.wait()
        kill()


def say(text: str) -> None:
    """Write a line to standard error. If that has no reader any more, the command continues."""
    with suppress(OSError):
        sys.stderr.write(clean(text.removesuffix("\n") + "\n"))
        sys.stderr.flush()


def silence_logs() -> None:
    """Keep the library's log off the screen: the command reports errors in its own way."""
    logging.getLogger("thinkwell").addHandler(logging.NullHandler())


class _PlainLines(logging.Formatter):
    """Formats log records like error messages."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as lines without control characters."""
        return clean(f"{record.levelname.capitalize()}: {super().format(record)}")


HELD: Final = 1000
"""Most lines that are held back."""


@contextmanager
def log_held(verbose: bool) -> Generator[Callable[[], None]]:
    """Hold back the library's log while a display draws; write it to standard error at the end.

    Args:
        verbose: Whether to write anything. Without it, logging is unchanged.

    Yields:
        A function that writes the held lines.
    """
    if not verbose:
        yield lambda: None
        return
    from logging.handlers import MemoryHandler  # a slow import

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
    """Write the library's log to standard error.

    Args:
        level: The lowest level.
        name: The logger, if it is that of another library.
    """
    told = logging.getLogger(name)
    told.addHandler(_to_stderr())
    told.setLevel(level)


def _to_stderr() -> logging.Handler:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_PlainLines())
    return handler
