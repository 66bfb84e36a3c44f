"""Follows a run to its end: progress on standard error, or events on standard output.

Importing the display takes long, and the help and the completion of the shell do not need it: a command
imports this when it runs.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TypeVar, cast

import anyio.to_thread

from thinkwell._display.json_lines import JsonLines
from thinkwell._terminal.ctrl_c import CtrlC
from thinkwell._terminal.output import direct
from thinkwell.cli._errors import INTERRUPTED, OK, exit_code, tell
from thinkwell.cli._options import Style
from thinkwell.cli._output import write_result
from thinkwell.progress import Live

if TYPE_CHECKING:
    from thinkwell import ThoughtStream
    from thinkwell._core.exit import EventReader
    from thinkwell.cli._options import How

T = TypeVar("T")


async def finish(stream: ThoughtStream[T], how: How, output: object = None, *, run: str | None = None) -> int:
    """Follow a run to its end, write its result or its error, and return the exit code.

    If both outputs are one terminal, the display shows the result, and it is not written again.

    Args:
        stream: The run.
        how: How to show it.
        output: The type of its result; ``None`` for text, or JSON unchanged.
        run: Its name in JSON, if there are several.

    Raises:
        BrokenPipeError: The result, or the events, have no reader.
    """
    displayed = False
    pressed: CtrlC | Live = (ctrl_c := CtrlC(stream.cancel, stream.kill))
    if how.as_json:
        with ctrl_c.received():
            await follow_json(stream, JsonLines(direct(sys.stdout)), run)
    elif how.quiet:
        with ctrl_c.received():
            await stream.wait()
    else:
        # In a terminal the end of a display has it, wherever it goes besides; in a log it would stand twice.
        on_display = sys.stderr.isatty() or how.style == Style.LIVE
        live = Live(stream, style=how.style.value, verbose=how.verbose, result=on_display, ctrl_c=True)
        async with live:
            await stream.wait()
        pressed, displayed = live, True
    if (error := stream.result.exception()) is not None:
        if pressed.presses:
            return INTERRUPTED
        tell(error, displayed=displayed)
        return exit_code(error)
    if not (how.as_json or (displayed and _one_terminal())):
        write_result(await stream.result, output)
    return OK


async def follow_json(stream: ThoughtStream[object], lines: JsonLines, run: str | None = None) -> None:
    """Write the events of a run as they come, then its result or its error, which is not raised.

    A slow reader holds up only the writing.

    Args:
        stream: The run. Events that its ``include=`` does not keep are missing.
        lines: The output.
        run: Its name, if there are several.

    Raises:
        OSError: Writing failed; `BrokenPipeError` if there is no reader any more.
    """
    reader = cast("EventReader", stream.events())
    while events := await reader.batch():
        await anyio.to_thread.run_sync(lines.events, events, run, abandon_on_cancel=True)
    await stream.wait()
    error = stream.result.exception()
    if error is not None:
        await anyio.to_thread.run_sync(lines.error, error, run, abandon_on_cancel=True)
    else:
        await anyio.to_thread.run_sync(lines.result, await stream.result, run, abandon_on_cancel=True)


def _one_terminal() -> bool:
    """Return whether both outputs are shown in a terminal."""
    return sys.stderr.isatty() and sys.stdout.isatty()
