"""The messages in a chat that show an answer or a question."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from thinkwell.channels.telegram._errors import TelegramError, TelegramRefused
from thinkwell.channels.telegram._values import InlineKeyboard

if TYPE_CHECKING:
    from thinkwell.channels._html import HtmlPiece
    from thinkwell.channels.telegram._api import ParseMode
    from thinkwell.channels.telegram._line import Line
    from thinkwell.channels.telegram._values import ReplyMarkup


class _Message(NamedTuple):
    id: int
    piece: HtmlPiece
    markup: ReplyMarkup | None


class Shown:
    """Messages that show the parts of an answer or a question, in order.

    If one of them was deleted, those after it move up and show its part.

    Args:
        line: Sends requests to the chat.
    """

    def __init__(self, line: Line) -> None:
        self._line = line
        self._messages: list[_Message] = []
        self._plainly = False
        """Whether Telegram cannot read our marks, which should never happen."""

    def __len__(self) -> int:
        return len(self._messages)

    @property
    def ids(self) -> list[int]:
        """The numbers of the messages."""
        return [message.id for message in self._messages]

    def shows(self, index: int, piece: HtmlPiece, markup: ReplyMarkup | None = None) -> bool:
        """Return whether a message already shows a part."""
        return index < len(self._messages) and self._messages[index][1:] == (piece, markup)

    async def show(self, index: int, piece: HtmlPiece, markup: ReplyMarkup | None = None) -> None:
        """Let a message show a part, or send the next one. Its turn was taken.

        Raises:
            TelegramError: The request failed.
        """
        await self._line.once(partial(self._put, index, piece, markup))

    async def settle(
        self, index: int, piece: HtmlPiece, markup: ReplyMarkup | None = None, *, send: bool = True
    ) -> None:
        """Let a message show a part, with retries for bounded time.

        Args:
            index: The message's number.
            piece: The part.
            markup: Its buttons.
            send: Whether to send it if it is missing.

        Raises:
            TelegramError: The request failed.
        """
        while (index < len(self._messages) or send) and not self.shows(index, piece, markup):
            try:
                await self._line.insist(partial(self._put, index, piece, markup))
            except TelegramError as exc:
                if not self.mended(exc):
                    raise

    async def remove(self, index: int) -> None:
        """Delete the messages from one on: no parts are left for them."""
        while len(self._messages) > index:
            message = self._messages.pop()
            with suppress(TelegramError):  # it then stays as it is
                delete = self._line.api.delete_message
                await self._line.insist(partial(delete, self._line.address, message.id))

    def mended(self, error: TelegramError) -> bool:
        """Return whether a repeated request would be different."""
        if not isinstance(error, TelegramRefused):
            return False
        if error.reason == "entities" and not self._plainly:
            self._plainly = True
            return True
        return _is_gone(error)

    def written(self, piece: HtmlPiece) -> tuple[str, ParseMode | None]:
        """Return a part as it is sent."""
        return (piece.text, None) if self._plainly and piece.text else (piece.html, "HTML")

    async def _put(self, index: int, piece: HtmlPiece, markup: ReplyMarkup | None) -> None:
        api, address = self._line.api, self._line.address
        text, mode = self.written(piece)
        if index == len(self._messages):
            id_ = await api.send_message(address, text, parse_mode=mode, reply_markup=markup)
            self._messages.append(_Message(id_, piece, markup))
            self._line.showed()
            return
        message = self._messages[index]
        buttons = markup if isinstance(markup, InlineKeyboard) else None
        try:
            changed = await api.edit_message_text(
                address, message.id, text, parse_mode=mode, reply_markup=buttons
            )
        except TelegramRefused as exc:
            if _is_gone(exc):
                self._messages.remove(message)
            raise
        self._line.edits += changed
        self._messages[index] = message._replace(piece=piece, markup=markup)


def _is_gone(error: TelegramRefused) -> bool:
    """Return whether the message to edit was deleted."""
    return error.reason == "message_gone" and error.method == "editMessageText"
