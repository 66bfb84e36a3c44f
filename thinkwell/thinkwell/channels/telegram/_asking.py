"""Questions to users, with buttons for the answers."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Final

import anyio

from thinkwell._display.text import line as clean_line
from thinkwell.channels._html import HtmlPiece, escape
from thinkwell.channels.telegram._errors import TelegramError
from thinkwell.channels.telegram._question_text import OUTCOME, PRESS, lay_out, prompt_for
from thinkwell.channels.telegram._shown import Shown
from thinkwell.channels.telegram._tasks import logged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from thinkwell._core.exit import BackgroundTasks
    from thinkwell.channels._protocols import ChannelQuestion
    from thinkwell.channels.telegram._chat import Chat, Chats
    from thinkwell.channels.telegram._line import Line
    from thinkwell.channels.telegram._people import Sender
    from thinkwell.channels.telegram._values import ChatAddress, Message

GRACE: Final = 1.0
"""Seconds to wait for a question's outcome before its message is finished without it."""

TOKEN: Final = 12
"""Random bytes in a button's data."""

NOT_OPEN: Final = "This question is no longer open."

NOTICE: Final = 200
"""Most characters of the notice after a button press (Bot API, answerCallbackQuery)."""

WITHDRAWN: Final = "no longer open"


class Questions:
    """Asks users questions, and takes their answers.

    Args:
        open_line: Opens the line to a chat.
        chats: The chats' states.
        tasks: Tasks that finish a question's message after the caller has left.
    """

    def __init__(
        self, open_line: Callable[[ChatAddress], Line], chats: Chats, tasks: BackgroundTasks
    ) -> None:
        self._open_line = open_line
        self._chats = chats
        self._tasks = tasks
        self._asked: dict[str, _Asked] = {}
        """All questions whose message is not in its last form, by token, oldest first."""
        self._changed = anyio.Event()

    def __len__(self) -> int:
        return len(self._asked)

    async def ask(self, user_id: str, question: ChannelQuestion) -> str | None:
        """Ask, and return the id of a choice, or a text.

        Raises:
            TelegramError: The question could not be sent.
        """
        with self._chats.use(user_id) as chat:
            one = _Asked(question, chat, self._open_line(chat.address))
            self._asked[one.token] = one
            chat.questions += 1
            try:
                async with chat.lock:
                    await one.put()
                await one.answered.wait()
                return one.answer
            finally:
                one.is_open = False
                chat.questions -= 1
                chat.look()
                end = logged(self._end, user_id, one)
                self._tasks.start_soon(end, never=partial(self._forget, one))

    def ended(self, user_id: str, question: ChannelQuestion, outcome: str) -> None:
        """Handle the outcome of a question, or of the form that it belongs to."""
        for one in self._asked.values():
            id_ = one.question.id
            if str(one.chat.address) == user_id and (id_ == question.id or id_.startswith(f"{question.id}.")):
                one.outcome = clean_line(outcome, OUTCOME // 2)
                one.told.set()

    def press(self, data: str, address: ChatAddress, by: Sender) -> str:
        """Handle a button press; return the notice for the user."""
        token, _, number = data.removeprefix(PRESS).rpartition(":")
        one = self._asked.get(token)
        if one is None or not one.is_open or one.answered.is_set() or one.line.address != address:
            return NOT_OPEN
        choices = one.layout.choices
        if not (number.isdecimal() and int(number) < len(choices)):
            return NOT_OPEN
        choice = choices[int(number)]
        one.take(choice.id, choice.label, by)
        return clean_line(choice.label, NOTICE)

    def take(self, message: Message, by: Sender) -> str | None:
        """Handle a message if it answers a question.

        A reply to the question does. In a private chat, every text except a command does while a question
        accepts text.

        Returns:
            ``None`` if it is not an answer; else the notice for the user, which may be empty.
        """
        text = message.text or ""
        replied = None if message.reply_to_message is None else message.reply_to_message.message_id
        for one in self._open_in(message.address):
            if replied in one.message_ids:
                if not one.question.takes_text:
                    return "Please press one of the buttons under the question."
                one.take(text, "answered", by)
                return ""
        if message.chat.type == "private" and replied is None and not text.startswith("/"):
            for one in self._open_in(message.address):
                if one.question.takes_text:
                    one.take(text, "answered", by)
                    return ""
        return None

    def _open_in(self, address: ChatAddress) -> Iterator[_Asked]:
        """Yield the open questions of a chat, the newest first."""
        for one in reversed(tuple(self._asked.values())):
            if one.is_open and not one.answered.is_set() and one.line.address == address:
                yield one

    async def close(self) -> None:
        """Withdraw open questions, and wait until all messages show the outcome."""
        for one in self._asked.values():
            one.answered.set()
            one.told.set()
        while self._asked:
            await self._changed.wait()

    async def _end(self, user_id: str, one: _Asked) -> None:
        """Show the outcome in the question's message, once it is known."""
        with self._chats.use(user_id):
            with anyio.move_on_after(GRACE):
                await one.told.wait()
            try:
                await one.show_outcome()
            finally:
                self._forget(one)

    def _forget(self, one: _Asked) -> None:
        del self._asked[one.token]
        self._changed.set()
        self._changed = anyio.Event()


class _Asked:
    """A question that was asked."""

    def __init__(self, question: ChannelQuestion, chat: Chat, line: Line) -> None:
        self.question: Final = question
        self.chat: Final = chat
        self.line: Final = line
        self.token: Final = token_urlsafe(TOKEN)
        self.layout: Final = lay_out(question, self.token)
        self._shown = Shown(line)
        self._prompt = Shown(line)
        """The message that asks for a typed answer."""
        self.is_open = True
        self.answered = anyio.Event()
        self.answer: str | None = None
        self.told = anyio.Event()
        self.outcome = WITHDRAWN
        self._by = ""

    @property
    def message_ids(self) -> list[int]:
        """The numbers of its messages."""
        return [*self._shown.ids, *self._prompt.ids]

    def take(self, answer: str, label: str, by: Sender) -> None:
        """Take the answer."""
        self.answer = answer
        self.outcome = clean_line(label, OUTCOME // 2)
        self._by = "" if self.line.address.chat_id > 0 else by.name
        self.answered.set()

    async def put(self) -> None:
        """Send the question.

        Raises:
            TelegramError: It could not be sent.
        """
        *above, last = enumerate(self.layout.messages)
        for index, html in above:
            await self._shown.settle(index, HtmlPiece(html, ""))
        await self._shown.settle(last[0], HtmlPiece(last[1], ""), self.layout.keyboard)
        if self.question.takes_text and not self.answered.is_set():
            html, markup = prompt_for(self.question)
            await self._prompt.settle(0, HtmlPiece(html, ""), markup)
        if not self.layout.choices and not self.question.takes_text:
            self.answered.set()  # no answer is possible

    async def show_outcome(self) -> None:
        """Remove the buttons, and show the outcome of the question."""
        await self.line.landed()
        *above, last = self.layout.messages
        by = f" ({self._by})" if self._by else ""
        html = f"{last}\n\n<b>→ {escape(f'{self.outcome}{by}')}</b>"
        with suppress(TelegramError):  # remaining buttons have no effect
            await self._shown.settle(len(above), HtmlPiece(html, ""), send=False)
        await self._prompt.remove(0)
