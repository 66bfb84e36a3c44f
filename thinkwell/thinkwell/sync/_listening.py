"""`listen`: handlers for a run that has been started, for callers who block."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final, TypeVar

from thinkwell.listen import listen as async_listen

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from thinkwell.listen import Handlers
    from thinkwell.sync._stream import ThoughtStream

T = TypeVar("T")

HANDLERS_GRACE: Final = 5.0
"""Seconds that handlers get to end by themselves after Ctrl-C."""


def listen(stream: ThoughtStream[T], handlers: Handlers, *, timeout: float | None = None) -> T:
    """Listen to a run that has been started, and return its result; see `thinkwell.listen.listen`.

    Handlers that are not ``async`` may block. Ctrl-C cancels the run; twice kills the agent.

    Args:
        stream: The run.
        handlers: Who is told, and asked.
        timeout: Seconds that all of it may take from now on, the handlers included.

    Raises:
        ThoughtTimeout: It has taken longer.
        RuntimeError: The run has a listener already.
        TypeError: An argument is of another type.
        ValueError: The timeout is not positive; or a handler is to decide approvals, and
            ``permissions="deny"`` was said.
        Exception: All that `ThinkBuilder.listen` raises.
    """
    return hear(stream, lambda: async_listen(stream._stream, handlers, timeout=timeout))


def hear(stream: ThoughtStream[T], listening: Callable[[], Awaitable[T]]) -> T:
    """Wait for a listen; whatever ends the wait before its time ends the run."""
    over = threading.Event()
    over.set()  # as long as it has not begun

    async def hearing() -> T:
        over.clear()
        try:
            return await listening()
        finally:
            over.set()

    try:
        return stream._loop.call(hearing)
    except BaseException:
        stream._end()  # it has ended, unless this was Ctrl-C, or what a signal handler raises
        over.wait(HANDLERS_GRACE)
        raise
