"""The options of ``thinkwell telegram``.

The bot takes long to import, and needs httpx; it is imported when it begins.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import replace

from thinkwell import PermissionMode, PermissionPolicy, open_agent, wait_for_answer
from thinkwell.cli._errors import needing, told
from thinkwell.cli._launch import as_rules, chosen_agent, launched, read_permissions
from thinkwell.cli._options import (
    AgentOption,
    CommandOption,
    ConfigOption,
    CwdOption,
    How,
    Style,
    permissions_option,
)
from thinkwell.cli.telegram._config import Config, read_config


def _people(numbers: list[int] | None) -> list[int] | None:
    """Check the users' numbers."""
    for number in numbers or ():
        if number <= 0:
            raise typer.BadParameter(
                f"{number} is not a user's number; those are above 0", param_hint="--allow"
            )
    return numbers


def telegram(
    agent: AgentOption = None,
    command: CommandOption = None,
    config: ConfigOption = None,
    allow: Annotated[
        list[int] | None,
        typer.Option(
            "--allow",
            metavar="ID",
            help="The number of a user who may talk to the bot, in addition to the file. Repeatable. The bot "
            "tells users who write to it their number.",
            callback=_people,
        ),
    ] = None,
    cwd: CwdOption = None,
    permissions: Annotated[str | None, permissions_option("ask: buttons in the chat decide")] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Log more about the connection to Telegram.")
    ] = False,
) -> None:
    """Run a Telegram bot for an agent. Each chat is a separate conversation.

    The bot's token is read from the environment variable TELEGRAM_BOT_TOKEN. To get one, write /newbot to
    @BotFather in Telegram. Only users in --allow or in the file get answers.

    The bot runs until Ctrl-C or SIGTERM. An answer in progress is then delivered as far as it is written.

    \b
    Examples:
      thinkwell telegram --agent claude --allow 123456789 --cwd ~/api
      thinkwell telegram --config bot.toml

    \b
    Exit codes:
      1    the bot can no longer get messages
      2    wrong usage; no token, or an invalid one
      3    the agent is unknown
      130  Ctrl-C
      143  SIGTERM
    """
    with told():
        with needing("telegram", {"httpx": "telegram"}):
            from thinkwell.cli.telegram._bot import run_bot

        file = read_config(config)
        if agent is None and command is None:
            agent, command = file.agent, file.command
        policy = _permissions(permissions, file)
        profile = chosen_agent(agent, command)
        opening = partial(
            open_agent,
            profile,
            cwd=cwd or _folder(file),
            permissions=as_rules(policy),  # so the chat gets all questions except permissions
            on_question=wait_for_answer,  # which is given in the chat
            question_timeout=file.question_timeout,
        )
        opened = partial(launched, profile.name, How(style=Style.LINES), opening)
        file = replace(file, allow=(*file.allow, *(allow or ())))
        raise typer.Exit(run_bot(file, opened, verbose=verbose))


def _permissions(given: str | None, file: Config) -> PermissionMode | PermissionPolicy:
    if given is not None or file.permissions is None:
        return read_permissions(given, can_ask=True)
    try:
        return read_permissions(file.permissions, can_ask=True)
    except typer.BadParameter as exc:
        raise typer.BadParameter(f"permissions: {exc.message}", param_hint="--config") from None


def _folder(file: Config) -> Path | None:
    if file.cwd is None:
        return None
    folder = Path(file.cwd)
    if not folder.is_dir():
        raise typer.BadParameter(f"cwd: there is no folder {folder}", param_hint="--config")
    return folder.resolve()
