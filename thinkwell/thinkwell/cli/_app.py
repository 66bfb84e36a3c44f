"""The app: which commands there are.

A module of a command declares its options, with what typer needs and no more, and imports what does the work
when it is called: the help, and the completion of the shell, wait for everything that is imported here.
"""

import sys
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from thinkwell.cli._agents import agents
from thinkwell.cli._chat import chat
from thinkwell.cli._demo import demo
from thinkwell.cli._doctor import doctor
from thinkwell.cli._errors import ended, stop_writing
from thinkwell.cli._login import login
from thinkwell.cli._middleware import middleware
from thinkwell.cli._new import new
from thinkwell.cli._options import HELP_OPTIONS
from thinkwell.cli._replay import replay
from thinkwell.cli._run import run
from thinkwell.cli._serve import serve
from thinkwell.cli._sessions import sessions
from thinkwell.cli._telegram import telegram
from thinkwell.cli._version import print_version, version

ORDER: Final = (
    *("demo", "run", "chat", "replay"),
    *("agents", "doctor", "login", "sessions"),
    *("serve", "telegram", "middleware", "new", "version"),
)
"""In which order the help names the commands: what is done with agents, then agents, then the rest."""


class _Root(TyperGroup):
    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        """Read the arguments; the help and the version are written here."""
        with ended():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        """Run a command."""
        with ended():
            return super().invoke(ctx)

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        """Return the names of the commands, in order."""
        return sorted(self.commands, key=ORDER.index)


app = typer.Typer(
    name="thinkwell",
    cls=_Root,
    no_args_is_help=True,
    rich_markup_mode=None,  # plain text is as readable, and there sooner
    pretty_exceptions_enable=False,
    context_settings=HELP_OPTIONS,
)


@app.callback()
def thinkwell(
    _version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Run coding agents from the shell: typed results on standard output, progress on standard error.

    \b
    Begin here:
      thinkwell demo                    watch a run; needs no key, no network
      thinkwell agents                  which agents there are
      thinkwell doctor claude           whether one works on this machine
      thinkwell run -a claude "Explain this project"

    `thinkwell COMMAND --help` has examples of each, and that of run its exit codes.
    """


app.command(short_help="Watch a run; needs no key and no network.")(demo)
app.command(short_help="Let an agent do one task.")(run)
app.command(short_help="Talk with an agent.")(chat)
app.command(short_help="Show a recorded run again.")(replay)
app.add_typer(agents, short_help="Show which agents can be used.")
app.command(short_help="See whether an agent works.")(doctor)
app.command(short_help="Log in to an agent.")(login)
app.command(short_help="List what an agent remembers.")(sessions)
app.command(short_help="Serve runs to browsers and programs.")(serve)
app.command(short_help="Let people talk with an agent in Telegram.")(telegram)
app.command(short_help="Let a program that knows only lines drive an agent.")(middleware)
app.command(short_help="Make a project to begin with.")(new)
app.command(short_help="Show the version.")(version)


def run_app() -> int:
    """Run the command with the arguments of this process, and return its exit code."""
    try:
        app(prog_name="thinkwell")
    except SystemExit as exc:
        stop_writing(sys.stderr)
        return exc.code if isinstance(exc.code, int) else 0
    return 0  # pragma: no cover - it ends by SystemExit
