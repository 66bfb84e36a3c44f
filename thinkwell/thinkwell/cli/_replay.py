"""``thinkwell replay``: show a recording again."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import anyio
import typer

from thinkwell import JsonSchema, RecordingCut, RecordingError
from thinkwell import replay as replayed
from thinkwell._recording import _records as rec
from thinkwell._recording._reading import read_recording
from thinkwell._recording._replay import check_speed
from thinkwell.cli._errors import INTERRUPTED, OK, needing, told
from thinkwell.cli._options import (
    EventsOption,
    How,
    QuietOption,
    Style,
    StyleOption,
    VerboseOption,
    file_option,
)


def replay(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A file written by --record or open_agent(record=…).",
            exists=True,
            dir_okay=False,
        ),
    ],
    run: Annotated[
        str | None,
        typer.Option("--run", metavar="ID", help="Only this run, such as run-2. Default: all, in order."),
    ] = None,
    speed: Annotated[
        float,
        typer.Option(
            "--speed", metavar="N", help="1: original speed; 2: twice as fast; 0: at once.", show_default=True
        ),
    ] = 1,
    html: Annotated[
        Path | None, file_option("--html", "Write the run to this file as a web page, instead of showing it.")
    ] = None,
    as_json: EventsOption = False,
    style: StyleOption = Style.AUTO,
    verbose: VerboseOption = False,
    quiet: QuietOption = False,
) -> None:
    """Show a recorded run again, without its agent: the same progress, the same result.

    The exit code is that of the recorded run, as for `thinkwell run`; for several runs, the first that is
    not 0. A file that is unreadable or cut ends with 6.

    \b
    Examples:
      thinkwell run "Review src" --record run.ndjson
      thinkwell replay run.ndjson               as fast as it was
      thinkwell replay run.ndjson --speed 10
      thinkwell replay run.ndjson --speed 0 --json | jq -r .type
      thinkwell replay run.ndjson --run run-2 --quiet
      thinkwell replay run.ndjson --html run.html
    """
    with told():
        how = How(as_json=as_json, quiet=quiet, verbose=verbose, style=style)
        runs = _runs(file, run, speed)
        if html is not None:
            _write_page(file, runs, html)
            if cut := read_recording(file).cut:
                raise RecordingCut(str(file), cut)
            return
        from thinkwell.cli._progress import finish

        async def work() -> int:
            codes: list[int] = []
            for begun in runs:
                stream = replayed(file, run=begun.run, speed=speed, include="all" if as_json else None)
                output = None if begun.text else JsonSchema()
                codes.append(await finish(stream, how, output, run=begun.run if len(runs) > 1 else None))
                if codes[-1] == INTERRUPTED:
                    break  # Ctrl-C: do not show the others
            return next((code for code in codes if code), OK)

        raise typer.Exit(anyio.run(work))


def _runs(file: Path, wanted: str | None, speed: float) -> list[rec.RunBegun]:
    """Return the requested runs of a recording, in order.

    Raises:
        typer.BadParameter: The speed is invalid, or the run does not exist.
        RecordingError: The file cannot be read.
    """
    try:
        check_speed(speed, "replay")
    except ValueError:
        raise typer.BadParameter(f"{speed:g} is not a number from 0 on", param_hint="--speed") from None
    recording = read_recording(file)
    runs = {record.run: record for record in recording.records if isinstance(record, rec.RunBegun)}
    if not runs:
        raise RecordingError(
            str(file), f"no run was begun in it{f': {recording.cut}' if recording.cut else ''}"
        )
    if wanted is not None and wanted not in runs:
        raise typer.BadParameter(f"{file} holds no {wanted!r}, but {', '.join(runs)}", param_hint="--run")
    return [begun for name, begun in runs.items() if wanted in (None, name)]


def _write_page(file: Path, runs: list[rec.RunBegun], target: Path) -> None:
    """Write a run as a page.

    Raises:
        typer.BadParameter: There are several runs, or the file exists.
        RecordingError: The file cannot be read.
        OSError: The page cannot be written.
    """
    if len(runs) > 1:
        names = ", ".join(begun.run for begun in runs)
        raise typer.BadParameter(f"{file} holds several runs ({names}): say which", param_hint="--run")
    with needing("replay --html", {"starlette": "web", "markdown_it": "web", "pygments": "web"}):
        from thinkwell.web import recording_html

    page = anyio.run(partial(recording_html, file, run=runs[0].run))
    try:
        with target.open("x", encoding="utf-8") as written:
            written.write(page)
    except FileExistsError:
        raise typer.BadParameter(f"{target} exists already: give another name", param_hint="--html") from None
    typer.echo(f"Written to {target}", err=True)
