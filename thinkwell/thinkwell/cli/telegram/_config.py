"""The configuration file of ``thinkwell telegram``, and the source of the bot's token."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias

import msgspec
import typer
from msgspec import Meta, Struct
from msgspec.structs import fields

from thinkwell._core.exit import QUESTION_TIMEOUT
from thinkwell._core.schema.settings import path_from, unknown_key
from thinkwell.cli._config_files import read_secret, read_settings

TOKEN_VARIABLE: Final = "TELEGRAM_BOT_TOKEN"  # noqa: S105 - the name of a variable
"""The default variable with the token."""


_SECONDS: Final = Meta(description="a number of seconds above 0")
_SECONDS_OR_NEVER: Final = Meta(description="a number of seconds above 0, or false")
_PEOPLE: Final = Meta(description="a list of the numbers of people, such as [123456789]")
_BUSY: Final = Meta(description='"steer", "queue" or "refuse"')
_COUNT: Final = Meta(ge=0, description="a whole number, 0 or more")

Seconds: TypeAlias = Annotated[float, Meta(gt=0, le=sys.float_info.max)]
Text: TypeAlias = Annotated[Annotated[str, Meta(pattern=r"\S")] | None, Meta(description="a text")]
Switch: TypeAlias = Annotated[bool, Meta(description="true or false")]


class Config(Struct, frozen=True, kw_only=True):
    """The content of the file, times in seconds. ``False`` for a time: never. ``None``: not in the file.

    Each type has the description of the valid values.
    """

    agent: Text = None
    """The agent's name."""
    command: Text = None
    """Or its command."""
    cwd: Text = None
    """Its folder."""
    permissions: Text = None
    """Its permissions: ``deny``, ``ask``, ``allow``, or a file of rules."""
    question_timeout: Annotated[Seconds, _SECONDS] = QUESTION_TIMEOUT
    """Until an unanswered question is denied."""
    allow: Annotated[tuple[Annotated[int, Meta(ge=1)], ...], _PEOPLE] = ()
    """The numbers of the users who may talk to the bot."""
    token_env: Text = None
    """The environment variable with the token."""
    token_file: Text = None
    """Or the file with the token, which no other user can read."""
    base_url: Text = None
    """A Bot API server of your own."""
    greeting: Text = None
    """The beginning of ``/start`` and ``/help``."""
    markdown: Switch = True
    """Whether the agent writes Markdown."""
    streaming: Switch = True
    """Whether answers are shown while they are written."""
    thinking: Switch = True
    """Whether the agent's thoughts are shown."""
    drafts: Switch = False
    """Whether answers in private chats are drafts while they are written."""
    stalled_after: Annotated[Seconds | bool | None, _SECONDS_OR_NEVER] = None
    """Until a run without any news is given up."""
    timeout: Annotated[Seconds | None, _SECONDS] = None
    """For a run."""
    idle_after: Annotated[Seconds | bool, _SECONDS_OR_NEVER] = 3600.0
    """After which an unused conversation ends."""
    busy: Annotated[Literal["steer", "queue", "refuse"], _BUSY] = "steer"
    """How to treat a message while another one is answered."""
    max_waiting: Annotated[int, _COUNT] = 8
    """How many messages of a chat may wait."""


_KEYS: Final = {field.name: field.type for field in fields(Config)}

_MODES: Final = ("deny", "ask", "allow")
"""Permissions that are not a path."""


def read_config(path: Path | None) -> Config:
    """Read a file, as `read_settings` does."""
    return read_settings(path, _checked)


def _checked(table: dict[str, object], folder: Path) -> Config:
    for key, value in table.items():
        if key not in _KEYS:
            raise ValueError(_unknown(key))
        if not _fits(value, kind := _KEYS[key]):
            raise ValueError(f"{key}: give {kind.__metadata__[0].description}")
    if "token_env" in table and "token_file" in table:
        raise ValueError("give token_env or token_file, not both")
    for key in ("cwd", "token_file", "permissions"):
        if key in table and not (key == "permissions" and table[key] in _MODES):
            table[key] = str(path_from(folder, str(table[key]), at=key))
    return msgspec.convert(table, Config)


def _unknown(key: str) -> str:
    if key == "token":
        return (
            "'token': a token does not belong into this file. Put it into the environment variable "
            f"{TOKEN_VARIABLE}, into another one that token_env names, or into a file that token_file names"
        )
    return unknown_key("", key, tuple(_KEYS))


def _fits(value: object, kind: object) -> bool:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return value is not True or kind == Switch  # as a time, only false has a meaning


def take_token(config: Config) -> str:
    """Return the bot's token, and take it out of the environment, which the agent inherits.

    Raises:
        typer.BadParameter: There is no token, or others can read it.
    """
    in_environment = os.environ.pop(TOKEN_VARIABLE, "")
    if config.token_file is not None:
        return read_secret(Path(config.token_file), "token_file: ", "--config")
    name = TOKEN_VARIABLE
    if config.token_env not in (None, TOKEN_VARIABLE):
        name = config.token_env
        in_environment = os.environ.pop(name, "")
    if not in_environment.strip():
        raise typer.BadParameter(
            f"there is no token for the bot. Write /newbot to @BotFather in Telegram, and put the token that "
            f"you get into the environment variable {name}"
        )
    return in_environment.strip()
