"""``thinkwell new``: a starter project."""

from pathlib import Path
from typing import Annotated

import typer


def new(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Where to make it. What is there already stays.")
    ],
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="What to call it; by default like the folder."),
    ] = None,
) -> None:
    """Make a project to begin with: a small program with a typed result, its test, and what they need.

    Nothing is written over.

    \b
    Examples:
      thinkwell new my-review && cd my-review && uv run my-review .
      thinkwell new . --name my-review        in the folder that is there
    """
    from thinkwell.cli._project import NewProjectError, make_project, next_steps, plan_project

    try:
        project = plan_project(folder, name)
        make_project(project)
    except NewProjectError as exc:
        raise typer.BadParameter(str(exc), param_hint="FOLDER" if name is None else "--name") from exc
    typer.echo(next_steps(project))
