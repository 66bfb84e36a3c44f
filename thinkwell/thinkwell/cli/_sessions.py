"""``thinkwell sessions``: what an agent remembers."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from thinkwell.cli._completing import agent_names
from thinkwell.cli._errors import told
from thinkwell.cli._options import CommandOption, JsonOption, naming
from thinkwell.cli._terminal import How


def sessions(
    agent: Annotated[
        str | None,
        typer.Argument(
            metavar="AGENT",
            help="Which agent; by default the one that the environment names.",
            autocompletion=agent_names,
        ),
    ] = None,
    delete: Annotated[
        str | None, typer.Option("--delete", metavar="ID", help="Make it forget this session.")
    ] = None,
    command: CommandOption = None,
    cwd: Annotated[
        Path | None,
        typer.Option(
            "--cwd",
            metavar="DIR",
            help="Only those of this folder; by default those of all.",
            exists=True,
            file_okay=False,
            resolve_path=True,
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """List the sessions that an agent remembers, or make it forget one.

    To go on with one: thinkwell chat --load ID. Not every agent keeps its sessions, and some that do
    have no list of them.

    \b
    Examples:
      thinkwell sessions claude
      thinkwell sessions claude --cwd . --json
      thinkwell sessions claude --delete 6a1f…
    """
    if delete is not None and (json or cwd is not None):
        raise typer.BadParameter("it goes with neither --json nor --cwd", param_hint="--delete")
    with told():
        import anyio

        from thinkwell.cli._launching import launching_shown
        from thinkwell.cli._session_list import forget_session, show_sessions
        from thinkwell.cli._task import chosen_agent

        profile = chosen_agent(agent, command)
        with launching_shown(profile.name, How()) as on_phase:
            if delete is None:
                given = naming(agent, command)
                anyio.run(partial(show_sessions, profile, cwd, as_json=json, given=given, on_phase=on_phase))
            else:
                anyio.run(partial(forget_session, profile, delete, on_phase=on_phase))
