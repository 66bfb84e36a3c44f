"""``thinkwell demo``: what a new user types first."""

from pathlib import Path
from typing import Annotated

import typer

from thinkwell.cli._errors import told
from thinkwell.cli._options import RecordOption, StyleOption, VerboseOption
from thinkwell.cli._terminal import How, Style


def demo(
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="FOLDER",
            help="What to look at; by default this folder.",
            exists=True,
            file_okay=False,
            resolve_path=True,
        ),
    ] = None,
    record: RecordOption = None,
    style: StyleOption = Style.AUTO,
    verbose: VerboseOption = False,
) -> None:
    """Watch a run: the built-in agent looks at a folder and returns a typed result.

    It needs no key and no network: the agent holds no model. It plans, reads files, thinks aloud and calls
    tools as real ones do, and all that it says is computed from the files.

    \b
    Examples:
      thinkwell demo
      thinkwell demo ../another-project --style lines
      thinkwell demo --record demo.ndjson && thinkwell replay demo.ndjson
    """
    from thinkwell.cli._demonstration import demonstrate

    with told():
        raise typer.Exit(demonstrate(folder or Path.cwd(), How(style=style, verbose=verbose), record))
