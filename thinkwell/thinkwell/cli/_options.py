"""Options that several commands have, declared once.

Nothing here loads more than typer: the help and the completion of the shell wait for it.
"""

from __future__ import annotations

from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from thinkwell.cli._completing import agent_names
from thinkwell.cli._terminal import Style

HELP_OPTIONS: Final = {"help_option_names": ["-h", "--help"]}
"""Settings of every command."""


def _in_a_folder(path: Path | None) -> Path | None:
    """Check that a file can be there, before anything is started."""
    if path is not None and not path.parent.is_dir():
        raise typer.BadParameter(f"there is no folder {path.parent}")
    return path


def _folder(path: Path | None) -> Path | None:
    """Return the folder that is meant, which has to be there."""
    if path is None:
        return None
    with suppress(RuntimeError):  # of pathlib: no user of that name has a home here
        path = path.expanduser()  # where no shell has done that: in quotes, behind `=`, in a service
    path = path.resolve()
    if not path.is_dir():
        raise typer.BadParameter(f"the folder {path} does not exist")
    return path


AgentOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--agent",
        "-a",
        metavar="NAME",
        help="The agent: claude, codex, gemini@latest; `thinkwell agents` lists them. By default the one "
        "that the environment names (THINKWELL_AGENT_CMD, THINKWELL_AGENT), else the built-in one.",
        autocompletion=agent_names,
    ),
]
CommandOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--command", metavar="LINE", help='The command of any other agent, or of --agent: "my-agent --acp".'
    ),
]


class Spoken(Enum):
    """What an agent speaks."""

    ACP = "acp"
    NDJSON = "ndjson"


ProtocolOption: TypeAlias = Annotated[
    Spoken,
    typer.Option(
        "--protocol",
        help="What the program of --command speaks: ndjson is one JSON object a line, with a type.",
        show_choices=True,
        show_default=False,
    ),
]
CwdOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--cwd",
        metavar="DIR",
        help="The folder to work in; by default this one.",
        file_okay=False,
        callback=_folder,
    ),
]
PermissionsOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--permissions",
        "-p",
        metavar="RULE",
        help="What the agent may do when it asks: deny, ask, allow, or a TOML file of rules. By default ask "
        "in a terminal, deny elsewhere.",
    ),
]
RecordOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--record",
        metavar="FILE",
        dir_okay=False,
        callback=_in_a_folder,
        help="Record everything there, for `thinkwell replay`.",
    ),
]
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON.")]
VerboseOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--verbose",
        "-v",
        help="Show thoughts and outputs of tools in full; with an agent, also what the library logs.",
    ),
]
QuietOption: TypeAlias = Annotated[
    bool, typer.Option("--quiet", "-q", help="Show no progress; errors are still told.")
]
StyleOption: TypeAlias = Annotated[
    Style,
    typer.Option(
        "--style",
        help="How progress is shown: live redraws it in place, lines only adds to it; auto goes by what "
        "standard error is.",
        show_choices=True,
        show_default=False,
    ),
]


def naming(agent: str | None, command: str | None) -> list[str]:
    """Return the options that name an agent, for a command that is to be typed next."""
    return [*(["--agent", agent] if agent else []), *(["--command", command] if command else [])]
