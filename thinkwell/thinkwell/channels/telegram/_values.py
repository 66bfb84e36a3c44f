"""Values of the Bot API: parts of its answers, and of requests."""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal, TypeAlias

from msgspec import Meta, Struct, field

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
            ValueError: It has another form.
        """
        found = _ADDRESS.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r:.100} is not a chat: use '<chat>' or '<chat>:<topic>', both numbers")
        return cls(int(found[1]), int(found[2]) if found[2] else None)

    def __str__(self) -> str:
        return str(self.chat_id) if self.thread_id is None else f"{self.chat_id}:{self.thread_id}"


class BotUser(Struct, frozen=True, kw_only=True):
    """The bot itself (Bot API, User, as getMe returns it)."""

    id: int
    first_name: str = ""
    username: str = ""


class Person(Struct, frozen=True, kw_only=True):
    """The author of a message or button press (Bot API, User). They may choose any name."""

    id: int
    is_bot: bool = False
    first_name: str = ""
    last_name: str = ""
    username: str = ""


class Chat(Struct, frozen=True, kw_only=True):
    """The chat of a message (Bot API, Chat)."""

    id: int
    type: str = ""
    """``private``, ``group``, ``supergroup`` or ``channel``."""
    title: str = ""
    is_forum: bool = False


class RepliedMessage(Struct, frozen=True, kw_only=True):
    """The message that another one replies to."""

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
    """The text of a picture or a file."""
    message_thread_id: int | None = None
    is_topic_message: bool = False
    reply_to_message: RepliedMessage | None = None

    @property
    def address(self) -> ChatAddress:
        """The address of an answer to it.

        A thread is not always a topic: in groups without topics, every chain of replies has a number.
        """
        return ChatAddress(self.chat.id, self.message_thread_id if self.is_topic_message else None)


class CallbackQuery(Struct, frozen=True, kw_only=True):
    """A button was pressed (Bot API, CallbackQuery)."""

    id: str
    from_: Person = field(name="from")
    message: Message | None = None
    """The message with the button; without text if it is too old."""
    data: str | None = None
    """`InlineButton.callback_data`, unless it was tampered with."""


class MessageGenerationStopped(Struct, frozen=True, kw_only=True):
    """The user stopped a draft (Bot API 10.3, MessageGenerationStopped)."""

    chat: Chat
    draft_id: int
    message_thread_id: int | None = None

    @property
    def address(self) -> ChatAddress:
        """The draft's chat."""
        return ChatAddress(self.chat.id, self.message_thread_id)


class Update(Struct, frozen=True, kw_only=True):
    """An update (Bot API, Update). Of unknown kinds, only the number is kept."""

    update_id: Annotated[int, Meta(ge=0)]  # an offset below 0 would make Telegram forget updates
    message: Message | None = None
    callback_query: CallbackQuery | None = None
    stopped_message_generation: MessageGenerationStopped | None = None
    fault: str | None = None
    """Why it could not be read; then nothing else is set."""


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
    """Asks the user's application to reply to the message (Bot API, ForceReply)."""

    force_reply: Literal[True]
    input_field_placeholder: str | None = None
    """1 to 64 characters."""
    selective: bool = False
    """Whether it concerns only users who are replied to, or mentioned in the text."""


class BotCommand(Struct, frozen=True):
    """A command in the bot's menu (Bot API, BotCommand)."""

    command: str
    """1 to 32 of a-z, 0-9 and _."""
    description: str
    """1 to 256 characters."""


ReplyMarkup: TypeAlias = InlineKeyboard | ForceReply
