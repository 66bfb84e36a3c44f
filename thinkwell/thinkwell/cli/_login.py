"""``thinkwell login``: log in to an agent."""

from typing import Annotated

import typer

from thinkwell.cli._completing import agent_names
from thinkwell.cli._errors import told
from thinkwell.cli._options import CommandOption, CwdOption


def login(
    agent: Annotated[
        str | None,
        typer.Argument(
            metavar="AGENT",
            help="Which agent; by default the one that the environment names.",
            autocompletion=agent_names,
        ),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option("--method", metavar="ID", help="The way to log in, where the agent offers several."),
    ] = None,
    command: CommandOption = None,
    cwd: CwdOption = None,
) -> None:
    """Log in to an agent by a way that it offers, and check that it opens a session then.

    Where it offers several, you are asked which one to go; without a terminal they are listed.

    \b
    Examples:
      thinkwell login claude
      thinkwell login codex --method chat-gpt
      thinkwell login --command "my-agent --acp"
    """
    with told():
        from thinkwell.cli._logging_in import log_in

        raise typer.Exit(log_in(agent, method, command, cwd))
