"""What the methods of the Bot API do, getUpdates apart, which waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bot_api import wire
from bot_api.keyboards import check_keyboard, read_commands, reply_markup
from bot_api.rules import Arguments, Refusal, as_object, bad_request, draft_content, message_content
from bot_api.values import Draft, Version
from telegram_html import MOST_ENTITIES

if TYPE_CHECKING:
    from collections.abc import Callable

    from bot_api.rules import JsonObject
    from bot_api.values import Chat, Post
    from bot_api.world import World
    from telegram_html import Parsed

    from thinkwell.events import JsonValue

__all__ = ("COUNTED", "METHODS")

LONGEST_NOTICE: Final = 200
"""Characters of the text of answerCallbackQuery."""

DELETABLE: Final = 48 * 3600.0
"""Seconds in which a message can be deleted (Bot API, deleteMessage)."""

ACTIONS: Final = ("typing", "upload_document")
"""Some of those that the Bot API has (sendChatAction)."""


def _chat(world: World, given: Arguments) -> Chat:
    """Return the chat, where the bot may write; that it was blocked is only noticed when it does."""
    if not given.text("chat_id"):
        raise bad_request("chat_id is empty")
    chat = world.known_chat(given.number("chat_id"))
    if chat is None:
        raise bad_request("chat not found")
    if chat.kind != "private" and chat.closed:
        raise Refusal(403, chat.closed)
    return chat


def _count(world: World, chat: Chat) -> None:
    """Take a message from the limits, and find out whether the person wants any."""
    world.limits.take(chat.id, world.now())
    _reach(world, chat)


def _reach(world: World, chat: Chat) -> None:
    person = world.person_of(chat)
    if person is not None and not person.started:
        raise Refusal(403, "Forbidden: bot can't initiate conversation with a user")
    if chat.closed:
        raise Refusal(403, chat.closed)


def _thread(chat: Chat, given: Arguments) -> int | None:
    number = given.number("message_thread_id")
    if number <= 0:
        return None
    if number not in chat.threads:
        raise bad_request("message thread not found")
    return number


def _found(world: World, chat: Chat, number: int, what: str) -> Post:
    post = next((post for post in chat.everything if post.id == number and not post.deleted), None)
    if post is None:
        raise bad_request(f"{what} not found")
    return post


def _reply_to(world: World, chat: Chat, given: Arguments) -> Post | None:
    parameters = as_object(given.json("reply_parameters", "can't parse reply parameters JSON object"))
    if parameters is None:
        parameters = {
            "message_id": given.number("reply_to_message_id"),
            "allow_sending_without_reply": given.flag("allow_sending_without_reply"),
        }
    number = int(parameters.get("message_id") or 0)
    if number <= 0:
        return None
    try:
        return _found(world, chat, number, "message to be replied")
    except Refusal:
        if parameters.get("allow_sending_without_reply"):
            return None
        raise


def _said(world: World, html: str, parsed: Parsed, markup: JsonObject | None) -> Version:
    """Return what a message becomes. It keeps so many entities, and loses the others without a word."""
    entities = tuple(wire.entity(entity) for entity in parsed.entities[:MOST_ENTITIES])
    return Version(at=world.now(), html=html, text=parsed.text, entities=entities, markup=markup)


def _get_me(world: World, given: Arguments) -> JsonValue:
    return wire.bot(world, full=True)


def _send_message(world: World, given: Arguments) -> JsonValue:
    html, parsed = message_content(given)
    markup = reply_markup(given)
    chat = _chat(world, given)
    thread = _thread(chat, given)
    reply_to = _reply_to(world, chat, given)
    check_keyboard(markup, editing=False)
    _count(world, chat)
    said = _said(world, html, parsed, markup)
    return wire.post(world, world.say(chat, said, thread=thread, reply_to=reply_to))


def _edited(
    world: World, given: Arguments, make: Callable[[Version, JsonObject | None], Version]
) -> JsonValue:
    """Edit a message: only one of the bot's own, and none that has a keyboard which is not inline."""
    markup = reply_markup(given)
    if not given.text("chat_id") and not given.text("message_id"):
        raise bad_request("message identifier is not specified")
    chat = _chat(world, given)
    post = _found(world, chat, given.number("message_id"), "message to edit")
    if post.by is not None or not (post.markup is None or "inline_keyboard" in post.markup):
        raise bad_request("message can't be edited")
    check_keyboard(markup, editing=True)
    _count(world, chat)
    said = make(post.history[-1], markup)
    if said.same_as(post.history[-1]):
        raise bad_request(
            "message is not modified: specified new message content and reply markup are exactly the same as "
            "a current content and reply markup of the message"
        )
    post.history.append(said)
    return wire.post(world, post)


def _edit_message_text(world: World, given: Arguments) -> JsonValue:
    html, parsed = message_content(given, too_long="MESSAGE_TOO_LONG")

    def make(last: Version, markup: JsonObject | None) -> Version:
        return _said(world, html, parsed, markup)

    return _edited(world, given, make)


def _edit_message_reply_markup(world: World, given: Arguments) -> JsonValue:
    def make(last: Version, markup: JsonObject | None) -> Version:
        return Version(at=world.now(), html=last.html, text=last.text, entities=last.entities, markup=markup)

    return _edited(world, given, make)


def _delete_message(world: World, given: Arguments) -> JsonValue:
    if not given.text("chat_id"):
        raise bad_request("chat identifier is not specified")
    if not given.number("message_id"):
        raise bad_request("message identifier is not specified")
    chat = _chat(world, given)
    post = _found(world, chat, given.number("message_id"), "message to delete")
    foreign = post.by is not None and chat.kind != "private"
    if foreign or world.now() - post.sent_at > DELETABLE:
        raise bad_request("message can't be deleted")
    post.deleted = True
    return True


def _send_chat_action(world: World, given: Arguments) -> JsonValue:
    if given.text("action").lower() not in ACTIONS:
        raise bad_request("wrong parameter action in request")
    chat = _chat(world, given)
    _thread(chat, given)
    _reach(world, chat)
    return True


def _answer_callback_query(world: World, given: Arguments) -> JsonValue:
    query = world.query(given.text("callback_query_id"))
    if query is None:
        raise bad_request("query is too old and response timeout expired or query ID is invalid")
    if len(given.text("text")) > LONGEST_NOTICE:
        raise bad_request("MESSAGE_TOO_LONG")
    query.answer = given.values
    return True


def _set_my_commands(world: World, given: Arguments) -> JsonValue:
    world.commands = read_commands(given)
    return True


def _get_my_commands(world: World, given: Arguments) -> JsonValue:
    return world.commands


def _delete_webhook(world: World, given: Arguments) -> JsonValue:
    world.webhook = ""
    if given.flag("drop_pending_updates"):
        world.feed.drop()
    return True


def _get_webhook_info(world: World, given: Arguments) -> JsonValue:
    return {
        "url": world.webhook,
        "has_custom_certificate": False,
        "pending_update_count": len(world.feed.waiting),
    }


def _send_message_draft(world: World, given: Arguments) -> JsonValue:
    """Show a draft. The error for groups is from logs of bots; that for a draft 0 is a guess."""
    html, parsed = draft_content(given)
    chat = _chat(world, given)
    thread = _thread(chat, given)
    if chat.kind != "private":
        raise bad_request("TEXTDRAFT_PEER_INVALID")
    if not given.number("draft_id"):
        raise bad_request("TEXTDRAFT_ID_INVALID")
    _count(world, chat)
    number = given.number("draft_id")
    world.show_draft(Draft(chat=chat, id=number, at=world.now(), html=html, text=parsed.text, thread=thread))
    return True


METHODS: Final[dict[str, Callable[[World, Arguments], JsonValue]]] = {
    "getMe": _get_me,
    "sendMessage": _send_message,
    "editMessageText": _edit_message_text,
    "editMessageReplyMarkup": _edit_message_reply_markup,
    "deleteMessage": _delete_message,
    "sendChatAction": _send_chat_action,
    "answerCallbackQuery": _answer_callback_query,
    "setMyCommands": _set_my_commands,
    "getMyCommands": _get_my_commands,
    "deleteWebhook": _delete_webhook,
    "getWebhookInfo": _get_webhook_info,
    "sendMessageDraft": _send_message_draft,
}
"""By name, as the documentation writes it; Telegram does not tell capitals from small letters."""

COUNTED: Final = frozenset(("sendMessage", "editMessageText", "editMessageReplyMarkup", "sendMessageDraft"))
"""What the limits are about."""
