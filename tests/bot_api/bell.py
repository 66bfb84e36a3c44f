"""Waking tasks up, on whatever event loop they wait."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

import anyio
from anyio.lowlevel import EventLoopToken, current_token

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("Bell",)


class Bell:
    """Wakes all that wait, at once. It may be rung from any thread, and whoever rings does not wait."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[anyio.Event, EventLoopToken] = {}

    def ring(self) -> None:
        """Wake all that wait now."""
        with self._lock:
            waiting, self._waiting = self._waiting, {}
        try:
            here: object = current_token().native_token
        except anyio.NoEventLoopError:
            here = None
        for event, token in waiting.items():
            if token.native_token is here:
                event.set()
            else:
                _call(token.native_token, event.set)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition holds, which is looked at now and each time that the bell rings."""
        while True:
            event = anyio.Event()
            with self._lock:
                self._waiting[event] = current_token()
            try:
                if condition():
                    return
                await event.wait()
            finally:
                with self._lock:
                    self._waiting.pop(event, None)


def _call(loop: object, function: Callable[[], None]) -> None:
    """Call a function in the event loop of another thread, soon; not where it has ended meanwhile."""
    with suppress(RuntimeError):  # trio.RunFinishedError is one
        if isinstance(loop, asyncio.AbstractEventLoop):
            loop.call_soon_threadsafe(function)
        else:
            import trio

            assert isinstance(loop, trio.lowlevel.TrioToken)
            loop.run_sync_soon(function)
