"""Keyboards under messages and the menu of commands: what the Bot API takes, and what it refuses.

Sources: see `bot_api.rules`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from bot_api.rules import as_list, as_object, bad_request

if TYPE_CHECKING:
    from bot_api.rules import Arguments, JsonObject

    from thinkwell.events import JsonValue

__all__ = ("MOST_BUTTONS", "check_keyboard", "read_commands", "reply_markup")

MOST_BUTTONS: Final = 100
"""Of an inline keyboard. Not documented; what bots report."""

LONGEST_DATA: Final = 64
"""Bytes of ``callback_data`` (Bot API, InlineKeyboardButton)."""

STYLES: Final = ("", "default", "primary", "danger", "success")


def reply_markup(arguments: Arguments) -> JsonObject | None:
    """Return the ``reply_markup``, in the form in which it is kept."""
    value = arguments.json("reply_markup", "can't parse reply keyboard markup JSON object")
    if not arguments.text("reply_markup"):
        return None
    given = as_object(value)
    if given is None:
        raise bad_request("object expected as reply markup")
    if given.get("keyboard"):
        return {"keyboard": given["keyboard"]}
    if given.get("inline_keyboard"):
        try:
            return {"inline_keyboard": _rows(given["inline_keyboard"])}
        except _UnreadableError as error:
            raise bad_request(str(error)) from None
    if given.get("remove_keyboard"):
        return {"remove_keyboard": True}
    if given.get("force_reply"):
        return {"force_reply": True, "input_field_placeholder": given.get("input_field_placeholder", "")}
    return None


class _UnreadableError(ValueError):
    pass


def _rows(value: JsonValue) -> list[list[JsonObject]]:
    rows = [as_list(row) for row in as_list(value) or [None]]
    if None in rows:
        raise _UnreadableError(
            'field "inline_keyboard" of the InlineKeyboardMarkup must be an Array of Arrays'
        )
    return [[_button(button) for button in row] for row in rows if row]


def _button(value: JsonValue) -> JsonObject:
    wrong = "can't parse inline keyboard button: "
    given = as_object(value)
    if given is None:
        raise _UnreadableError(f"{wrong}InlineKeyboardButton must be an Object")
    if "text" not in given:
        raise _UnreadableError(f'{wrong}Can\'t find field "text"')
    for name in ("text", "style", "url", "callback_data"):
        if not isinstance(given.get(name, ""), str):
            raise _UnreadableError(f'{wrong}Field "{name}" must be of type String')
    if given.get("style", "") not in STYLES:
        raise _UnreadableError(f"{wrong}invalid button style specified")
    button: JsonObject = {name: given[name] for name in ("text", "style") if name in given}
    for name in ("url", "callback_data"):
        if given.get(name):
            return {**button, name: given[name]}
    raise _UnreadableError(f"{wrong}Text buttons are unallowed in the inline keyboard")


def check_keyboard(markup: JsonObject | None, *, editing: bool) -> None:
    """Refuse what TDLib, or Telegram itself, refuses of a markup that could be read."""
    if markup is None:
        return
    if "inline_keyboard" not in markup:
        if editing:
            raise bad_request("inline keyboard expected")
        return
    buttons = [button for row in markup["inline_keyboard"] for button in row]
    for button in buttons:
        if not button["text"].strip():
            raise bad_request("inline keyboard button text must be non-empty")
    if any(len(button.get("callback_data", "").encode()) > LONGEST_DATA for button in buttons):
        raise bad_request("BUTTON_DATA_INVALID")
    if len(buttons) > MOST_BUTTONS:
        raise bad_request("reply markup is too long")


def read_commands(arguments: Arguments) -> list[dict[str, str]]:
    """Return the commands of a menu."""
    value = arguments.json("commands", "can't parse commands JSON object")
    given = [] if value is None else as_list(value)
    if given is None:
        raise bad_request("expected an Array of BotCommand")
    commands = [_command(one) for one in given]
    if len(commands) > 100:
        raise bad_request("BOT_COMMANDS_TOO_MUCH")
    return commands


def _command(value: JsonValue) -> dict[str, str]:
    given = as_object(value)
    if given is None:
        raise bad_request("can't parse BotCommand: expected an Object")
    for name in ("command", "description"):
        if not isinstance(given.get(name), str):
            raise bad_request(f"can't parse BotCommand: Can't find field \"{name}\"")
    command: str = given["command"].strip().removeprefix("/")
    description: str = given["description"].strip()
    if not command:
        raise bad_request("command must be non-empty")
    if len(command) > 32:
        raise bad_request("command length must not exceed 32")
    if not description:
        raise bad_request("command description must be non-empty")
    if len(description) > 256:
        raise bad_request("command description length must not exceed 256")
    if not re.fullmatch(r"[a-z0-9_]+", command):
        raise bad_request("BOT_COMMAND_INVALID")
    return {"command": command, "description": description}
