"""The options of ``thinkwell serve``.

What serves takes long to import, and needs the extra ``web``; it is imported when it begins.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from thinkwell.cli._errors import needing, told
from thinkwell.cli._options import ConfigOption, CwdOption, ModelOption, agent_names, permissions_option

EXTRAS: Final = {"starlette": "web", "uvicorn": "web", "redis": "redis"}
"""What has to be installed for what is missing."""


def serve(
    agent: Annotated[
        list[str] | None,
        typer.Option(
            "--agent",
            "-a",
            metavar="NAME",
            help="An agent that callers may use; several times for several. The first is the default. By "
            "default those of the file, else the one that the environment names, else the built-in one.",
            autocompletion=agent_names,
        ),
    ] = None,
    command: Annotated[
        list[str] | None,
        typer.Option("--command", metavar="LINE", help="The command of any other agent, likewise."),
    ] = None,
    model: ModelOption = None,
    config: ConfigOption = None,
    host: Annotated[
        str | None,
        typer.Option(
            "--host",
            metavar="ADDRESS",
            help="Where to listen. By default 127.0.0.1: this machine alone. Elsewhere it takes a token.",
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            metavar="NUMBER",
            min=0,
            max=65_535,
            help="By default 8283, where Letta clients look for a self-hosted server. 0: any that is free.",
        ),
    ] = None,
    journal: Annotated[
        str | None,
        typer.Option(
            "--journal",
            metavar="WHERE",
            help="Where runs are kept: a file (SQLite), memory, or redis, whose address is in "
            "THINKWELL_SERVE_REDIS. By default a file in your folder for such things.",
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file",
            metavar="FILE",
            help="A file with the token that callers have to give, which only you can read. By default it is "
            "in THINKWELL_SERVE_TOKEN; else a new one is made, and printed.",
        ),
    ] = None,
    cwd: CwdOption = None,
    permissions: Annotated[
        str | None, permissions_option("ask: the caller decides", what="What agents may do when they ask")
    ] = None,
    no_page: Annotated[bool, typer.Option("--no-page", help="Serve no page for people.")] = False,
    no_letta: Annotated[bool, typer.Option("--no-letta", help="Serve nothing for clients of Letta.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Tell of each request.")] = False,
) -> None:
    """Serve runs over HTTP: a page for people, and an API for programs.

    A caller with the token can have the agents work on this machine, within their folders and permissions. By
    default only programs and people on this machine can connect. Runs outlive the server where they are kept.

    It runs until Ctrl-C or SIGTERM. What is running then is interrupted; a second signal ends it at once.

    \b
    Examples:
      thinkwell serve --agent claude --cwd ~/api
      thinkwell serve --config serve.toml

    \b
    Exit codes:
      1    the port is taken, or runs cannot be kept
      2    wrong usage
      3    an agent is not known
      130  Ctrl-C
      143  SIGTERM
    """
    with told():
        with needing("serve", EXTRAS):
            from thinkwell.cli.serve._plan import read_plan
            from thinkwell.cli.serve._server import run_plan

            plan = read_plan(
                agents=agent or (),
                commands=command or (),
                model=model,
                config=config,
                host=host,
                port=port,
                journal=journal,
                token_file=token_file,
                cwd=cwd,
                permissions=permissions,
                no_page=no_page,
                no_letta=no_letta,
                verbose=verbose,
            )
        raise typer.Exit(run_plan(plan))
