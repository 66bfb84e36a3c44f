"""The configuration file of ``thinkwell telegram``, and the source of the bot's token."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final, Literal

import msgspec
import typer

from thinkwell._core.schema.json_schema import is_array
from thinkwell._core.schema.settings import path_from, unknown_key
from thinkwell.cli._config_files import read_secret, read_settings

TOKEN_VARIABLE: Final = "TELEGRAM_BOT_TOKEN"  # noqa: S105 - the name of a variable
"""The default variable with the token."""


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """The content of the file, times in seconds. ``False`` for a time: never. ``None``: not in the file."""

    agent: str | None = None
    """The agent's name."""
    command: str | None = None
    """Or its command."""
    cwd: str | None = None
    """Its folder."""
    permissions: str | None = None
    """Its permissions: ``deny``, ``ask``, ``allow``, or a file of rules."""
    question_timeout: float | None = None
    """Until an unanswered question is denied."""
    allow: tuple[int, ...] = ()
    """The numbers of the users who may talk to the bot."""
    token_env: str | None = None
    """The environment variable with the token."""
    token_file: str | None = None
    """Or the file with the token, which no other user can read."""
    base_url: str | None = None
    """A Bot API server of your own."""
    greeting: str | None = None
    """The beginning of ``/start`` and ``/help``."""
    markdown: bool = True
    """Whether the agent writes Markdown."""
    streaming: bool = True
    """Whether answers are shown while they are written."""
    thinking: bool = True
    """Whether the agent's thoughts are shown."""
    drafts: bool = False
    """Whether answers in private chats are drafts while they are written."""
    stalled_after: float | bool | None = None
    """Until a run without any news is given up."""
    timeout: float | None = None
    """For a run."""
    idle_after: float | bool | None = None
    """After which an unused conversation ends."""
    busy: Literal["steer", "queue", "refuse"] = "steer"
    """How to treat a message while another one is answered."""
    max_waiting: int | None = None
    """How many messages of a chat may wait."""


_TEXT: Final = "a text"
_SWITCH: Final = "true or false"
_SECONDS: Final = "a number of seconds above 0"
_SECONDS_OR_NEVER: Final = "a number of seconds above 0, or false"
_PEOPLE: Final = "a list of the numbers of people, such as [123456789]"
_BUSY: Final = '"steer", "queue" or "refuse"'
_COUNT: Final = "a whole number, 0 or more"

_WANTED: Final = {
    "agent": _TEXT,
    "command": _TEXT,
    "cwd": _TEXT,
    "permissions": _TEXT,
    "question_timeout": _SECONDS,
    "allow": _PEOPLE,
    "token_env": _TEXT,
    "token_file": _TEXT,
    "base_url": _TEXT,
    "greeting": _TEXT,
    "markdown": _SWITCH,
    "streaming": _SWITCH,
    "thinking": _SWITCH,
    "drafts": _SWITCH,
    "stalled_after": _SECONDS_OR_NEVER,
    "timeout": _SECONDS,
    "idle_after": _SECONDS_OR_NEVER,
    "busy": _BUSY,
    "max_waiting": _COUNT,
}
"""The valid values of each key."""

_RULES: Final = tuple(("permissions", rule) for rule in ("deny", "ask", "allow"))
"""Values that are not a path."""


def read_config(path: Path | None) -> Config:
    """Read a file, as `read_settings` does."""
    return read_settings(path, _checked)


def _checked(table: dict[str, object], folder: Path) -> Config:
    for key, value in table.items():
        if key not in _WANTED:
            raise ValueError(_unknown(key))
        if not _fits(value, _WANTED[key]):
            raise ValueError(f"{key}: give {_WANTED[key]}")
    if "token_env" in table and "token_file" in table:
        raise ValueError("give token_env or token_file, not both")
    for key in ("cwd", "token_file", "permissions"):
        if key in table and (key, table[key]) not in _RULES:
            table[key] = str(path_from(folder, str(table[key]), at=key))
    return msgspec.convert(table, Config)


def _unknown(key: str) -> str:
    if key == "token":
        return (
            "'token': a token does not belong into this file. Put it into the environment variable "
            f"{TOKEN_VARIABLE}, into another one that token_env names, or into a file that token_file names"
        )
    return unknown_key("", key, tuple(_WANTED))


def _fits(value: object, wanted: str) -> bool:
    if wanted == _SWITCH:
        return isinstance(value, bool)
    if wanted == _TEXT:
        return isinstance(value, str) and bool(value.strip())
    if wanted == _BUSY:
        return value in ("steer", "queue", "refuse")
    if wanted == _COUNT:
        return _is_whole(value, 0)
    if wanted == _PEOPLE:
        return is_array(value) and all(_is_whole(each, 1) for each in value)
    if value is False:
        return wanted == _SECONDS_OR_NEVER
    return isinstance(value, int | float) and value is not True and 0 < value <= sys.float_info.max


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


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
