"""Errors of requests to the Bot API, as one tree.

    TelegramError
    ├── TelegramNetworkError    no answer
    ├── TelegramAnswerInvalid   an answer that is not in the form of the Bot API
    ├── TelegramServerError     5xx: a fault of Telegram
    ├── TelegramThrottled       429: too many requests; `retry_after` is the pause
    ├── TelegramUnauthorized    401, 404: no bot has this token
    ├── TelegramConflict        409: another program fetches this bot's updates
    ├── TelegramForbidden       403: the user has blocked the bot, or it was removed from the chat
    └── TelegramRefused         400: the request is refused; `reason` says why

`temporary` says whether a retry may succeed. No error contains the token.
"""

# ruff: noqa: N818 - names as in `thinkwell.errors`

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from thinkwell._conversations.errors import DeliveryError

RefusalReason: TypeAlias = Literal[
    "entities", "too_long", "empty", "message_gone", "chat_gone", "migrated", "other"
]
"""Why a request is refused: its marks cannot be read; its text is too long; its text is empty; the message
does not exist, or can no longer be changed; the chat or its topic does not exist; the group has become a
supergroup, with another id."""


@dataclass(eq=False, repr=False)
class TelegramError(DeliveryError):
    """A request to the Bot API failed.

    Attributes:
        method: The method of the Bot API, such as ``sendMessage``.
        code: ``error_code`` of the answer, or the HTTP status; 0 without an answer.
        description: Telegram's description, or the cause: a clean line without the token.
        retry_after: Seconds to wait before the next request, if Telegram says so.
    """

    method: str
    code: int
    description: str
    retry_after: float | None = None

    @property
    def temporary(self) -> bool:
        """Whether a retry may succeed later."""
        return True

    def __str__(self) -> str:
        said = f"{self.description} ({self.code})" if self.code else self.description
        advice = self._advice()
        return f"Telegram, {self.method}: {said}{'; ' if advice else ''}{advice}"

    def _advice(self) -> str:
        """Return what to do; empty if that depends."""
        return ""


class TelegramNetworkError(TelegramError):
    """There was no answer: the network or Telegram failed, or took too long.

    Attributes:
        sent: Whether Telegram may have received the request, so that a message that is sent again may
            appear twice.
    """

    sent: bool = True

    def _advice(self) -> str:
        return "check the network, proxy settings in the environment, and base_url"


class TelegramAnswerInvalid(TelegramError):
    """The answer is not in the form of the Bot API: of a proxy or a login page, perhaps."""

    def _advice(self) -> str:
        return "check where base_url or a proxy leads"


class TelegramServerError(TelegramError):
    """Telegram has a temporary fault (5xx)."""

    def _advice(self) -> str:
        return "try again later"


class TelegramThrottled(TelegramError):
    """Too many requests (429)."""

    def _advice(self) -> str:
        return "wait" if self.retry_after is None else f"wait {self.retry_after:g} s"


class TelegramUnauthorized(TelegramError):
    """No bot has this token (401; for malformed tokens 404 or 421)."""

    @property
    def temporary(self) -> bool:
        """``False``."""
        return False

    def _advice(self) -> str:
        return "use the token that BotFather shows for the bot: /revoke there makes older ones invalid"


class TelegramConflict(TelegramError):
    """Another program fetches this bot's updates (409).

    Attributes:
        webhook: Whether it is a webhook; else another program polls.
    """

    webhook: bool = False

    @property
    def temporary(self) -> bool:
        """``True`` unless there is a webhook: the other program may end."""
        return not self.webhook

    def _advice(self) -> str:
        if self.webhook:
            return "remove it with TelegramApi.delete_webhook(), or use another bot for this program"
        return "end the other program that runs with this token, or use another bot for this one"


class TelegramForbidden(TelegramError):
    """The bot is not allowed to (403): the user has blocked it, or it was removed from the chat."""

    @property
    def temporary(self) -> bool:
        """``False``."""
        return False

    def _advice(self) -> str:
        return "the user has to start the bot, or add it to the chat"


class TelegramRefused(TelegramError):
    """The request is refused (400, 413 and others).

    Attributes:
        reason: Why.
        migrated_to: The id of the supergroup that the group has become.
    """

    reason: RefusalReason = "other"
    migrated_to: int | None = None

    @property
    def temporary(self) -> bool:
        """``False`` unless the group has become a supergroup: the next request goes there."""
        return self.migrated_to is not None
