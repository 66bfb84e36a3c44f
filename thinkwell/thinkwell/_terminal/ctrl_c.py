"""Signals from the keyboard, mainly Ctrl-C: once cancels, twice kills."""

from __future__ import annotations

import signal
import sys
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Generator


class CtrlC:
    """The effect of Ctrl-C on runs.

    The first one cancels. The second one kills, and restores the program's own handling: a third one has the
    effect that it would have without us.

    Args:
        cancel: Called with the first one.
        kill: Called with the second one.
    """

    def __init__(self, cancel: Callable[[], None], kill: Callable[[], None]) -> None:
        self._cancel = cancel
        self._kill = kill
        self._receiver = ExitStack()
        self.presses = 0
        """The number of presses."""

    def press(self) -> None:
        """Handle a Ctrl-C that was received in another way. Call it in the event loop."""
        self.presses += 1
        if self.presses == 1:
            self._cancel()
            return
        self.release()
        self._kill()

    @contextmanager
    def received(self) -> Generator[bool]:
        """Receive Ctrl-C during a block, or until `release`; yields whether that is possible.

        It is not in other threads than the main one, if the program ignores Ctrl-C, or if something other
        than Python receives it. Then nothing changes.
        """
        with self._receiver:
            yield self._receiver.enter_context(signal_received(signal.SIGINT, self.press))

    def release(self) -> None:
        """Restore the program's own handling of Ctrl-C."""
        self._receiver.close()


@contextmanager
def signal_received(number: signal.Signals, function: Callable[[], None]) -> Generator[bool]:
    """Call a function in the event loop when a signal comes, during a block; yields whether it will.

    The handler before is restored afterwards.
    """
    call_soon = _call_soon()
    before = signal.getsignal(number)
    if before is None or before is signal.SIG_IGN:
        yield False
        return
    try:
        # Not with the event loop: asyncio's has one receiver, and forgets the one before.
        signal.signal(number, lambda _number, _frame: call_soon(function))
    except ValueError:  # this is not the main thread
        yield False
        return
    try:
        yield True
    finally:
        signal.signal(number, before)


def _call_soon() -> Callable[[Callable[[], None]], object]:
    """Return a function that calls another in the running event loop and wakes it, even from a signal."""
    if "trio" in sys.modules:  # otherwise trio is not running, and may not be installed
        import trio

        if trio.lowlevel.in_trio_run():
            return trio.lowlevel.current_trio_token().run_sync_soon
    import asyncio

    return asyncio.get_running_loop().call_soon_threadsafe
