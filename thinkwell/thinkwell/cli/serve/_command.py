"""The options of ``thinkwell serve``.

The server takes long to import, and needs the extra ``web``; it is imported when it begins.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from thinkwell.cli._errors import needing, told
from thinkwell.cli._options import (
    ConfigOption,
    CwdOption,
    ModelOption,
    RetryOption,
    agent_names,
    fallback_option,
    permissions_option,
)

EXTRAS: Final = {"starlette": "web", "uvicorn": "web", "redis": "redis"}
"""The extra that installs each missing package."""


def serve(
    agent: Annotated[
        list[str] | None,
        typer.Option(
            "--agent",
            "-a",
            metavar="NAME",
            help="An agent that callers may use. Repeatable; the first is the default. Default: those of the "
            "file, else from the environment, else the built-in one.",
            autocompletion=agent_names,
        ),
    ] = None,
    command: Annotated[
        list[str] | None,
        typer.Option("--command", metavar="LINE", help="The command of any other agent. Repeatable."),
    ] = None,
    model: ModelOption = None,
    retry: RetryOption = 0,
    fallback: Annotated[
        list[str] | None, fallback_option("The agent to open if the one of --agent does not start.")
    ] = None,
    config: ConfigOption = None,
    host: Annotated[
        str | None,
        typer.Option(
            "--host",
            metavar="ADDRESS",
            help="Where to listen. Default: 127.0.0.1, this machine only. Any other address needs a token.",
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            metavar="NUMBER",
            min=0,
            max=65_535,
            help="Default: 8283, where Letta clients look for a self-hosted server. 0: any free port.",
        ),
    ] = None,
    journal: Annotated[
        str | None,
        typer.Option(
            "--journal",
            metavar="WHERE",
            help="Where to store runs: a file (SQLite), memory, or redis (address in "
            "THINKWELL_SERVE_REDIS). Default: a file in your state folder.",
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file",
            metavar="FILE",
            help="A file with the token for callers, which only you can read. Default: the token in "
            "THINKWELL_SERVE_TOKEN; else a new one, which is printed.",
        ),
    ] = None,
    cwd: CwdOption = None,
    permissions: Annotated[
        str | None, permissions_option("ask: the caller decides", what="What agents may do when they ask")
    ] = None,
    no_page: Annotated[bool, typer.Option("--no-page", help="Do not serve the web page.")] = False,
    no_letta: Annotated[bool, typer.Option("--no-letta", help="Do not serve the Letta API.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log each request.")] = False,
) -> None:
    """Serve runs over HTTP: a web page for users, and an API for programs.

    A caller with the token can use the agents on this machine, within their folders and permissions. By
    default, only this machine can connect. Stored runs outlive the server.

    The server runs until Ctrl-C or SIGTERM, which interrupts active runs; a second signal ends it at once.

    \b
    Examples:
      thinkwell serve --agent claude --cwd ~/api
      thinkwell serve --config serve.toml

    \b
    Exit codes:
      1    the port is in use, or runs cannot be stored
      2    wrong usage
      3    an agent is unknown
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
                retry=retry,
                fallback=fallback or None,
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
