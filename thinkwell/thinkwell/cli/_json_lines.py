"""``--json``: the events of a run, one a line, and what it came to as the last."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, TypeVar, cast

import anyio.to_thread

from thinkwell.cli._errors import words
from thinkwell.cli._output import HIDDEN, escaped, result_json
from thinkwell.errors import ThinkwellError
from thinkwell.events import event_to_json
from thinkwell.progress._output import direct

if TYPE_CHECKING:
    from collections.abc import Callable

    from thinkwell import ThoughtStream
    from thinkwell._log import EventReader

T = TypeVar("T")


async def print_events(stream: ThoughtStream[T], output: object, run: str | None = None) -> None:
    """Write the events of a run to standard output as they come, then its result or its error.

    Args:
        stream: The run.
        output: What its result is of.
        run: What to call it, where there are several: each line begins with that.

    Raises:
        BrokenPipeError: Nobody reads any more.
        ThinkwellError: The run's own error, after it was written.
    """
    begin = "" if run is None else f'"run":{json.dumps(run)},'
    write = _writer()
    reader = cast("EventReader", stream.events(include="all"))
    while events := await reader.batch():
        lines = [f"{{{begin}{event_to_json(event).decode()[1:]}\n" for event in events]
        # Whoever reads slowly holds up nothing but what is written.
        await anyio.to_thread.run_sync(write, "".join(lines), abandon_on_cancel=True)
    try:
        value = await stream.result
    except ThinkwellError as exc:
        what, advice = words(exc)
        told = {"type": type(exc).__name__, "message": what, "next": advice}
        write(f'{{{begin}"type":"error","error":{json.dumps(told, ensure_ascii=False)}}}\n')
        raise
    write(f'{{{begin}"type":"result","value":{result_json(value, output)}}}\n')


def _writer() -> Callable[[str], None]:
    out = direct(sys.stdout)

    def write(text: str) -> None:
        out.write(HIDDEN.sub(escaped, text))
        out.flush()

    return write
