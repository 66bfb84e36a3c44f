"""A command with Typer: `python examples/frameworks/typer_command.py FOLDER --least 80`."""

from pathlib import Path
from typing import Annotated

import typer
from pydantic import BaseModel

from thinkwell import ThinkwellError
from thinkwell.sync import open_agent
from thinkwell.sync.progress import show


class Review(BaseModel):
    """What the agent returns."""

    summary: str
    score: int


def review(
    folder: Annotated[Path, typer.Argument(exists=True, file_okay=False)] = Path(),
    least: Annotated[int, typer.Option(help="Fail below this score.")] = 0,
) -> None:
    """Review a folder."""
    try:
        with open_agent(
            cwd=folder
        ) as agent:  # progress goes to standard error, the result to standard output
            task = agent.think(Review).text("Review the files of this folder.")
            found = show(task.stream(timeout=600), result=False)
    except ThinkwellError as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(2) from None
    typer.echo(f"{found.score}: {found.summary}")
    if found.score < least:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(review)
