"""What can go wrong with requests to the Bot API, as one tree.

    TelegramError
    ├── TelegramNetworkError    there was no answer
    ├── TelegramAnswerInvalid   there was one, but not in the form of the Bot API
    ├── TelegramServerError     5xx: Telegram has a fault
    ├── TelegramThrottled       429: too much was sent; `retry_after` says for how long
    ├── TelegramUnauthorized    401, 404: there is no bot with this token
    ├── TelegramConflict        409: another program fetches the updates of this bot
    ├── TelegramForbidden       403: the person has blocked the bot, or it was removed from the chat
    └── TelegramRefused         400: this request cannot be fulfilled; `reason` says why

Each says by `temporary` whether the same request may be fulfilled later. No error holds the token.
"""

# ruff: noqa: N818 - names as in `thinkwell.errors`

from __future__ import annotations

from typing import Literal, TypeAlias

from thinkwell._conversations.errors import DeliveryError

__all__ = (
    "RefusalReason",
    "TelegramAnswerInvalid",
    "TelegramConflict",
    "TelegramError",
    "TelegramForbidden",
    "TelegramNetworkError",
    "TelegramRefused",
    "TelegramServerError",
    "TelegramThrottled",
    "TelegramUnauthorized",
)

RefusalReason: TypeAlias = Literal[
    "entities", "too_long", "empty", "message_gone", "chat_gone", "migrated", "other"
]
"""Why a request cannot be fulfilled: its marks cannot be read; its text is too long; its text is empty; the
message does not exist, or cannot be changed any more; the chat or its topic does not exist; the group has
become a supergroup, with another id."""


class TelegramError(DeliveryError):
    """A request to the Bot API was not fulfilled.

    Attributes:
        method: The method of the Bot API, such as ``sendMessage``.
        code: ``error_code`` of the answer, or the status of HTTP; 0 where there was no answer.
        description: What Telegram said, or what happened: a clean line, without the token.
        retry_after: Seconds to wait before the next request, where Telegram says so.
    """

    def __init__(self, method: str, code: int, description: str, retry_after: float | None = None) -> None:
        super().__init__(method, code, description, retry_after)
        self.method = method
        self.code = code
        self.description = description
        self.retry_after = retry_after

    @property
    def temporary(self) -> bool:
        """Whether the same request may be fulfilled later, so that it is worth to make it again."""
        return True

    def __str__(self) -> str:
        said = f"{self.description} ({self.code})" if self.code else self.description
        advice = self._advice()
        return f"Telegram, {self.method}: {said}{'; ' if advice else ''}{advice}"

    def _advice(self) -> str:
        """Return what to do; empty where that depends."""
        return ""


class TelegramNetworkError(TelegramError):
    """There was no answer: the network, or Telegram, did not work, or took too long.

    Attributes:
        sent: Whether Telegram may have got the request all the same, so that a message that is sent again
            might come twice.
    """

    sent: bool = True

    def _advice(self) -> str:
        return "check the network, a proxy that the environment names, and base_url"


class TelegramAnswerInvalid(TelegramError):
    """There was an answer, but not in the form of the Bot API: of a proxy or a login page, perhaps."""

    def _advice(self) -> str:
        return "check what base_url or a proxy leads to"


class TelegramServerError(TelegramError):
    """Telegram has a fault, which will pass (5xx)."""

    def _advice(self) -> str:
        return "try again later"


class TelegramThrottled(TelegramError):
    """Too much was sent (429)."""

    def _advice(self) -> str:
        return "wait" if self.retry_after is None else f"wait {self.retry_after:g} s"


class TelegramUnauthorized(TelegramError):
    """There is no bot with this token (401; for tokens of no known form 404 or 421)."""

    @property
    def temporary(self) -> bool:
        """``False``."""
        return False

    def _advice(self) -> str:
        return "take the token that BotFather shows for the bot, since /revoke there makes older ones invalid"


class TelegramConflict(TelegramError):
    """Another program fetches the updates of this bot (409).

    Attributes:
        webhook: Whether it is a webhook; else it is another program that polls.
    """

    webhook: bool = False

    @property
    def temporary(self) -> bool:
        """``True`` unless there is a webhook: the other program may end."""
        return not self.webhook

    def _advice(self) -> str:
        if self.webhook:
            return "remove it with TelegramApi.delete_webhook(), or take a bot of its own for this program"
        return "end the other program that runs with this token, or take a bot of its own for this one"


class TelegramForbidden(TelegramError):
    """The bot may not do that (403): the person has blocked it, or it was removed from the chat."""

    @property
    def temporary(self) -> bool:
        """``False``."""
        return False

    def _advice(self) -> str:
        return "the person has to start the bot, or to add it to the chat"


class TelegramRefused(TelegramError):
    """This request cannot be fulfilled (400, 413 and others).

    Attributes:
        reason: Why.
        migrated_to: Id of the supergroup that the group has become.
    """

    reason: RefusalReason = "other"
    migrated_to: int | None = None

    @property
    def temporary(self) -> bool:
        """``False`` unless the group has become a supergroup: a further request goes there."""
        return self.migrated_to is not None
