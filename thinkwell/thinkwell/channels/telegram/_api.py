"""The methods of the Bot API that a channel needs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec

from thinkwell.channels.telegram._errors import TelegramRefused
from thinkwell.channels.telegram._reading import mended, read, result_of, updates_of
from thinkwell.channels.telegram._request import Requests
from thinkwell.channels.telegram._values import BotUser

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType
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

__all__ = ("DEFAULT_BASE_URL", "ParseMode", "TelegramApi")

DEFAULT_BASE_URL: Final = "https://api.telegram.org"

ParseMode: TypeAlias = Literal["HTML"]

_NO_PREVIEW: Final = {"is_disabled": True}
"""Bot API, LinkPreviewOptions: texts of agents have many links, and none is fetched for a preview."""


class _SentMessage(msgspec.Struct, frozen=True):
    message_id: int


class TelegramApi:
    """Requests to the Bot API, one bot's. Works inside of its block.

    Every method raises a `TelegramError` where the request was not fulfilled. Nothing is tried again here, as
    it is the caller who knows the pace. Whatever was asked may safely be asked again, but for `send_message`,
    which might then send twice: see `TelegramNetworkError.sent`.

    Args:
        token: What BotFather gave for the bot: ``<number>:<letters>``.
        base_url: A Bot API server of your own. Without TLS only on this machine.
        client: Sends the requests, and is not closed; ``None``: a client of its own.
        timeout: Seconds that a request may take; `get_updates` adds the time that it waits. `send_message`
            may take three times as long: where it is given up, it is not known whether it has sent something.

    Raises:
        ValueError: The token has not the form of one, or the address cannot be used.
    """

    def __init__(
        self,
        token: str,
        *,
        base_url: str = DEFAULT_BASE_URL,
        client: httpx.AsyncClient | None = None,
        timeout: float = 20.0,
    ) -> None:
        if not timeout > 0:  # NaN is neither
            raise ValueError(f"timeout={timeout!r}: it must be above 0")
        self._requests = Requests(token, base_url, client)
        self._timeout = timeout

    def __repr__(self) -> str:
        return f"TelegramApi({self._requests!r})"

    async def __aenter__(self) -> Self:
        await self._requests.__aenter__()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._requests.__aexit__(exc_type, exc, traceback)

    @property
    def bot_id(self) -> int:
        """The bot's number, which is the first part of its token and no secret."""
        return self._requests.bot_id

    async def get_me(self) -> BotUser:
        """Return who the bot is (getMe)."""
        return read("getMe", BotUser, await self._call("getMe"))

    async def get_updates(
        self, offset: int | None = None, *, wait: int = 0, limit: int = 100, allowed: Sequence[str] = ()
    ) -> list[Update]:
        """Return what has happened, in order, and let Telegram forget what was before (getUpdates).

        Args:
            offset: The least number of an update to return. Those below it count as handled.
            wait: Seconds to wait for an update where there is none; at most 50.
            limit: How many updates to return, 1 to 100.
            allowed: Kinds of updates; empty: as the last time.
        """
        result = await self._call(
            "getUpdates",
            {"offset": offset, "timeout": wait, "limit": limit, "allowed_updates": list(allowed) or None},
            wait=wait,
        )
        return updates_of("getUpdates", result)

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
            chat: Where to.
            text: 1 to 4,096 characters once its marks are read.
            parse_mode: How marks are written; ``None``: there are none.
            reply_markup: Buttons, or a request for an answer.
            reply_to: The message that this one answers to, where it still exists.
            quiet: Whether the person's device makes no sound.
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
        """Replace a message, and return whether that changed it (editMessageText). No markup: buttons go."""
        return await self._changes(
            "editMessageText",
            {
                "chat_id": chat.chat_id,
                "message_id": message_id,
                "text": text,
                "parse_mode": parse_mode,
                "reply_markup": reply_markup,
                "link_preview_options": _NO_PREVIEW,
            },
        )

    async def edit_reply_markup(
        self, chat: ChatAddress, message_id: int, reply_markup: InlineKeyboard | None = None
    ) -> bool:
        """Replace a message's buttons, and return whether that changed it (editMessageReplyMarkup)."""
        return await self._changes(
            "editMessageReplyMarkup",
            {"chat_id": chat.chat_id, "message_id": message_id, "reply_markup": reply_markup},
        )

    async def delete_message(self, chat: ChatAddress, message_id: int) -> bool:
        """Delete a message, and return whether it could be deleted (deleteMessage): for 48 hours, mostly."""
        try:
            await self._call("deleteMessage", {"chat_id": chat.chat_id, "message_id": message_id})
        except TelegramRefused as exc:
            if exc.reason == "message_gone":
                return False
            raise
        return True

    async def answer_callback_query(self, query_id: str, text: str = "", *, alert: bool = False) -> bool:
        """Tell that a button's press was noticed, and return whether that was in time (answerCallbackQuery).

        Args:
            query_id: `CallbackQuery.id`.
            text: Shown to the person: at most 200 characters.
            alert: Whether it is shown as a box, and not as a line that goes by itself.
        """
        try:
            await self._call(
                "answerCallbackQuery",
                {"callback_query_id": query_id, "text": text or None, "show_alert": alert or None},
            )
        except TelegramRefused as exc:
            if "query is too old" in exc.description:
                return False
            raise
        return True

    async def send_chat_action(self, chat: ChatAddress, action: str = "typing") -> None:
        """Show for 5 s that the bot does something (sendChatAction)."""
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
        """Show for 30 s a message that is being written, in a private chat (sendMessageDraft, Bot API 9.5).

        Args:
            chat: Where to.
            draft_id: Not 0. Drafts of the same id replace each other.
            text: At most 4,096 characters once its marks are read; empty: that the bot thinks.
            parse_mode: How marks are written; ``None``: there are none.
            can_stop: Whether there is a button that stops it; see `MessageGenerationStopped` (Bot API 10.3).
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

    async def _changes(self, method: str, parameters: dict[str, object]) -> bool:
        """Call a method that edits, and return whether that changed anything."""
        try:
            await self._call(method, parameters)
        except TelegramRefused as exc:
            if "message is not modified" in exc.description:
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


def _to(chat: ChatAddress) -> dict[str, object]:
    return {"chat_id": chat.chat_id, "message_thread_id": chat.thread_id}


def _encoded(parameters: dict[str, object]) -> bytes:
    try:
        return msgspec.json.encode(parameters)
    except UnicodeEncodeError:  # half a surrogate pair, which no JSON of the Bot API may have
        return mended(json.dumps(msgspec.to_builtins(parameters)).encode())
