"""``thinkwell run``: one task, its result on standard output."""

from pathlib import Path
from typing import Annotated

import typer

from thinkwell.cli._errors import told
from thinkwell.cli._options import (
    AgentOption,
    CommandOption,
    CwdOption,
    PermissionsOption,
    ProtocolOption,
    QuietOption,
    RecordOption,
    Spoken,
    StyleOption,
    VerboseOption,
)
from thinkwell.cli._terminal import How, Style


def run(
    prompt: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PROMPT",
            show_default=False,
            help="What to do. Without it, standard input is the prompt; beside it, `-` adds standard input "
            "as what the prompt is about.",
        ),
    ] = None,
    agent: AgentOption = None,
    command: CommandOption = None,
    protocol: ProtocolOption = Spoken.ACP,
    schema: Annotated[
        Path | None,
        typer.Option("--schema", metavar="FILE", help="The result is JSON that fits this JSON Schema."),
    ] = None,
    type_: Annotated[
        str | None,
        typer.Option(
            "--type",
            metavar="MODULE:NAME",
            help="The result is JSON of this Python type: a pydantic model, a dataclass, builtins:int, …",
        ),
    ] = None,
    files: Annotated[
        list[Path] | None,
        typer.Option(
            "--file",
            "-f",
            metavar="FILE",
            help="Show the agent a file or an image. May be given several times.",
            exists=True,
            dir_okay=False,
            show_default=False,
        ),
    ] = None,
    cwd: CwdOption = None,
    permissions: PermissionsOption = None,
    mcp: Annotated[
        Path | None, typer.Option("--mcp", metavar="FILE", help="MCP servers for the agent, as in .mcp.json.")
    ] = None,
    record: RecordOption = None,
    timeout: Annotated[
        float | None, typer.Option("--timeout", metavar="S", help="Seconds that the run may take.")
    ] = None,
    idle_timeout: Annotated[
        float | None,
        typer.Option("--idle-timeout", metavar="S", help="Seconds that the agent may be silent."),
    ] = None,
    max_cost: Annotated[
        float | None,
        typer.Option("--max-cost", metavar="USD", help="Dollars that the run may cost, if the agent tells."),
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option("--max-tokens", metavar="N", help="Tokens that the run may use, if the agent tells."),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print every event as a line of JSON; the last one is the result."),
    ] = False,
    style: StyleOption = Style.AUTO,
    verbose: VerboseOption = False,
    quiet: QuietOption = False,
) -> None:
    """Let an agent do one task. Its result goes to standard output, progress to standard error.

    Without --schema or --type, the result is the text of the agent's last message. With one of them it is
    JSON that was checked: the agent is told what is wrong with it, and tries again.

    \b
    Examples:
      thinkwell run "What does this project do?"
      thinkwell run -a claude -p allow "Fix the failing test"
      git diff | thinkwell run "Review this change" - > review.txt
      thinkwell run --file report.py "Say in three lines what it does"
      thinkwell run --type models:Review "Review src" | jq .score
      thinkwell run --schema todo.json --quiet < prompt.txt

    Ctrl-C cancels the run, a second one kills the agent. Nothing is left running.

    \b
    Exit codes:
      0    the result is on standard output
      1    the run ended without a valid result: none, invalid, refused
      2    wrong usage; nothing was started
      3    the agent was not found, did not start, died or reported an error
      4    the agent wants a login: thinkwell login
      5    a limit was reached: time, silence, cost, tokens
      130  Ctrl-C
      141  the reader of the output has stopped
    """
    from thinkwell.cli._task import read_task, run_task

    with told():
        how = How(as_json=as_json, quiet=quiet, verbose=verbose, style=style)
        task = read_task(
            words=prompt or [],
            agent=agent,
            command=command,
            protocol=protocol,
            schema=schema,
            type_=type_,
            files=files or [],
            cwd=cwd,
            permissions=permissions,
            mcp=mcp,
            record=record,
            limits={"timeout": timeout, "idle_timeout": idle_timeout},
            budget={"max_cost": max_cost, "max_tokens": max_tokens},
            how=how,
        )
        raise typer.Exit(run_task(task, how))
