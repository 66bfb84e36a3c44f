"""Arguments of tools that run commands: the command line, and other arguments."""

from __future__ import annotations

import os
import re
import shlex
from typing import TYPE_CHECKING, Final

from thinkwell._core.policy.paths import absolute
from thinkwell._core.schema.json_schema import is_array, is_object

if TYPE_CHECKING:
    from collections.abc import Iterator

    from thinkwell.events import JsonValue

COMMAND_KEYS: Final = ("command", "cmd", "argv", "commandLine", "command_line", "shell_command", "script")
_ENVIRONMENT_KEYS: Final = ("env", "environment")
_EDITOR_COMMANDS: Final = frozenset(("create", "insert", "str_replace", "undo_edit", "view"))
"""Values of an argument ``command`` of text editor tools."""

_FOLDER_KEYS: Final = re.compile(r"(.*[_-])?(cwd|workdir|dir|directory|folder|root)(_?path)?", re.IGNORECASE)

_HARMLESS: Final = frozenset(
    (
        "background",
        "description",
        "explanation",
        "isbackground",
        "justification",
        "maxoutputtokens",
        "reason",
        "reasoning",
        "runinbackground",
        "timeout",
        "timeoutms",
        "timeoutseconds",
        "title",
        "yieldtimems",
    )
)
"""Arguments that do not change what a command does; case and underscores are ignored."""

_HARMLESS_OFF: Final = frozenset(("dangerouslydisablesandbox", "withescalatedpermissions"))
"""Arguments that do not change it if they are ``false``."""


def command_line(raw: JsonValue) -> str | None:
    """Return the command line in a tool's arguments. Several become lines of it."""
    if not is_object(raw):
        return None
    found = [line for key in COMMAND_KEYS if key in raw and (line := _line(raw[key])) is not None]
    lines = [*dict.fromkeys(found)] if len(found) > 1 else found
    if not lines or (lines[0] in _EDITOR_COMMANDS and raw.get("path")):
        return None
    arguments = raw.get("args")
    if is_array(arguments):
        lines[0] = " ".join([lines[0], shlex.join(map(_text, arguments))]).rstrip()
    for key in _ENVIRONMENT_KEYS:
        if key in raw:
            lines[:0] = [f"{name}={shlex.quote(_text(value))}" for name, value in _pairs(raw[key])]
    return "\n".join(lines)


def _text(value: JsonValue) -> str:
    try:
        return str(value)
    except RecursionError:  # pragma: no cover - only before Python 3.12; it runs nowhere
        return "?"


def _line(value: JsonValue) -> str | None:
    if isinstance(value, str):
        return value
    if is_array(value) and value:
        return shlex.join(map(_text, value))
    return None


def _pairs(value: JsonValue) -> Iterator[tuple[str, JsonValue]]:
    if is_object(value):
        yield from value.items()
    elif is_array(value):
        for item in value:
            if is_object(item):
                yield _text(item.get("name")), item.get("value")


def snake(key: str) -> str:
    """Return the name of an argument with underscores between its words."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key)


def names_folder(key: str) -> bool:
    """Return whether an argument names the folder in which a tool runs."""
    return _FOLDER_KEYS.fullmatch(snake(key)) is not None


def telling(raw: JsonValue) -> JsonValue:
    """Return the relevant arguments of a tool that runs commands."""
    if not is_object(raw):
        return raw
    return {key: value for key, value in raw.items() if value is not None and not _is_harmless(key, value)}


def says_no_more(raw: JsonValue, folder: str | None) -> bool:
    """Return whether the arguments of a tool that runs commands say no more than the command.

    ``null`` and an empty text are absent. Everything else is a value, even ``false``: it is unknown what
    ``false`` turns off in an unknown argument.

    Args:
        raw: The arguments, if known.
        folder: The folder in which the command must run; ``None``: any.
    """
    if not is_object(raw):
        return raw is None
    return all(value is None or value == "" or _is_known(key, value, folder) for key, value in raw.items())


def _is_known(key: str, value: JsonValue, folder: str | None) -> bool:
    """Return whether the command line shows an argument in this form, or it changes nothing."""
    if key in COMMAND_KEYS:
        return isinstance(value, str) or (_is_words(value) and bool(value))
    if key == "args":
        return _is_words(value)
    if key in _ENVIRONMENT_KEYS:
        return value in ({}, [])
    if names_folder(key):
        return isinstance(value, str) and _is_folder(value, folder)
    return _is_harmless(key, value)


def _is_words(value: JsonValue) -> bool:
    return is_array(value) and all(isinstance(word, str) for word in value)


def _is_harmless(key: str, value: JsonValue) -> bool:
    plain = key.replace("_", "").replace("-", "").casefold()
    if plain in _HARMLESS:
        return not is_object(value) and not is_array(value)
    return plain in _HARMLESS_OFF and value is False


def _is_folder(path: str, folder: str | None) -> bool:
    if folder is None:
        return True
    return "\0" not in path and os.path.realpath(absolute(path, folder)) == os.path.realpath(folder)
