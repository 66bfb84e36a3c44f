"""`replay`: a recorded run as a stream."""

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

    Nothing runs in the background. The clock decides which events have happened, so all readers
    see the same at the same time.

    Args:
        path: A file written by ``open_agent(record=…)``.
        output: The type of the result, as passed to `think`. Without it, the result is the JSON value
            or the text that the agent returned.
        run: The run to replay, if the file has several, such as ``run-1``.
        speed: 1 for the original speed, 2 for twice as fast, 0 for everything at once. Any value but 0 needs
            a running event loop.
        include: The kinds of events to keep; by default those that the run kept.
        buffer: Limits the events, as in `ThinkBuilder.stream`. Without it you get all, including those that
            the run's own buffer merged or dropped.

    Raises:
        RecordingError: The file is not a recording, or does not have that run.
        OSError: The file cannot be read.
        TypeError: The output type cannot be used, or the run's result is a text and not a value.
        ValueError: The speed is not a number from 0 on, or `include` names an unknown kind of event.
        RuntimeError: No event loop is running, and the speed is not 0.
    """
    check_speed(speed, "replay")
    from thinkwell._recording._replay_run import replayed  # imports the reader of recordings

    return replayed(path, output, run=run, speed=speed, include=include, buffer=buffer)


def check_speed(speed: float, caller: str) -> None:
    """Check a speed.

    Raises:
        TypeError: It is not a number.
        ValueError: It is negative.
    """
    message = f"{caller}(speed={speed!r:.100}): give a number from 0 on; 0 is as fast as it goes"
    if not isinstance(cast("object", speed), int | float) or isinstance(speed, bool):
        raise TypeError(message)
    if not 0 <= speed < math.inf:
        raise ValueError(message)
