"""``thinkwell telegram``: a bot in Telegram, with an agent behind it."""

import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from thinkwell.cli._errors import told
from thinkwell.cli._exit import WRONG_USAGE
from thinkwell.cli._options import AgentOption, CommandOption, CwdOption

MISSING: Final = """\
`thinkwell telegram` needs httpx, which is not installed. Install what it needs:

    {python} -m pip install 'thinkwell[telegram]'
"""


def telegram(
    agent: AgentOption = None,
    command: CommandOption = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="A TOML file with settings. Options go before it."),
    ] = None,
    allow: Annotated[
        list[int] | None,
        typer.Option(
            "--allow",
            metavar="ID",
            help="The number of a person who may talk to the bot, besides those of the file; several times "
            "for several. The bot tells people who write to it their number.",
        ),
    ] = None,
    cwd: CwdOption = None,
    permissions: Annotated[
        str | None,
        typer.Option(
            "--permissions",
            "-p",
            metavar="RULE",
            help="What the agent may do when it asks: deny, ask, allow, or a TOML file of rules. By default "
            "ask: buttons in the chat decide.",
        ),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Tell more of what happens on the way to Telegram.")
    ] = False,
) -> None:
    """Let people talk with an agent in Telegram. Each chat is a conversation of its own.

    The bot's token is read from the environment variable TELEGRAM_BOT_TOKEN; @BotFather in Telegram gives one
    to anyone who writes /newbot to it. Only people who are allowed get answers: with --allow, or by the file.

    It runs until Ctrl-C or SIGTERM. What is being written then is ended there, and delivered.

    \b
    Examples:
      thinkwell telegram --agent claude --allow 123456789 --cwd ~/api
      thinkwell telegram --config bot.toml

    \b
    Exit codes:
      1    the bot gets no messages any more
      2    wrong usage; no token, or one that Telegram does not know
      3    the agent is not known
      130  Ctrl-C
      143  SIGTERM
    """
    with told():
        try:
            from thinkwell.cli._telegramming import read_bot, run_bot
        except ImportError as exc:
            if exc.name != "httpx":
                raise
            sys.stderr.write(MISSING.format(python=sys.executable))
            raise typer.Exit(WRONG_USAGE) from None

        bot = read_bot(
            agent=agent,
            command=command,
            config=config,
            allow=allow or (),
            cwd=cwd,
            permissions=permissions,
            verbose=verbose,
        )
        raise typer.Exit(run_bot(bot))
