"""The tasks while runs are shown: drawing, questions, signals of the keyboard."""

from __future__ import annotations

import signal
import sys
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Final, NoReturn

import anyio

from thinkwell._core.exit import background_tasks
from thinkwell._terminal.ctrl_c import signal_received
from thinkwell._terminal.output import in_background
from thinkwell._terminal.shared import SharedTerminal
from thinkwell.progress._asking import Asking

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from typing import TextIO

    from thinkwell._terminal.keyboard import Keyboard
    from thinkwell.progress._drawing import Drawing

STOP_TIMEOUT: Final = 0.5
"""Seconds that a display gets to leave the terminal when Ctrl-Z is pressed."""

FOREGROUND_INTERVAL: Final = 0.5
"""Seconds between checks whether a stopped program is in the foreground again."""


@asynccontextmanager
async def showing(
    drawing: Drawing,
    out: TextIO,
    *,
    keyboard: Keyboard | None = None,
    ctrl_c: bool = False,
    picks: bool = False,
) -> AsyncGenerator[None]:
    """Show runs during a block.

    Args:
        drawing: Draws them.
        out: The file to draw to.
        keyboard: Reads answers to questions; ``None``: the user is not asked. It is closed at the end.
        ctrl_c: Whether Ctrl-C is received.
        picks: Whether the display is redrawn, so that it can show a list from which a value is picked.
    """
    asking = None if keyboard is None else Asking(drawing, keyboard, out, picks=picks)
    async with background_tasks() as tasks:
        with ExitStack() as signals:
            if ctrl_c:
                signals.enter_context(drawing.ctrl_c.received())
            if sys.platform != "win32" and out.isatty() and not isinstance(out, SharedTerminal):
                stops = Stops(drawing, asking)

                def receive(number: signal.Signals) -> None:
                    stop = signal_received(number, lambda: tasks.start_soon(stops.stop, number))
                    signals.enter_context(stop)

                receive(signal.SIGTSTP)
                for number in (signal.SIGTERM, signal.SIGHUP):
                    if signal.getsignal(number) is signal.SIG_DFL:
                        receive(number)
            tasks.start_soon(_attend, drawing, asking)
            try:
                yield
            finally:
                with anyio.CancelScope(shield=True):  # bounded
                    await drawing.leave()


async def _attend(drawing: Drawing, asking: Asking | None) -> None:
    """Draw, and ask, until all runs have ended; then draw the end."""
    async with anyio.create_task_group() as group:
        drawing.watch(group)
        if asking is not None:
            group.start_soon(_ask, asking, drawing)
        await drawing.until_over()
        group.cancel_scope.cancel()
    await drawing.finish()


async def _ask(asking: Asking, drawing: Drawing) -> None:
    """Ask; a failure ends the drawing, and nothing else."""
    try:
        await asking.run()
    except Exception as exc:
        await drawing.painter.do(partial(_fail, exc))


def _fail(error: Exception) -> NoReturn:
    raise error


if sys.platform != "win32":  # pragma: no branch - the tests run on POSIX

    class Stops:
        """Restores the terminal before a signal stops the program, as Ctrl-Z does, or ends it."""

        def __init__(self, drawing: Drawing, asking: Asking | None) -> None:
            self._drawing = drawing
            self._asking = asking
            self._stopped = False

        async def stop(self, number: signal.Signals) -> None:
            """Stop or end, as the signal does by default; return when in the foreground again."""
            pressed_again = self._stopped and number == signal.SIGTSTP
            if pressed_again:  # pragma: no cover - before it has stopped
                return
            self._stopped = True
            if self._asking is not None:  # pragma: no branch - else the same with less to do
                self._asking.step_back()
            async with self._drawing.away(timeout=STOP_TIMEOUT):
                before = signal.signal(number, signal.SIG_DFL)
                signal.raise_signal(number)
                signal.signal(number, before)
                while in_background():  # noqa: ASYNC110 - nothing would tell
                    await anyio.sleep(FOREGROUND_INTERVAL)
                if self._asking is not None:  # pragma: no branch - as above
                    self._asking.step_forward()
            self._stopped = False
