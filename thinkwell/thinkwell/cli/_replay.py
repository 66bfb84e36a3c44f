"""``thinkwell replay``: a recording, shown again."""

from pathlib import Path
from typing import Annotated

import typer

from thinkwell.cli._errors import told
from thinkwell.cli._options import QuietOption, StyleOption, VerboseOption
from thinkwell.cli._terminal import How, Style


def replay(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="What --record or open_agent(record=…) has written.",
            exists=True,
            dir_okay=False,
        ),
    ],
    run: Annotated[
        str | None,
        typer.Option("--run", metavar="ID", help="Only this run, such as run-2; by default all, in order."),
    ] = None,
    speed: Annotated[
        float,
        typer.Option(
            "--speed", metavar="N", help="How many times as fast as it was; 0: at once.", show_default=True
        ),
    ] = 1,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print every event as a line of JSON; the last one is the result."),
    ] = False,
    style: StyleOption = Style.AUTO,
    verbose: VerboseOption = False,
    quiet: QuietOption = False,
) -> None:
    """Show a recorded run again, without its agent: the same progress, the same result.

    The exit code is that of the recorded run, as `thinkwell run` would have had it; where several runs were
    recorded, the first that is not 0. A file that cannot be read, or is cut, ends with 6.

    \b
    Examples:
      thinkwell run "Review src" --record run.ndjson
      thinkwell replay run.ndjson               as fast as it was
      thinkwell replay run.ndjson --speed 10
      thinkwell replay run.ndjson --speed 0 --json | jq -r .type
      thinkwell replay run.ndjson --run run-2 --quiet
    """
    from thinkwell.cli._replaying import replay_file

    with told():
        how = How(as_json=as_json, quiet=quiet, verbose=verbose, style=style)
        raise typer.Exit(replay_file(file, how, run=run, speed=speed))
