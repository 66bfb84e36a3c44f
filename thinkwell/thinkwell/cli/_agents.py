"""``thinkwell agents``: ``python -m thinkwell.agents`` under another name."""

from collections.abc import Sequence
from typing import Annotated

import typer

from thinkwell.cli._options import HELP_OPTIONS, JsonOption, agent_argument

PROG = "thinkwell agents"

agents = typer.Typer(
    name="agents", add_completion=False, rich_markup_mode=None, context_settings=HELP_OPTIONS
)


@agents.callback(invoke_without_command=True)
def list_agents(context: typer.Context, as_json: JsonOption = False) -> None:
    """Show which agents can be used by name, and with what they are started.

    \b
    Examples:
      thinkwell agents                all of them
      thinkwell agents show claude    what is known of one, and where it stands
      thinkwell agents update         fetch the public registry of agents
    """
    if context.invoked_subcommand is None:
        _run(["list"], as_json=as_json)
    if as_json:
        raise typer.BadParameter(f"give it behind {context.invoked_subcommand}", param_hint="--json")


@agents.command("list")
def list_them(as_json: JsonOption = False) -> None:
    """The same as `thinkwell agents`."""
    _run(["list"], as_json=as_json)


@agents.command("show")
def show_agent(
    name: Annotated[str, agent_argument("Such as claude, or claude@latest.", metavar="NAME")],
    as_json: JsonOption = False,
) -> None:
    """Show all that is known of one agent.

    Its command, its version, its quirks, and the files that say so.
    """
    _run(["show", "--", name], as_json=as_json)


@agents.command("update")
def update_agents(
    source: Annotated[
        str | None,
        typer.Argument(metavar="SOURCE", help="A file or an address, instead of the official one."),
    ] = None,
) -> None:
    """Fetch the public registry of agents.

    Says what is new in it.
    """
    _run(["update", *([] if source is None else ["--", source])])


def _run(arguments: Sequence[str], *, as_json: bool = False) -> None:
    from thinkwell.agents.__main__ import main  # a program, which is imported only to be run

    flags = ["--json"] if as_json else []
    raise typer.Exit(main([arguments[0], *flags, *arguments[1:]], prog=PROG))
