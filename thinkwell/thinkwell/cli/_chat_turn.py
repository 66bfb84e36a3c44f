"""A turn of a chat, shown until its end."""

from __future__ import annotations

from concurrent.futures import CancelledError
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from thinkwell.progress import Live
from thinkwell.sync._loop import wait

if TYPE_CHECKING:
    from thinkwell.cli._terminal import Style
    from thinkwell.sync import ThoughtStream

__all__ = ("show_turn",)

KILLED: Final = 2
"""How often Ctrl-C is pressed until the agent is killed. Once more, and nothing is waited for."""


def show_turn(stream: ThoughtStream[str], style: Style, *, verbose: bool) -> bool:
    """Show a turn until its end, and return whether the agent was killed.

    It is drawn in the thread of the event loop, and Ctrl-C comes here, in the main thread.
    """
    entered: list[Live] = []

    async def shown() -> None:
        async with Live(stream._stream, style=style.value, verbose=verbose, result=False) as live:
            entered.append(live)
            await stream._stream.wait()

    drawn = stream._loop.submit(shown)
    presses = 0
    while True:
        try:
            stream.wait()
            with suppress(CancelledError):
                wait(drawn)  # Ctrl-C ends it
        except KeyboardInterrupt:
            presses += 1
            if presses > KILLED:  # pragma: no cover - only where the agent cannot be killed
                return True
            _press(stream, entered, presses)
        else:
            return presses >= KILLED


def _press(stream: ThoughtStream[str], entered: list[Live], presses: int) -> None:
    if entered:
        stream._loop.ask(entered[0].press_ctrl_c)
    elif presses < KILLED:  # pragma: no cover - in the moment before the first frame
        stream.cancel()
    else:  # pragma: no cover
        stream.kill()
