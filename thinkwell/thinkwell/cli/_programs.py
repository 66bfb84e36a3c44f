"""``thinkwell agents`` and ``thinkwell doctor``: ``python -m thinkwell.agents`` and ``.doctor``, renamed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from thinkwell.cli._options import HELP_OPTIONS, CwdOption, How, JsonOption, McpOption, agent_argument
from thinkwell.cli._process import silence_logs

if TYPE_CHECKING:
    from thinkwell import OptionChoice
    from thinkwell.agents import AgentProfile
    from thinkwell.agents.program import FindModels

PROG = "thinkwell agents"

agents = typer.Typer(
    name="agents", add_completion=False, rich_markup_mode=None, context_settings=HELP_OPTIONS
)


@agents.callback(invoke_without_command=True)
def list_agents(context: typer.Context, as_json: JsonOption = False) -> None:
    """List the agents that you can use by name, with their commands.

    \b
    Examples:
      thinkwell agents                all of them, and which are installed
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

    Its command, its version, its quirks, and the files they come from. If it is installed, it is started and
    asked for its models, which costs no tokens.
    """
    silence_logs()
    _run(["show", "--", name], as_json=as_json, find_models=partial(_find_models, How(as_json=as_json)))


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


async def _find_models(how: How, profile: AgentProfile) -> Sequence[OptionChoice] | str:
    """Start an agent, and return its models; or the reason why they are unknown, in one clean line."""
    from thinkwell import OptionChoice, ThinkwellError, open_agent
    from thinkwell._display.text import line
    from thinkwell.cli._launch import launched

    try:
        async with launched(profile.name, how, partial(open_agent, profile)) as agent:
            async with agent.session() as session:
                models, session_id = session.models, session.id
            if agent.capabilities.session_capabilities.delete is not None:
                await agent.delete_session(session_id)
    except ThinkwellError as exc:
        return line(str(exc).partition("\n")[0])
    return [OptionChoice(value=line(model.value), name=line(model.name)) for model in models]


def _run(arguments: Sequence[str], *, as_json: bool = False, find_models: FindModels | None = None) -> None:
    from thinkwell.agents.program import main  # a program, imported only to run it

    flags = ["--json"] if as_json else []
    raise typer.Exit(main([arguments[0], *flags, *arguments[1:]], prog=PROG, find_models=find_models))


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
    from thinkwell.doctor.program import main  # a program, which is imported only to be run

    given = {"--command": command, "--cwd": cwd, "--mcp": mcp, "--timeout": timeout}
    arguments = [f"{name}={value}" for name, value in given.items() if value is not None]
    arguments += [
        name for name, wanted in (("--all", all_), ("--prompt", prompt), ("--json", as_json)) if wanted
    ]
    raise typer.Exit(main([*arguments, "--", *(agents or [])], prog="thinkwell doctor"))
