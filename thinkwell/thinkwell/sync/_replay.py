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
    output: None = None,
    /,
    *,
    run: str | None = None,
    speed: float = 1,
    include: ev.Include | None = None,
    buffer: Buffer | None = None,
) -> ThoughtStream[ev.JsonValue]: ...
@overload
def replay(
    path: str | os.PathLike[str],
    output: type[T],
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
    output: TypeAdapter[T],
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
    output: JsonSchema,
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
        path: A file that ``open_agent(record=…)`` has written.
        output: The type of the result, as it was given to `think`. Without it, the result is the JSON value
            that the agent gave, or the text.
        run: Which one, where the file holds several: ``run-1``.
        speed: 1: as fast as it was; 2: twice as fast; 0: all of it is there at once.
        include: The kinds of events to keep; by default those that the run kept.
        buffer: A bound for the events, as of `ThinkBuilder.stream`. Without it all are there, also those that
            the run's own buffer has merged or dropped.

    Raises:
        RecordingError: The file is no recording, or holds no such run.
        OSError: The file cannot be read.
        TypeError: The output type cannot be used, or the run's result is no value but a text.
        ValueError: The speed is no number from 0 on, or there is no such kind of event.
    """

    def replayed() -> AbstractAsyncContextManager[AsyncThoughtStream[ev.JsonValue]]:
        stream = _replay.replay(
            path, cast("type[Any]", output), run=run, speed=speed, include=include, buffer=buffer
        )
        return nullcontext(stream)

    held, replaying = hold(replayed)
    stream = ThoughtStream(held.loop, replaying, held)
    # Its clock is the loop's, which goes on as long as anybody can look at it.
    weakref.finalize(stream, held.leave).atexit = False
    return stream
