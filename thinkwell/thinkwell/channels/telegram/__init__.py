"""Deliver runs to Telegram chats.

This needs the extra ``telegram``: ``pip install 'thinkwell[telegram]'``.
"""

from __future__ import annotations

from importlib.util import find_spec as _find_spec

if _find_spec("httpx") is None:
    raise ImportError(
        "thinkwell.channels.telegram needs httpx, which is not installed; pip install 'thinkwell[telegram]'",
        name="httpx",
    )

from thinkwell.channels.telegram._api import TelegramApi
from thinkwell.channels.telegram._bot import serve
from thinkwell.channels.telegram._channel import TelegramChannel
from thinkwell.channels.telegram._errors import (
    TelegramAnswerInvalid,
    TelegramConflict,
    TelegramError,
    TelegramForbidden,
    TelegramNetworkError,
    TelegramRefused,
    TelegramServerError,
    TelegramThrottled,
    TelegramUnauthorized,
)
from thinkwell.channels.telegram._incoming import Messages
from thinkwell.channels.telegram._people import IncomingMessage, Sender
from thinkwell.channels.telegram._values import (
    BotCommand,
    BotUser,
    CallbackQuery,
    Chat,
    ChatAddress,
    ForceReply,
    InlineButton,
    InlineKeyboard,
    Message,
    MessageGenerationStopped,
    Person,
    RepliedMessage,
    Update,
)

__all__ = (
    "BotCommand",
    "BotUser",
    "CallbackQuery",
    "Chat",
    "ChatAddress",
    "ForceReply",
    "IncomingMessage",
    "InlineButton",
    "InlineKeyboard",
    "Message",
    "MessageGenerationStopped",
    "Messages",
    "Person",
    "RepliedMessage",
    "Sender",
    "TelegramAnswerInvalid",
    "TelegramApi",
    "TelegramChannel",
    "TelegramConflict",
    "TelegramError",
    "TelegramForbidden",
    "TelegramNetworkError",
    "TelegramRefused",
    "TelegramServerError",
    "TelegramThrottled",
    "TelegramUnauthorized",
    "Update",
    "serve",
)
