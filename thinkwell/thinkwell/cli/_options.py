"""Options and arguments of several commands, declared once.

This imports only typer, and what comes with thinkwell: imports delay the help and the completion of the
shell.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from enum import Enum, StrEnum
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import typer

from thinkwell.cli._process import silence_logs
from thinkwell.errors import ThinkwellError

HELP_OPTIONS: Final = {"help_option_names": ["-h", "--help"]}
"""Settings of every command."""


class Style(StrEnum):
    """How progress is shown."""

    AUTO = "auto"
    LIVE = "live"
    LINES = "lines"


class Spoken(Enum):
    """The protocol of an agent."""

    ACP = "acp"
    NDJSON = "ndjson"


@dataclass(frozen=True, slots=True, kw_only=True)
class How:
    """How a run is shown.

    Raises:
        typer.BadParameter: Two options exclude each other.
    """

    as_json: bool = False
    quiet: bool = False
    verbose: bool = False
    style: Style = Style.AUTO

    def __post_init__(self) -> None:
        if self.as_json and self.quiet:
            raise typer.BadParameter("give --json or --quiet, not both", param_hint="--json")

    @property
    def can_ask(self) -> bool:
        """Whether the user can be asked."""
        return not (self.as_json or self.quiet) and sys.stdin.isatty() and sys.stderr.isatty()


def agent_names(incomplete: str) -> list[str]:
    """Return the names of the agents with this beginning.

    Errors are not shown: they would appear in the line that the user types.
    """
    from thinkwell.agents import known_agents  # a slow import that the help does not need

    silence_logs()
    try:
        names = [profile.name for profile in known_agents()]
    except ThinkwellError:
        names = []
    return [name for name in ("builtin", *names) if name.startswith(incomplete)]


def at_home(path: Path) -> Path:
    """Return a path without its ``~``, which shells do not replace in quotes, after ``=`` and in services."""
    try:
        return path.expanduser()
    except RuntimeError:  # from pathlib: that user has no home here
        return path


def _in_a_folder(path: Path | None) -> Path | None:
    """Check that the folder of a file exists, before anything starts."""
    if path is not None and not path.parent.is_dir():
        raise typer.BadParameter(f"there is no folder {path.parent}")
    return path


def _folder(path: Path | None) -> Path | None:
    """Check that a folder exists, and return it."""
    if path is None:
        return None
    path = at_home(path).resolve()
    if not path.is_dir():
        raise typer.BadParameter(f"the folder {path} does not exist")
    return path


def _above_zero(option: typer.CallbackParam, value: float | None) -> float | None:
    """Check a limit."""
    if value is not None and not value > 0:  # also refuses NaN
        what = "seconds" if option.metavar == "S" else "a number"
        raise typer.BadParameter(f"it is {value:g}; give {what} above 0", param_hint=option.opts[0])
    return value


def _not_empty(name: str | None) -> str | None:
    """Check a name."""
    if name == "":
        raise typer.BadParameter("it is empty; leave it out, or give a name")
    return name


def as_text(word: str) -> str:
    """Return an argument as typed, whatever the locale made of it."""
    try:
        return os.fsencode(word).decode()
    except UnicodeDecodeError:
        raise typer.BadParameter("it is not UTF-8; files go by --file") from None


def _instructions(text: str | None) -> str | None:
    """Check a system prompt."""
    return None if text is None else as_text(text).strip() or None


def agent_argument(about: str, *, metavar: str = "AGENT") -> Any:
    """Declare an argument for an agent's name."""
    return typer.Argument(metavar=metavar, help=about, autocompletion=agent_names)


def limit_option(name: str, about: str, *, metavar: str = "S") -> Any:
    """Declare a limit: seconds, or another number above 0."""
    return typer.Option(name, metavar=metavar, help=about, callback=_above_zero)


def file_option(name: str, about: str) -> Any:
    """Declare an output file."""
    return typer.Option(name, metavar="FILE", dir_okay=False, callback=_in_a_folder, help=about)


def fallback_option(about: str) -> Any:
    """Declare ``--fallback``."""
    return typer.Option(
        "--fallback",
        metavar="NAME",
        help=f"{about} Repeatable.",
        autocompletion=agent_names,
        show_default=False,
    )


def permissions_option(default: str, *, what: str = "What the agent may do when it asks") -> Any:
    """Declare ``--permissions``.

    Args:
        default: The behaviour without it.
        what: Its meaning.
    """
    about = f"{what}: deny, ask, allow, or a TOML file of rules. Default: {default}."
    return typer.Option("--permissions", "-p", metavar="RULE", help=about)


AgentArgument: TypeAlias = Annotated[str | None, agent_argument("The agent. Default: from the environment.")]
AgentOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--agent",
        "-a",
        metavar="NAME",
        help="The agent: claude, codex, gemini@latest; `thinkwell agents` lists them. Default: from the "
        "environment (THINKWELL_AGENT_CMD, THINKWELL_AGENT), else the built-in one.",
        autocompletion=agent_names,
    ),
]
CommandOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--command", metavar="LINE", help='The command of any other agent, or of --agent: "my-agent --acp".'
    ),
]
ModelOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        metavar="NAME",
        help="The model, by id or name: `thinkwell agents show claude` lists those of claude. By default the "
        "agent chooses.",
        callback=_not_empty,
    ),
]
SystemOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--system",
        metavar="TEXT",
        help="Instructions that the agent adds to its own; where it takes none, they precede the prompt.",
        callback=_instructions,
    ),
]
RetryOption: TypeAlias = Annotated[
    int,
    typer.Option(
        "--retry",
        metavar="N",
        min=0,
        help="Try again up to N times after an overload or an exit, as long as nothing was changed.",
        show_default=False,
    ),
]
ProtocolOption: TypeAlias = Annotated[
    Spoken,
    typer.Option(
        "--protocol",
        help="The protocol of --command. ndjson: one JSON object per line, with a type.",
        show_choices=True,
        show_default=False,
    ),
]
CwdOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--cwd",
        metavar="DIR",
        help="The folder to work in. Default: the current one.",
        file_okay=False,
        callback=_folder,
    ),
]
SchemaOption: TypeAlias = Annotated[
    Path | None, typer.Option("--schema", metavar="FILE", help="Return JSON that fits this JSON Schema.")
]
McpOption: TypeAlias = Annotated[
    Path | None, typer.Option("--mcp", metavar="FILE", help="MCP servers for the agent, as in .mcp.json.")
]
PermissionsOption: TypeAlias = Annotated[str | None, permissions_option("ask in a terminal, deny elsewhere")]
ConfigOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="A TOML file with settings. Options override it."),
]
RecordOption: TypeAlias = Annotated[
    Path | None, file_option("--record", "Record everything in this file, for `thinkwell replay`.")
]
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON.")]
EventsOption: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print every event as a line of JSON; the last one is the result.")
]
VerboseOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--verbose",
        "-v",
        help="Show thoughts and tool output in full; with an agent, also the library's log.",
    ),
]
QuietOption: TypeAlias = Annotated[bool, typer.Option("--quiet", "-q", help="Show only errors, no progress.")]
StyleOption: TypeAlias = Annotated[
    Style,
    typer.Option(
        "--style",
        help="How to show progress. live: redraw in place; lines: append lines; auto: live in a terminal, "
        "else lines.",
        show_choices=True,
        show_default=False,
    ),
]


def naming(agent: str | None, command: str | None) -> list[str]:
    """Return the options that name an agent, for the next command to type."""
    return [*(["--agent", agent] if agent else []), *(["--command", command] if command else [])]
