"""Delivers runs to chats of Telegram.

For this the extra ``telegram`` is needed: ``pip install 'thinkwell[telegram]'``.
"""

from __future__ import annotations

from importlib.util import find_spec as _find_spec

if _find_spec("httpx") is None:
    raise ImportError(
        "thinkwell.channels.telegram needs httpx, which is not installed; pip install 'thinkwell[telegram]'",
        name="httpx",
    )

from thinkwell.channels.telegram._api import TelegramApi
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

__all__ = (
    "TelegramAnswerInvalid",
    "TelegramApi",
    "TelegramConflict",
    "TelegramError",
    "TelegramForbidden",
    "TelegramNetworkError",
    "TelegramRefused",
    "TelegramServerError",
    "TelegramThrottled",
    "TelegramUnauthorized",
)
