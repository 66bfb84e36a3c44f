"""The methods of the Bot API that a channel needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType
    from typing import Self

    import httpx

    from thinkwell.channels.telegram._values import (
        BotCommand,
        BotUser,
        ChatAddress,
        InlineKeyboard,
        ReplyMarkup,
        Update,
    )

__all__ = ("DEFAULT_BASE_URL", "ParseMode", "TelegramApi")

DEFAULT_BASE_URL: Final = "https://api.telegram.org"

ParseMode: TypeAlias = Literal["HTML"]


class TelegramApi:
    """Requests to the Bot API, one bot's. Works inside of its block.

    Every method raises a `TelegramError` where the request was not fulfilled. Nothing is tried again here.

    Args:
        token: What BotFather gave for the bot: ``<number>:<letters>``.
        base_url: A Bot API server of your own. Without TLS only on this machine.
        client: Sends the requests, and is not closed; ``None``: a client of its own.
        timeout: Seconds that a request may take; `get_updates` adds the time that it waits.

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
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        raise NotImplementedError

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        raise NotImplementedError

    @property
    def bot_id(self) -> int:
        """The bot's number, which is the first part of its token and no secret."""
        raise NotImplementedError

    async def get_me(self) -> BotUser:
        """Return who the bot is (getMe)."""
        raise NotImplementedError

    async def get_updates(
        self, offset: int | None = None, *, wait: int = 0, limit: int = 100, allowed: Sequence[str] = ()
    ) -> list[Update]:
        """Return what has happened, at most `limit` updates, and forget what is before `offset` (getUpdates)."""
        raise NotImplementedError

    async def delete_webhook(self) -> None:
        """Remove the webhook, so that updates can be fetched (deleteWebhook)."""
        raise NotImplementedError

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
        raise NotImplementedError

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
        raise NotImplementedError

    async def edit_reply_markup(
        self, chat: ChatAddress, message_id: int, reply_markup: InlineKeyboard | None = None
    ) -> bool:
        """Replace a message's buttons, and return whether that changed it (editMessageReplyMarkup)."""
        raise NotImplementedError

    async def delete_message(self, chat: ChatAddress, message_id: int) -> bool:
        """Delete a message, and return whether there was one (deleteMessage)."""
        raise NotImplementedError

    async def answer_callback_query(self, query_id: str, text: str = "", *, alert: bool = False) -> bool:
        """Tell that a button's press was noticed, and return whether that was in time (answerCallbackQuery).

        Args:
            query_id: `CallbackQuery.id`.
            text: Shown to the person: at most 200 characters.
            alert: Whether it is shown as a box, and not as a line that goes by itself.
        """
        raise NotImplementedError

    async def send_chat_action(self, chat: ChatAddress, action: str = "typing") -> None:
        """Show for 5 s that the bot does something (sendChatAction)."""
        raise NotImplementedError

    async def set_my_commands(self, commands: Sequence[BotCommand]) -> None:
        """Set the menu of commands (setMyCommands)."""
        raise NotImplementedError

    async def send_message_draft(
        self, chat: ChatAddress, draft_id: int, text: str, *, parse_mode: ParseMode | None = None
    ) -> None:
        """Show a message that is being written, in a private chat (sendMessageDraft, Bot API 9.5).

        Args:
            chat: Where to.
            draft_id: Not 0. Drafts of the same id replace each other.
            text: At most 4,096 characters once its marks are read.
            parse_mode: How marks are written; ``None``: there are none.
        """
        raise NotImplementedError
