"""The methods of the Bot API that a channel needs."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec
from anyio import AsyncContextManagerMixin

from thinkwell.channels.telegram._errors import TelegramRefused
from thinkwell.channels.telegram._reading import mended, read, result_of, updates_of
from thinkwell.channels.telegram._request import Requests
from thinkwell.channels.telegram._values import BotUser

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence
    from typing import Self

    import httpx
    from msgspec import Raw

    from thinkwell.channels.telegram._values import (
        BotCommand,
        ChatAddress,
        InlineKeyboard,
        ReplyMarkup,
        Update,
    )

DEFAULT_BASE_URL: Final = "https://api.telegram.org"

ParseMode: TypeAlias = Literal["HTML"]

_NO_PREVIEW: Final = {"is_disabled": True}
"""Bot API, LinkPreviewOptions: agents' texts have many links, and none is fetched for a preview."""


class _SentMessage(msgspec.Struct, frozen=True):
    message_id: int


class TelegramApi(AsyncContextManagerMixin):
    """One bot's requests to the Bot API. Use it inside its block.

    Every method raises a `TelegramError` if the request failed. There are no retries here: the caller knows
    the pace. Every request can safely be repeated except `send_message`, which might then send twice: see
    `TelegramNetworkError.sent`.

    Args:
        token: The bot's token from BotFather: ``<number>:<letters>``.
        base_url: Your own Bot API server. Plain HTTP only on this machine.
        client: Sends the requests, and is not closed; ``None``: a new client.
        timeout: Most seconds of a request; `get_updates` adds the time that it waits. `send_message` may
            take three times as long: after a timeout, it is unknown whether the message was sent.

    Raises:
        ValueError: The token or the address is malformed.
    """

    def __init__(
        self,
        token: str,
        *,
        base_url: str = DEFAULT_BASE_URL,
        client: httpx.AsyncClient | None = None,
        timeout: float = 20.0,
    ) -> None:
        if not timeout > 0:  # also refuses NaN
            raise ValueError(f"timeout={timeout!r}: it must be above 0")
        self._requests = Requests(token, base_url, client)
        self._timeout = timeout

    def __repr__(self) -> str:
        return f"TelegramApi({self._requests!r})"

    @asynccontextmanager
    async def __asynccontextmanager__(self) -> AsyncGenerator[Self]:
        async with self._requests.open():
            yield self

    @property
    def bot_id(self) -> int:
        """The bot's number, which is the first part of its token and no secret."""
        return self._requests.bot_id

    async def get_me(self) -> BotUser:
        """Return the bot's own user (getMe)."""
        return read("getMe", BotUser, await self._call("getMe"))

    async def get_updates(
        self, offset: int | None = None, *, wait: int = 0, limit: int = 100, allowed: Sequence[str] = ()
    ) -> list[Update]:
        """Return updates in order, and acknowledge earlier ones (getUpdates).

        Args:
            offset: The smallest id to return. Smaller ones count as handled.
            wait: Seconds to wait if there is no update; at most 50.
            limit: Most updates to return, 1 to 100.
            allowed: Kinds of updates; empty: as the last time.
        """
        result = await self._call(
            "getUpdates",
            {"offset": offset, "timeout": wait, "limit": limit, "allowed_updates": list(allowed) or None},
            wait=wait,
        )
        return updates_of(result)

    async def delete_webhook(self) -> None:
        """Remove the webhook, so that updates can be fetched (deleteWebhook)."""
        await self._call("deleteWebhook")

    async def send_message(
        self,
        chat: ChatAddress,
        text: str,
        *,
        parse_mode: ParseMode | None = None,
        reply_markup: ReplyMarkup | None = None,
        reply_to: int | None = None,
        quiet: bool = False,
    ) -> int:
        """Send a message, and return its id (sendMessage). Links in it get no preview.

        Args:
            chat: The chat to send to.
            text: 1 to 4,096 characters without its marks.
            parse_mode: The syntax of marks; ``None``: plain text.
            reply_markup: Buttons, or a request for a reply.
            reply_to: The message that this one replies to, if it still exists.
            quiet: Whether to send without a notification sound.
        """
        result = await self._call(
            "sendMessage",
            {
                **_to(chat),
                "text": text,
                "parse_mode": parse_mode,
                "reply_markup": reply_markup,
                "reply_parameters": reply_to
                and {"message_id": reply_to, "allow_sending_without_reply": True},
                "disable_notification": quiet or None,
                "link_preview_options": _NO_PREVIEW,
            },
            wait=2 * self._timeout,
        )
        return read("sendMessage", _SentMessage, result).message_id

    async def edit_message_text(
        self,
        chat: ChatAddress,
        message_id: int,
        text: str,
        *,
        parse_mode: ParseMode | None = None,
        reply_markup: InlineKeyboard | None = None,
    ) -> bool:
        """Edit a message, and return whether that changed it (editMessageText). No markup removes buttons."""
        return await self._did(
            "editMessageText",
            {
                "chat_id": chat.chat_id,
                "message_id": message_id,
                "text": text,
                "parse_mode": parse_mode,
                "reply_markup": reply_markup,
                "link_preview_options": _NO_PREVIEW,
            },
            unless=_unchanged,
        )

    async def edit_reply_markup(
        self, chat: ChatAddress, message_id: int, reply_markup: InlineKeyboard | None = None
    ) -> bool:
        """Replace a message's buttons, and return whether that changed it (editMessageReplyMarkup)."""
        return await self._did(
            "editMessageReplyMarkup",
            {"chat_id": chat.chat_id, "message_id": message_id, "reply_markup": reply_markup},
            unless=_unchanged,
        )

    async def delete_message(self, chat: ChatAddress, message_id: int) -> bool:
        """Delete a message, and return whether that was possible (deleteMessage): mostly for 48 hours."""
        return await self._did(
            "deleteMessage",
            {"chat_id": chat.chat_id, "message_id": message_id},
            unless=lambda refusal: refusal.reason == "message_gone",
        )

    async def answer_callback_query(self, query_id: str, text: str = "", *, alert: bool = False) -> bool:
        """Acknowledge a button press, and return whether that was in time (answerCallbackQuery).

        Args:
            query_id: `CallbackQuery.id`.
            text: Shown to the user: at most 200 characters.
            alert: Whether it is shown as a dialog, not as a line that disappears.
        """
        return await self._did(
            "answerCallbackQuery",
            {"callback_query_id": query_id, "text": text or None, "show_alert": alert or None},
            unless=lambda refusal: "query is too old" in refusal.description,
        )

    async def send_chat_action(self, chat: ChatAddress, action: str = "typing") -> None:
        """Show an activity of the bot for 5 s (sendChatAction)."""
        await self._call("sendChatAction", {**_to(chat), "action": action})

    async def set_my_commands(self, commands: Sequence[BotCommand]) -> None:
        """Set the menu of commands (setMyCommands)."""
        await self._call("setMyCommands", {"commands": list(commands)})

    async def send_message_draft(
        self,
        chat: ChatAddress,
        draft_id: int,
        text: str,
        *,
        parse_mode: ParseMode | None = None,
        can_stop: bool = False,
    ) -> None:
        """Show an unfinished message for 30 s, in a private chat (sendMessageDraft, Bot API 9.5).

        Args:
            chat: The chat to show it in.
            draft_id: Not 0. Drafts of the same id replace each other.
            text: At most 4,096 characters without its marks; empty: the bot thinks.
            parse_mode: The syntax of marks; ``None``: plain text.
            can_stop: Whether to show a stop button; see `MessageGenerationStopped` (Bot API 10.3).
        """
        await self._call(
            "sendMessageDraft",
            {
                **_to(chat),
                "draft_id": draft_id,
                "text": text,
                "parse_mode": parse_mode,
                "can_stop": can_stop or None,
            },
        )

    async def _did(
        self, method: str, parameters: dict[str, object], *, unless: Callable[[TelegramRefused], bool]
    ) -> bool:
        """Call a method, and return whether it did anything: a refusal may say that there was no need."""
        try:
            await self._call(method, parameters)
        except TelegramRefused as exc:
            if unless(exc):
                return False
            raise
        return True

    async def _call(
        self, method: str, parameters: dict[str, object] | None = None, *, wait: float = 0.0
    ) -> Raw:
        """Call a method with the parameters that are not ``None``, and return its result."""
        given = {name: value for name, value in (parameters or {}).items() if value is not None}
        answer = await self._requests.send(method, _encoded(given), wait + self._timeout)
        return result_of(method, answer, self._requests.shown)


def _unchanged(refusal: TelegramRefused) -> bool:
    return "message is not modified" in refusal.description


def _to(chat: ChatAddress) -> dict[str, object]:
    return {"chat_id": chat.chat_id, "message_thread_id": chat.thread_id}


def _encoded(parameters: dict[str, object]) -> bytes:
    try:
        return msgspec.json.encode(parameters)
    except UnicodeEncodeError:  # half a surrogate pair, which the Bot API refuses
        return mended(json.dumps(msgspec.to_builtins(parameters)).encode())
