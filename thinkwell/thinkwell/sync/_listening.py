"""`listen`: handlers for a run that has been started, for callers who block."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from thinkwell.listen import listen as async_listen

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from thinkwell.listen import Handlers
    from thinkwell.sync._stream import ThoughtStream

T = TypeVar("T")


def listen(stream: ThoughtStream[T], handlers: Handlers, *, timeout: float | None = None) -> T:
    """Listen to a run that has been started, and return its result; see `thinkwell.listen.listen`.

    Handlers that are not ``async`` may block. Ctrl-C cancels the run; twice kills the agent.

    Args:
        stream: The run.
        handlers: Who is told, and asked.
        timeout: Seconds that all of it may take from now on, the handlers included.

    Raises:
        ThoughtTimeout: It has taken longer.
        RuntimeError: Somebody listens to the run already.
        TypeError: An argument is of another type.
        ValueError: The timeout is not positive; or a handler is to decide approvals, and
            ``permissions="deny"`` was said.
        Exception: All that `ThinkBuilder.listen` raises.
    """
    return hear(stream, lambda: async_listen(stream._stream, handlers, timeout=timeout))


def hear(stream: ThoughtStream[T], listening: Callable[[], Awaitable[T]]) -> T:
    """Wait for a listen; whatever ends the wait before its time ends the run."""
    try:
        return stream._loop.call(listening)
    except BaseException:
        if not stream.done():  # what was raised is not the run's: Ctrl-C, or a signal handler's
            stream._end()
        raise
