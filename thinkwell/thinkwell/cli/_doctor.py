"""``thinkwell doctor``: ``python -m thinkwell.doctor`` under another name."""

from pathlib import Path
from typing import Annotated

import typer

from thinkwell.cli._options import agent_argument


def doctor(
    agents: Annotated[
        list[str] | None,
        agent_argument(
            "Such as claude, or claude@latest; it is installed where it is not there. By default the one "
            "that the environment names, else the built-in one."
        ),
    ] = None,
    command: Annotated[
        str | None,
        typer.Option("--command", metavar="LINE", help="The command of any other agent, or of AGENT."),
    ] = None,
    all_: Annotated[
        bool, typer.Option("--all", help="Every known agent that is there; installs nothing.")
    ] = False,
    cwd: Annotated[
        Path | None, typer.Option("--cwd", metavar="DIR", help="The folder to work in; by default this one.")
    ] = None,
    mcp: Annotated[
        Path | None,
        typer.Option("--mcp", metavar="FILE", help="MCP servers to hand over, such as .mcp.json."),
    ] = None,
    timeout: Annotated[
        str | None,
        typer.Option(
            "--timeout",
            metavar="S",
            help="Seconds until an agent has answered its first request, or an MCP server its own (60), and "
            "until a session is open (90).",
        ),
    ] = None,
    prompt: Annotated[
        bool,
        typer.Option(
            "--prompt",
            help="Send a prompt that asks for a typed result: only that shows whether an agent works. It "
            "costs one turn of its model.",
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON: an object; an array for several.")
    ] = False,
) -> None:
    """Check agents, step by step: whether they are there, start, want a login, see our tools.

    Without --prompt, no tokens are spent. What is wrong comes with what to type next.

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
