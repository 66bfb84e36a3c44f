"""`replay`: a recorded run, for callers who block."""

from __future__ import annotations

import weakref
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from thinkwell._recording import _replay
from thinkwell.sync._loop import hold
from thinkwell.sync._stream import ThoughtStream

if TYPE_CHECKING:
    import os
    from contextlib import AbstractAsyncContextManager

    from pydantic import TypeAdapter

    from thinkwell import Buffer
    from thinkwell import ThoughtStream as AsyncThoughtStream
    from thinkwell import events as ev
    from thinkwell._core.schema.output import JsonSchema

T = TypeVar("T")


@overload
def replay(
    path: str | os.PathLike[str],
    output: type[T] | TypeAdapter[T],
    /,
    *,
    run: str | None = None,
    speed: float = 1,
    include: ev.Include | None = None,
    buffer: Buffer | None = None,
) -> ThoughtStream[T]: ...
@overload
def replay(
    path: str | os.PathLike[str],
    output: JsonSchema | None = None,
    /,
    *,
    run: str | None = None,
    speed: float = 1,
    include: ev.Include | None = None,
    buffer: Buffer | None = None,
) -> ThoughtStream[ev.JsonValue]: ...


def replay(
    path: str | os.PathLike[str],
    output: object = None,
    /,
    *,
    run: str | None = None,
    speed: float = 1,
    include: ev.Include | None = None,
    buffer: Buffer | None = None,
) -> ThoughtStream[ev.JsonValue]:
    """Return a recorded run as a stream, without an agent: the same events, the same result.

    Args:
        path: A file written by ``open_agent(record=…)``.
        output: The type of the result, as passed to `think`. Without it, the result is the JSON value
            or the text that the agent returned.
        run: The run to replay, if the file has several, such as ``run-1``.
        speed: 1 for the original speed, 2 for twice as fast, 0 for everything at once.
        include: The kinds of events to keep; by default those that the run kept.
        buffer: Limits the events, as in `ThinkBuilder.stream`. Without it you get all, including those that
            the run's own buffer merged or dropped.

    Raises:
        RecordingError: The file is not a recording, or does not have that run.
        OSError: The file cannot be read.
        TypeError: The output type cannot be used, or the run's result is a text and not a value.
        ValueError: The speed is not a number from 0 on, or `include` names an unknown kind of event.
    """

    def replayed() -> AbstractAsyncContextManager[AsyncThoughtStream[ev.JsonValue]]:
        stream = _replay.replay(
            path, cast("type[Any]", output), run=run, speed=speed, include=include, buffer=buffer
        )
        return nullcontext(stream)

    held, replaying = hold(replayed)
    stream = ThoughtStream(held.loop, replaying, held)
    # Its clock is the loop's, which runs as long as anybody can read it.
    weakref.finalize(stream, held.leave).atexit = False
    return stream
