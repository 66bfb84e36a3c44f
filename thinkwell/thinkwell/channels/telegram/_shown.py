"""The messages in a chat that show an answer."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from thinkwell.channels.telegram._errors import TelegramError, TelegramRefused
from thinkwell.channels.telegram._values import InlineButton, InlineKeyboard

if TYPE_CHECKING:
    from thinkwell.channels.telegram._api import ParseMode
    from thinkwell.channels.telegram._line import Line
    from thinkwell.channels.telegram._message import Part

STOP: Final = "s:"
"""The start of a stop button's data; the answer's token follows."""


class Shown:
    """Messages that show the parts of an answer, in order.

    If one of them was deleted, those after it move up and show its part.

    Args:
        line: Sends requests to the chat.
        token: Identifies the answer's stop button.
    """

    def __init__(self, line: Line, token: str) -> None:
        self._line = line
        self._token = token
        self._messages: list[_Message] = []
        self._plainly = False
        """Whether Telegram cannot read our marks, which should never happen."""

    def __len__(self) -> int:
        return len(self._messages)

    def shows(self, index: int, part: Part) -> bool:
        """Return whether a message already shows a part."""
        return index < len(self._messages) and self._messages[index].part == part

    async def show(self, index: int, part: Part) -> None:
        """Let a message show a part, or send the next one. Its turn was taken.

        Raises:
            TelegramError: The request failed.
        """
        await self._line.once(partial(self._put, index, part))

    async def settle(self, index: int, part: Part, *, send: bool = True) -> None:
        """Let a message show a part, with retries for bounded time.

        Args:
            index: The message's number.
            part: The part.
            send: Whether to send it if it is missing.

        Raises:
            TelegramError: The request failed.
        """
        while (index < len(self._messages) or send) and not self.shows(index, part):
            try:
                await self._line.insist(partial(self._put, index, part))
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

    def written(self, part: Part) -> tuple[str, ParseMode | None]:
        """Return a part as it is sent."""
        return (part.plain, None) if self._plainly and part.plain else (part.html, "HTML")

    async def _put(self, index: int, part: Part) -> None:
        api, address = self._line.api, self._line.address
        text, mode = self.written(part)
        keyboard = None
        if part.stop:
            keyboard = InlineKeyboard(((InlineButton("⏹ Stop", STOP + self._token),),))
        if index == len(self._messages):
            id_ = await api.send_message(address, text, parse_mode=mode, reply_markup=keyboard)
            self._messages.append(_Message(id_, part))
            self._line.showed()
            return
        message = self._messages[index]
        try:
            changed = await api.edit_message_text(
                address, message.id, text, parse_mode=mode, reply_markup=keyboard
            )
        except TelegramRefused as exc:
            if _is_gone(exc):
                self._messages.remove(message)
            raise
        self._line.edits += changed
        message.part = part


class _Message:
    __slots__ = ("id", "part")

    def __init__(self, message_id: int, part: Part) -> None:
        self.id = message_id
        self.part = part


def _is_gone(error: TelegramRefused) -> bool:
    """Return whether the message to edit was deleted."""
    return error.reason == "message_gone" and error.method == "editMessageText"
