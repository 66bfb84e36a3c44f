"""What the Bot API takes and what it refuses, in its words.

Sources: the documentation of the Bot API; Telegram's own Bot API server (github.com/tdlib/telegram-bot-api,
``Client.cpp``) for what is checked first and how errors are worded, and TDLib on which it is built
(github.com/tdlib/td, ``MessageEntity.cpp``, ``ReplyMarkup.cpp``, ``misc.cpp``).
"""

from __future__ import annotations

import json
import re
from html import escape
from typing import TYPE_CHECKING, TypeAlias, TypeGuard

from telegram_html import LONGEST_REQUEST, Entity, Parsed, ParseError, parse, received

if TYPE_CHECKING:
    from collections.abc import Mapping

    from thinkwell.events import JsonValue

__all__ = (
    "Arguments",
    "JsonObject",
    "Refusal",
    "as_list",
    "as_object",
    "bad_request",
    "draft_content",
    "message_content",
    "too_many_requests",
)

JsonObject: TypeAlias = "dict[str, JsonValue]"


class Refusal(Exception):  # noqa: N818 - an answer like others
    """A request is not fulfilled."""

    def __init__(self, status: int, description: str, retry_after: int | None = None) -> None:
        super().__init__(description)
        self.status = status
        self.description = description
        self.retry_after = retry_after

    @property
    def answer(self) -> JsonObject:
        """The body of the answer."""
        body: JsonObject = {"ok": False, "error_code": self.status, "description": self.description}
        if self.retry_after is not None:
            body["parameters"] = {"retry_after": self.retry_after}
        return body


def as_object(value: JsonValue) -> JsonObject | None:
    """Return a value of JSON that is an object."""
    return value if _is_object(value) else None


def as_list(value: JsonValue) -> list[JsonValue] | None:
    """Return a value of JSON that is an array."""
    return value if _is_list(value) else None


def _is_object(value: JsonValue) -> TypeGuard[JsonObject]:
    return isinstance(value, dict)


def _is_list(value: JsonValue) -> TypeGuard[list[JsonValue]]:
    return isinstance(value, list)


def bad_request(description: str) -> Refusal:
    """Return an error 400. Telegram's words begin with a small letter there, its codes do not."""
    return Refusal(400, f"Bad Request: {description}")


def too_many_requests(seconds: int) -> Refusal:
    """Return an error 429."""
    return Refusal(429, f"Too Many Requests: retry after {seconds}", seconds)


class Arguments:
    """Parameters of a request. All are texts, as they are to Telegram's server."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self.values = values

    def text(self, name: str) -> str:
        """Return a parameter; empty where it is not given."""
        return self.values.get(name, "")

    def number(
        self, name: str, default: int = 0, *, least: int | None = None, most: int | None = None
    ) -> int:
        """Return a number, which is 0 where it is none, and moved into its range without a word."""
        text = self.text(name)
        found = re.match(r"-?[0-9]+", text)
        number = default if not text else int(found[0]) if found else 0
        number = number if least is None else max(number, least)
        return number if most is None else min(number, most)

    def flag(self, name: str) -> bool:
        """Return whether something is switched on."""
        return self.text(name).lower() in ("true", "yes", "1")

    def json(self, name: str, otherwise: str) -> JsonValue:
        """Return the value of a parameter that is JSON, ``None`` where it is not given."""
        text = self.text(name)
        if not text:
            return None
        try:
            return json.loads(text)
        except ValueError:
            raise bad_request(otherwise) from None


def message_content(arguments: Arguments, *, too_long: str = "message is too long") -> tuple[str, Parsed]:
    """Return what a message shall be: as HTML, and read.

    An edit that is too long is refused by the code ``MESSAGE_TOO_LONG``, as only Telegram itself sees it.
    """
    if not arguments.text("text"):
        raise bad_request("message text is empty")
    html, parsed = _parsed(arguments)
    try:
        return html, received(parsed)
    except ParseError as error:
        description = str(error)
        raise bad_request(too_long if description == "message is too long" else description) from None


def draft_content(arguments: Arguments) -> tuple[str, Parsed]:
    """Return what a draft shall be; it may be empty (Bot API, sendMessageDraft)."""
    return message_content(arguments) if arguments.text("text") else ("", Parsed(""))


def _parsed(arguments: Arguments) -> tuple[str, Parsed]:
    text = arguments.text("text")
    mode = arguments.text("parse_mode").lower()
    if mode == "html":
        try:
            return text, parse(text)
        except ParseError as error:
            raise bad_request(str(error)) from None
    if mode not in ("", "none"):
        known = mode in ("markdown", "markdownv2")
        raise bad_request("this server does not read Markdown" if known else "unsupported parse_mode")
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise bad_request("strings must be encoded in UTF-8")
    if len(text.encode()) > LONGEST_REQUEST:
        raise bad_request("text is too long")
    return escape(text, quote=False), Parsed(text, _entities(arguments))


def _entities(arguments: Arguments) -> tuple[Entity, ...]:
    entities: list[Entity] = []
    for given in as_list(arguments.json("entities", "can't parse entities JSON object")) or []:
        one = as_object(given)
        if one is None or not {"type", "offset", "length"} <= one.keys():
            raise bad_request("can't parse MessageEntity: expected an Object")
        kept = {name: one[name] for name in ("type", "offset", "length", "url", "language") if name in one}
        entities.append(Entity(**kept))
    return tuple(sorted(entities, key=lambda one: (one.offset, -one.length)))
