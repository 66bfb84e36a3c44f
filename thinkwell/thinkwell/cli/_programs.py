"""``thinkwell agents`` and ``thinkwell doctor``: ``python -m thinkwell.agents`` and ``.doctor``, renamed."""

from collections.abc import Sequence
from typing import Annotated

import typer

from thinkwell.cli._options import HELP_OPTIONS, CwdOption, JsonOption, McpOption, agent_argument

PROG = "thinkwell agents"

agents = typer.Typer(
    name="agents", add_completion=False, rich_markup_mode=None, context_settings=HELP_OPTIONS
)


@agents.callback(invoke_without_command=True)
def list_agents(context: typer.Context, as_json: JsonOption = False) -> None:
    """List the agents that you can use by name, with their commands.

    \b
    Examples:
      thinkwell agents                all of them
      thinkwell agents show claude    everything known about one, and its source
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
    """Show everything known about one agent.

    Its command, its version, its quirks, and the files they come from.
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

    Reports what is new in it.
    """
    _run(["update", *([] if source is None else ["--", source])])


def _run(arguments: Sequence[str], *, as_json: bool = False) -> None:
    from thinkwell.agents.__main__ import main  # a program, which is imported only to be run

    flags = ["--json"] if as_json else []
    raise typer.Exit(main([arguments[0], *flags, *arguments[1:]], prog=PROG))


def doctor(
    agents: Annotated[
        list[str] | None,
        agent_argument(
            "Such as claude, or claude@latest; installed if missing. Default: from the environment, else "
            "the built-in one."
        ),
    ] = None,
    command: Annotated[
        str | None,
        typer.Option("--command", metavar="LINE", help="The command of any other agent, or of AGENT."),
    ] = None,
    all_: Annotated[
        bool, typer.Option("--all", help="All known agents on this machine; installs nothing.")
    ] = False,
    cwd: CwdOption = None,
    mcp: McpOption = None,
    timeout: Annotated[
        str | None,
        typer.Option(
            "--timeout",
            metavar="S",
            help="Seconds for an agent or an MCP server to answer its first request (60), and for a session "
            "to open (90).",
        ),
    ] = None,
    prompt: Annotated[
        bool,
        typer.Option(
            "--prompt",
            help="Send a prompt for a typed result: only this shows whether an agent works. Costs one turn "
            "of its model.",
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON: an object; an array for several.")
    ] = False,
) -> None:
    """Check agents step by step: whether they are installed, start, want a login, and fetch tools.

    Without --prompt, no tokens are spent. Each problem comes with a command to type next.

    \b
    Examples:
      thinkwell doctor                      the built-in agent
      thinkwell doctor claude codex         these two
      thinkwell doctor --all                every agent that is on this machine
      thinkwell doctor claude --mcp .mcp.json
      thinkwell doctor claude --prompt      does it work? one turn of its model
      thinkwell doctor --command "my-agent --acp" --json

    \b
    Exit codes:
      0    no check failed
      1    a check failed
      2    wrong usage; nothing was started
      3    an agent wants a login, and nothing else is wrong
      130  Ctrl-C
    """
    from thinkwell.doctor.__main__ import main  # a program, which is imported only to be run

    given = {"--command": command, "--cwd": cwd, "--mcp": mcp, "--timeout": timeout}
    arguments = [f"{name}={value}" for name, value in given.items() if value is not None]
    arguments += [
        name for name, wanted in (("--all", all_), ("--prompt", prompt), ("--json", as_json)) if wanted
    ]
    raise typer.Exit(main([*arguments, "--", *(agents or [])], prog="thinkwell doctor"))
