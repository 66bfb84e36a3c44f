"""What a server of the Bot API writes: users, chats, messages and updates (Bot API, Available types)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from bot_api.rules import JsonObject
    from bot_api.values import Chat, Person, Post, Query
    from bot_api.world import World
    from telegram_html import Entity

__all__ = (
    "bot",
    "callback_query",
    "chat",
    "commands",
    "data_of",
    "entity",
    "membership",
    "person",
    "post",
    "seconds",
    "units",
)

EPOCH: Final = 1_767_225_600
"""What Unix time it is when the clock of the event loop says 0."""

PHOTO: Final = {"file_id": "photo", "file_unique_id": "photo", "width": 90, "height": 90, "file_size": 1000}


def seconds(at: float) -> int:
    """Return a time of the event loop as a date."""
    return EPOCH + int(at)


def units(text: str) -> int:
    """Return the length of a text in UTF-16 units, in which Telegram counts."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def bot(world: World, *, full: bool = False) -> JsonObject:
    """Return who the bot is; ``full`` as getMe does."""
    body: JsonObject = {
        "id": world.bot_id,
        "is_bot": True,
        "first_name": world.name,
        "username": world.username,
    }
    if full:
        body |= {
            "can_join_groups": True,
            "can_read_all_group_messages": world.reads_all,
            "supports_inline_queries": False,
            "can_connect_to_business": False,
            "has_main_web_app": False,
            "has_topics_enabled": False,
        }
    return body


def person(who: Person) -> JsonObject:
    """Return a person as a User."""
    body: JsonObject = {"id": who.id, "is_bot": False, "first_name": who.name, "language_code": "en"}
    return body | ({"username": who.username} if who.username else {})


def chat(world: World, which: Chat) -> JsonObject:
    """Return a Chat."""
    who = world.person_of(which)
    if who is not None:
        named: JsonObject = {"username": who.username} if who.username else {}
        return {"id": which.id, "first_name": who.name, **named, "type": "private"}
    body: JsonObject = {"id": which.id, "title": which.title, "type": which.kind}
    return body | ({"is_forum": True} if which.forum else {})


def entity(one: Entity) -> JsonObject:
    """Return a MessageEntity."""
    body: JsonObject = {"type": one.type, "offset": one.offset, "length": one.length}
    for name in ("url", "language", "custom_emoji_id", "unix_time"):
        if getattr(one, name):
            body[name] = getattr(one, name)
    return body


def commands(text: str) -> tuple[JsonObject, ...]:
    """Return the commands in what a person writes. Other entities that Telegram finds are left out."""
    return tuple(
        {
            "type": "bot_command",
            "offset": units(text[: found.start()]),
            "length": units(found[0]),
        }
        for found in re.finditer(r"(?<!\S)/[A-Za-z0-9_]{1,32}(?:@\w+)?\b", text)
    )


def post(world: World, which: Post, *, with_reply: bool = True) -> JsonObject:
    """Return a Message."""
    body: JsonObject = {
        "message_id": which.id,
        "from": bot(world) if which.by is None else person(which.by),
        "chat": chat(world, which.chat),
        "date": seconds(which.sent_at),
    }
    if which.edited_at is not None:
        body["edit_date"] = seconds(which.edited_at)
    if which.thread is not None:
        body |= {"message_thread_id": which.thread, "is_topic_message": True}
    if which.reply_to is not None and with_reply and not which.reply_to.deleted:
        body["reply_to_message"] = post(world, which.reply_to, with_reply=False)
    if which.photo:
        body["photo"] = [PHOTO]
    if which.text:
        body["caption" if which.photo else "text"] = which.text
    if which.entities:
        body["caption_entities" if which.photo else "entities"] = list(which.entities)
    if which.markup is not None and "inline_keyboard" in which.markup:
        body["reply_markup"] = which.markup
    return body


def membership(world: World, which: Chat, status: str, by: Person) -> JsonObject:
    """Return a ChatMemberUpdated: what the bot is now in a chat."""
    was = "member" if status == "kicked" else "kicked"
    states: dict[str, JsonObject] = {
        "member": {"user": bot(world), "status": "member"},
        "kicked": {"user": bot(world), "status": "kicked", "until_date": 0},
    }
    return {
        "chat": chat(world, which),
        "from": person(by),
        "date": seconds(world.now()),
        "old_chat_member": states[was],
        "new_chat_member": states[status],
    }


def callback_query(world: World, query: Query, message: Post, by: Person, data: str) -> JsonObject:
    """Return a CallbackQuery. Of a message that was deleted, only the id is told."""
    gone: JsonObject = {"chat": chat(world, message.chat), "message_id": message.id, "date": 0}
    return {
        "id": query.id,
        "from": person(by),
        "message": gone if message.deleted else post(world, message),
        "chat_instance": str(-message.chat.id * 7),
        "data": data,
    }


def data_of(message: Post, label: str) -> str:
    """Return the data of a button that a message has or had, by its label or else its data.

    Raises:
        ValueError: There is no such button, or it does something else.
    """
    keyboards = [(said.markup or {}).get("inline_keyboard", []) for said in reversed(message.history)]
    buttons: list[JsonObject] = [button for rows in keyboards for row in rows for button in row]
    for name in ("text", "callback_data"):
        for button in buttons:
            if button.get(name) == label:
                if "callback_data" not in button:
                    raise ValueError(f"the button {label!r} sends no data")
                data: str = button["callback_data"]
                return data
    raise ValueError(f"no button {label!r} among {message.buttons}")
