"""Values of the Bot API: what is read of its answers, and what goes into requests."""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal, TypeAlias

from msgspec import Meta, Struct, field

__all__ = (
    "BotCommand",
    "BotUser",
    "CallbackQuery",
    "Chat",
    "ChatAddress",
    "ForceReply",
    "InlineButton",
    "InlineKeyboard",
    "Message",
    "MessageGenerationStopped",
    "Person",
    "RepliedMessage",
    "ReplyMarkup",
    "Update",
)


_ADDRESS: Final = re.compile(r"(-?[1-9][0-9]{0,18})(?::([1-9][0-9]{0,18}))?", re.ASCII)


class ChatAddress(Struct, frozen=True):
    """A chat, or one topic of it."""

    chat_id: int
    """Below 0 for groups."""
    thread_id: int | None = None
    """The topic."""

    @classmethod
    def parse(cls, text: str) -> ChatAddress:
        """Read ``"<chat>"`` or ``"<chat>:<topic>"``, as `str` writes it.

        Raises:
            ValueError: It is neither.
        """
        found = _ADDRESS.fullmatch(text)
        if found is None:
            raise ValueError(
                f"{text!r:.100} is no chat: take '<chat>' or '<chat>:<topic>', both of them numbers"
            )
        return cls(int(found[1]), int(found[2]) if found[2] else None)

    def __str__(self) -> str:
        return str(self.chat_id) if self.thread_id is None else f"{self.chat_id}:{self.thread_id}"


class BotUser(Struct, frozen=True, kw_only=True):
    """The bot itself (Bot API, User, as getMe returns it)."""

    id: int
    first_name: str = ""
    username: str = ""


class Person(Struct, frozen=True, kw_only=True):
    """Who wrote a message or pressed a button (Bot API, User). They may call themselves anything."""

    id: int
    is_bot: bool = False
    first_name: str = ""
    last_name: str = ""
    username: str = ""


class Chat(Struct, frozen=True, kw_only=True):
    """Where a message is (Bot API, Chat)."""

    id: int
    type: str = ""
    """``private``, ``group``, ``supergroup`` or ``channel``."""
    title: str = ""
    is_forum: bool = False


class RepliedMessage(Struct, frozen=True, kw_only=True):
    """The message that another one answers to."""

    message_id: int
    from_: Person | None = field(default=None, name="from")


class Message(Struct, frozen=True, kw_only=True):
    """A message (Bot API, Message; InaccessibleMessage has the first three fields, and date 0)."""

    message_id: int
    chat: Chat
    date: int = 0
    """Seconds since 1970."""
    from_: Person | None = field(default=None, name="from")
    """``None``: a channel, or an anonymous administrator, wrote it."""
    text: str | None = None
    caption: str | None = None
    """What was written to a picture or a file."""
    message_thread_id: int | None = None
    is_topic_message: bool = False
    reply_to_message: RepliedMessage | None = None

    @property
    def address(self) -> ChatAddress:
        """Where an answer to it belongs.

        A thread is more than a topic: in groups without topics, every chain of replies has a number.
        """
        return ChatAddress(self.chat.id, self.message_thread_id if self.is_topic_message else None)


class CallbackQuery(Struct, frozen=True, kw_only=True):
    """A button was pressed (Bot API, CallbackQuery)."""

    id: str
    from_: Person = field(name="from")
    message: Message | None = None
    """The message with the button; without text where it is too old."""
    data: str | None = None
    """`InlineButton.callback_data`, where it was not tampered with."""


class MessageGenerationStopped(Struct, frozen=True, kw_only=True):
    """The person wants no more of a draft (Bot API 10.3, MessageGenerationStopped)."""

    chat: Chat
    draft_id: int
    message_thread_id: int | None = None

    @property
    def address(self) -> ChatAddress:
        """Where the draft is."""
        return ChatAddress(self.chat.id, self.message_thread_id)


class Update(Struct, frozen=True, kw_only=True):
    """Something that has happened (Bot API, Update). Of the kinds that we do not know, only the number is."""

    update_id: Annotated[int, Meta(ge=0)]  # an offset below 0 would make Telegram forget updates
    message: Message | None = None
    callback_query: CallbackQuery | None = None
    stopped_message_generation: MessageGenerationStopped | None = None
    fault: str | None = None
    """Why it could not be read: nothing else is set then."""


class InlineButton(Struct, frozen=True, omit_defaults=True):
    """A button under a message (Bot API, InlineKeyboardButton)."""

    text: str
    callback_data: str | None = None
    """1 to 64 bytes."""
    url: str | None = None
    style: Literal["danger", "success", "primary"] | None = None
    """Its colour (Bot API 9.4)."""


class InlineKeyboard(Struct, frozen=True):
    """Rows of buttons under a message (Bot API, InlineKeyboardMarkup). No rows: remove them."""

    inline_keyboard: tuple[tuple[InlineButton, ...], ...] = ()


class ForceReply(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Lets the person's application answer to the message (Bot API, ForceReply)."""

    force_reply: Literal[True]
    input_field_placeholder: str | None = None
    """1 to 64 characters."""
    selective: bool = False
    """Whether only those who are answered to, or are named in the text, are meant."""


class BotCommand(Struct, frozen=True):
    """A command, as the menu of the bot shows it (Bot API, BotCommand)."""

    command: str
    """1 to 32 of a-z, 0-9 and _."""
    description: str
    """1 to 256 characters."""


ReplyMarkup: TypeAlias = InlineKeyboard | ForceReply
