"""`listen`: handlers for a running run, for callers who block."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final, TypeVar

from thinkwell._core.schema.misuse import check_run
from thinkwell.listen import listen as async_listen
from thinkwell.sync._stream import ThoughtStream

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from thinkwell.listen import Handlers

T = TypeVar("T")

HANDLERS_GRACE: Final = 5.0
"""Seconds that handlers get to end by themselves after Ctrl-C."""


def listen(stream: ThoughtStream[T], handlers: Handlers, *, timeout: float | None = None) -> T:
    """Listen to a run that has started, and return its result; see `thinkwell.listen.listen`.

    Handlers that are not ``async`` may block. Ctrl-C cancels the run; a second one kills the agent.

    Args:
        stream: The run.
        handlers: They receive the agent's messages, and answer its questions.
        timeout: Seconds for the rest of the run, including the handlers.

    Raises:
        ThoughtTimeout: The run took longer.
        RuntimeError: The run already has a listener.
        TypeError: An argument has the wrong type.
        ValueError: The timeout is not positive; or a handler decides approvals, but
            ``permissions="deny"`` forbids that.
        Exception: Everything that `ThinkBuilder.listen` raises.
    """
    check_run(stream, "listen({}, handlers)", ThoughtStream)
    return hear(stream, lambda: async_listen(stream._stream, handlers, timeout=timeout))


def hear(stream: ThoughtStream[T], listening: Callable[[], Awaitable[T]]) -> T:
    """Wait for a listener; whatever ends the wait early ends the run."""
    over = threading.Event()
    over.set()  # unless it has begun

    async def hearing() -> T:
        over.clear()
        try:
            return await listening()
        finally:
            over.set()

    try:
        return stream._loop.call(hearing)
    except BaseException:
        stream._end()  # no effect unless this was Ctrl-C, or an exception from a signal handler
        over.wait(HANDLERS_GRACE)
        raise
