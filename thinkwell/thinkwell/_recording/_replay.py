"""`replay`: a recorded run, as the stream that it was."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeVar, cast, overload

if TYPE_CHECKING:
    import os

    from pydantic import TypeAdapter

    from thinkwell import events as ev
    from thinkwell._core.log.run_log import Buffer
    from thinkwell._core.log.stream import ThoughtStream
    from thinkwell._core.schema.output import JsonSchema

__all__ = ("check_speed", "replay")

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

    Nothing runs in the background. What has happened by now follows from the clock, so any number of readers
    see the same at the same time.

    Args:
        path: A file that ``open_agent(record=…)`` has written.
        output: The type of the result, as it was given to `think`. Without it, the result is the JSON value
            that the agent gave, or the text.
        run: Which one, where the file holds several: ``run-1``.
        speed: 1: as fast as it was; 2: twice as fast; 0: all of it is there at once. Any other than 0 needs
            a running event loop.
        include: The kinds of events to keep; by default those that the run kept.
        buffer: A bound for the events, as of `ThinkBuilder.stream`. Without it all are there, also those that
            the run's own buffer has merged or dropped.

    Raises:
        RecordingError: The file is no recording, or holds no such run.
        OSError: The file cannot be read.
        TypeError: The output type cannot be used, or the run's result is no value but a text.
        ValueError: The speed is no number from 0 on, or there is no such kind of event.
        RuntimeError: No event loop runs, and the speed is not 0.
    """
    check_speed(speed, "replay")
    from thinkwell._recording._replay_run import replayed  # a reader of recordings, for those who need it

    return replayed(path, output, run=run, speed=speed, include=include, buffer=buffer)


def check_speed(speed: float, caller: str) -> None:
    """Check a speed.

    Raises:
        TypeError: It is no number.
        ValueError: It is none from 0 on.
    """
    message = f"{caller}(speed={speed!r:.100}): give a number from 0 on; 0 is as fast as it goes"
    if not isinstance(cast("object", speed), int | float) or isinstance(speed, bool):
        raise TypeError(message)
    if not 0 <= speed < math.inf:
        raise ValueError(message)
