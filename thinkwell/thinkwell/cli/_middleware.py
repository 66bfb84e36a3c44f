"""``thinkwell middleware``: an agent for a host that knows only lines."""

from pathlib import Path
from typing import Annotated

import typer

from thinkwell.cli._completing import agent_names
from thinkwell.cli._errors import told
from thinkwell.cli._options import CommandOption, CwdOption, RecordOption


def middleware(
    agent: Annotated[
        str | None,
        typer.Argument(
            metavar="AGENT",
            help="Which agent; by default the one that the environment names, else the built-in one.",
            autocompletion=agent_names,
        ),
    ] = None,
    command: CommandOption = None,
    schema: Annotated[
        Path | None,
        typer.Option("--schema", metavar="FILE", help="Every result is JSON that fits this JSON Schema."),
    ] = None,
    cwd: CwdOption = None,
    permissions: Annotated[
        str | None,
        typer.Option(
            "--permissions",
            "-p",
            metavar="RULE",
            help="What the agent may do when it asks: deny, ask, allow, or a TOML file of rules. By default "
            "ask: the host decides.",
        ),
    ] = None,
    timeout: Annotated[
        float | None, typer.Option("--timeout", metavar="S", help="Seconds that each prompt may take.")
    ] = None,
    record: RecordOption = None,
) -> None:
    """Let a host that knows only lines drive an agent: one JSON object a line, with a type.

    The host writes prompts to standard input, one a line, and reads messages from standard output: progress,
    partial, log, question, approval, and one result or error for each prompt. A question and an approval
    have an id, and wait for a line with their answer. What is told to people goes to standard error.

    At the end of standard input the prompts that were read are finished, and what is still asked is declined.

    \b
    What the host writes: if it likes, first an init; then prompts, and answers
      {"type":"init","params":{"cwd":"src"}}
      Review parser.py\\nBe brief.
      {"prompt":"Review parser.py","context":{"branch":"main"}}
      {"type":"response","in_reply_to":"approval","value":true,"id":"q1"}

    \b
    Examples:
      thinkwell middleware claude --cwd ../api
      thinkwell middleware codex < prompts.txt > messages.ndjson

    \b
    Exit codes:
      0    standard input has ended, and the last prompt has its result
      1    it has ended, and the last prompt has none
      2    wrong usage, also in the init
      3    the agent was not found, did not start, died or reported an error
      4    the agent wants a login: thinkwell login
      5    the last prompt took too long
      130  Ctrl-C
      141  the host has stopped reading
      143  SIGTERM
    """
    with told():
        from thinkwell.cli._serving import read_serving, run_serving

        serving = read_serving(
            agent=agent,
            command=command,
            schema=schema,
            cwd=cwd,
            permissions=permissions,
            timeout=timeout,
            record=record,
        )
        raise typer.Exit(run_serving(serving))
