"""``thinkwell demo``: the first command for a new user."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import anyio
import typer
from pydantic import BaseModel, Field

from thinkwell import open_agent
from thinkwell.cli._errors import OK, told
from thinkwell.cli._launch import launched
from thinkwell.cli._options import How, RecordOption, Style, StyleOption, VerboseOption
from thinkwell.cli._process import log_held

PROMPT: Final = "Review this project."

NEXT: Final = """
That was the built-in agent, which is not a model. Next, try a real one:

  thinkwell agents                                  list the known agents
  thinkwell doctor claude                           check one on this machine
  thinkwell run -a claude "Explain this project"    run one task
  thinkwell new my-project                          start your own program
"""


class Review(BaseModel):
    """The result that the agent returns."""

    title: str
    summary: str
    score: Annotated[int, Field(ge=0, le=10, description="how good the code is")]
    suggestions: Annotated[list[str], Field(max_length=3)]


def demo(
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="FOLDER",
            help="The folder to look at. Default: the current one.",
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

    It needs no key and no network, because the agent is not a model. It plans, reads files, thinks aloud and
    calls tools like real agents, and computes everything it says from the files.

    \b
    Examples:
      thinkwell demo
      thinkwell demo ../another-project --style lines
      thinkwell demo --record demo.ndjson && thinkwell replay demo.ndjson
    """
    with told():
        how = How(style=style, verbose=verbose)
        opening = partial(open_agent, "builtin", cwd=folder or Path.cwd(), record=record)
        from thinkwell.cli._progress import finish

        async def work() -> int:
            with log_held(verbose):
                async with launched("builtin", how, opening) as agent:
                    return await finish(agent.think(Review).text(PROMPT).stream(), how, Review)

        code = anyio.run(work)
        if code == OK:
            sys.stderr.write(NEXT)
        raise typer.Exit(code)
