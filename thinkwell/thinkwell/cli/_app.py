"""The app: its commands.

Each command is in its own module, imported when it is called: everything imported here delays the help, and
the completion of the shell.
"""

import platform
import sys
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from thinkwell._version import VERSION
from thinkwell.cli._errors import ended, stop_writing
from thinkwell.cli._options import HELP_OPTIONS

COMMANDS: Final = {
    "demo": ("_demo", "Watch a run; needs no key and no network."),
    "run": ("_run", "Let an agent do one task."),
    "chat": ("chat._command", "Talk with an agent."),
    "trials": ("_trials", "Run a task over many inputs, with several agents."),
    "worker": ("_worker", "Run trials for other machines."),
    "replay": ("_replay", "Show a recorded run again."),
    "agents": ("_programs", "Show which agents can be used."),
    "doctor": ("_programs", "Check whether an agent works."),
    "login": ("_login", "Log in to an agent."),
    "sessions": ("_sessions", "List an agent's saved sessions."),
    "serve": ("serve._command", "Serve runs to browsers and programs."),
    "telegram": ("telegram._command", "Run a Telegram bot for an agent."),
    "middleware": ("_middleware", "Let a program drive an agent with lines of JSON."),
    "new": ("_new", "Create a starter project."),
    "version": ("_app", "Show the version."),
}
"""The commands, in the order of the help: those that run agents, those about agents, then the rest. Each with
its module, in which it has the same name, and its line in the help."""


class _Root(TyperGroup):
    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, (_, about) in COMMANDS.items():
            self.add_command(TyperCommand(name, short_help=about))  # replaces it in lists

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        """Parse the arguments; the help and the version are written here."""
        with ended():
            return super().make_context(*args, **kwargs)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Import the called command, or the one whose options are completed."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command and _command(args[0]), rest

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        """Run a command."""
        with ended():
            return super().invoke(ctx)


def _command(name: str) -> Any:
    """Import a command, and return it."""
    found = getattr(import_module(f"thinkwell.cli.{COMMANDS[name][0]}"), name)
    if isinstance(found, typer.Typer):  # it has subcommands
        return typer.main.get_command(found)
    alone = typer.Typer(rich_markup_mode=None, add_completion=False)
    alone.command(name)(found)
    return typer.main.get_command(alone)


def version() -> None:
    """Show the versions of thinkwell, Python and the system, for a bug report."""
    typer.echo(_version_text())


def _print_version(wanted: bool) -> None:
    """Print the version and exit, if requested."""
    if wanted:
        typer.echo(_version_text())
        raise typer.Exit


def _version_text() -> str:
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"thinkwell {VERSION} ({python}, {sys.platform} {platform.machine()})"


app = typer.Typer(
    name="thinkwell",
    cls=_Root,
    no_args_is_help=True,
    rich_markup_mode=None,  # plain text is as readable, and faster
    pretty_exceptions_enable=False,
    context_settings=HELP_OPTIONS,
)


@app.callback()
def thinkwell(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Run coding agents from the shell: typed results on standard output, progress on standard error.

    \b
    Begin here:
      thinkwell demo                    watch a run; needs no key, no network
      thinkwell agents                  list the known agents
      thinkwell doctor claude           check one on this machine
      thinkwell run -a claude "Explain this project"

    `thinkwell COMMAND --help` shows examples, and for run also the exit codes.
    """


def run_app() -> int:
    """Run the command with the arguments of this process, and return its exit code."""
    try:
        app(prog_name="thinkwell")
    except SystemExit as exc:
        stop_writing(sys.stderr)
        return exc.code if isinstance(exc.code, int) else 0
    return 0  # pragma: no cover - it ends by SystemExit
