"""`TelegramChannel`: runs, delivered to chats of Telegram."""

from __future__ import annotations

import os
import secrets
from collections import OrderedDict
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, TypeVar

import anyio
from anyio import AsyncContextManagerMixin
from msgspec.structs import replace

from thinkwell.channels._protocols import ChannelCapabilities, ChannelCounts, DeliverySettings
from thinkwell.channels.telegram._answer import Answer, keep_typing
from thinkwell.channels.telegram._api import DEFAULT_BASE_URL, TelegramApi
from thinkwell.channels.telegram._asking import Questions
from thinkwell.channels.telegram._chat import Chats
from thinkwell.channels.telegram._incoming import Incoming, Messages
from thinkwell.channels.telegram._line import Line, closed
from thinkwell.channels.telegram._message import CAPABILITIES, Writing
from thinkwell.channels.telegram._pacing import Pacer
from thinkwell.channels.telegram._people import People
from thinkwell.channels.telegram._tasks import open_tasks

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Collection
    from typing import Self

    import httpx

    from thinkwell.channels._protocols import ChannelQuestion
    from thinkwell.channels.telegram._chat import Chat
    from thinkwell.channels.telegram._tasks import Tasks
    from thinkwell.channels.telegram._values import BotUser, ChatAddress

__all__ = ("TelegramChannel",)

T = TypeVar("T")

TOKEN: Final = "TELEGRAM_BOT_TOKEN"  # noqa: S105 - the name of a variable
"""The environment variable that has the bot's token."""

CLOSING: Final = 5.0
"""Seconds in which messages that are being written, and questions, are brought to a clean end on closing."""

MOST_COUNTED: Final = 1_000
"""Users of whom it is known what the last delivery took."""

MOST_LEFT: Final = 100
"""Users of whom an answer is kept that could not be brought to its end."""

TOKEN_BYTES: Final = 12
"""Random bytes in the data of a button."""


class TelegramChannel(AsyncContextManagerMixin):
    """Delivers runs to chats of Telegram, by a bot. Works inside of its block.

        async with TelegramChannel(allowed=[123456789]) as channel, anyio.create_task_group() as tasks:
            async for message in channel.messages():
                stream = agent.think().text(message.text).stream()
                tasks.start_soon(deliver, stream, channel, message.user_id)

    A ``user_id`` is the number of a chat, or ``<chat>:<topic>``, as `IncomingMessage.user_id` has it.

    While the agent writes, its message is edited as often as Telegram allows, and has a button that stops the
    run. What it thinks stands in a quote above. A text that is too long for a message goes on in another one.
    Questions have buttons; presses, and texts that answer a question, are taken while `messages` is iterated.

    What is sent at the end is tried again, for bounded time, where the network or Telegram has a fault. Where
    only the answer of Telegram was lost, a message may come twice; none is left out.

    Args:
        token: What BotFather gave for the bot; by default, the environment variable ``TELEGRAM_BOT_TOKEN``.
        allowed: The numbers of the people who may write to the bot and press its buttons, in private chats
            and in groups. Others who write are told the number that the owner has to add here.
        settings: How runs are delivered, unless the caller of `deliver` says otherwise. The edit interval and
            the least characters are always these: edits can be rarer than Telegram allows, not more frequent.
        markdown: Whether texts are Markdown, and shown as what that means.
        drafts: Whether an answer is shown as a draft while it is written, where the chat is private and
            Telegram takes that (Bot API 9.5): it is animated, and only the finished message makes a sound.
        base_url: A Bot API server of your own. Without TLS only on this machine.
        client: Sends the requests, and is not closed; ``None``: a client of its own.

    Raises:
        ValueError: There is no token, or it has not the form of one.
        TypeError: `allowed` has a value that is not a number.
    """

    def __init__(
        self,
        token: str | None = None,
        *,
        allowed: Collection[int] = (),
        settings: DeliverySettings | None = None,
        markdown: bool = False,
        drafts: bool = False,
        base_url: str = DEFAULT_BASE_URL,
        client: httpx.AsyncClient | None = None,
    ) -> None:
        token = os.environ.get(TOKEN) if token is None else token
        if not token:
            raise ValueError(
                f"there is no token for the bot: set the environment variable {TOKEN} to what BotFather gave"
            )
        self._api = TelegramApi(token, base_url=base_url, client=client)
        self._people = People(allowed)
        self._settings = settings or DeliverySettings()
        self._markdown = markdown
        self._capabilities = replace(CAPABILITIES, markdown=markdown)
        self._drafts = drafts
        self._pacer = Pacer()
        self._chats = Chats()
        self._last: OrderedDict[str, Line] = OrderedDict()
        """What the last delivery to each user took."""
        self._left: OrderedDict[str, Answer] = OrderedDict()
        """What could not be brought to its end, until that is tried again."""
        self._bot: BotUser | None = None
        self._tasks: Tasks | None = None
        self._incoming: Incoming | None = None
        self._questions: Questions | None = None

    def __repr__(self) -> str:
        return f"TelegramChannel({self._api!r})"

    @asynccontextmanager
    async def __asynccontextmanager__(self) -> AsyncGenerator[Self]:
        async with self._api, open_tasks() as self._tasks:
            self._questions = Questions(self._line, self._chats, self._tasks)
            self._incoming = Incoming(
                self, self._people, self._chats, self._questions, self._tasks, drafts=self._drafts
            )
            try:
                yield self
            finally:
                with anyio.move_on_after(CLOSING, shield=True):
                    await self._close(self._questions, self._incoming)
                self._tasks.cancel()
                self._tasks = self._questions = self._incoming = None

    async def _close(self, questions: Questions, incoming: Incoming) -> None:
        """Bring what is being written, and what is asked, to a clean end."""
        async with anyio.create_task_group() as tasks:
            for chat in self._chats:
                answer = chat.take_answer()
                if answer is not None:
                    tasks.start_soon(answer.tidy)
            tasks.start_soon(questions.close)
            tasks.start_soon(incoming.close)

    # What it can do

    @property
    def capabilities(self) -> ChannelCapabilities:
        """What can be done with messages of Telegram."""
        return self._capabilities

    @property
    def settings(self) -> DeliverySettings:
        """How runs are delivered, unless the caller of `deliver` says otherwise."""
        return self._settings

    @property
    def api(self) -> TelegramApi:
        """The Bot API, for what a channel does not do, such as to set the menu of commands."""
        return self._api

    def counts(self, user_id: str) -> ChannelCounts:
        """Return what was done for the delivery that runs, or for the last one."""
        line = self._last.get(user_id)
        if line is None:
            return ChannelCounts()
        return ChannelCounts(edits=line.edits, retries=line.retries, first_delivery=line.first_after)

    # People

    async def bot(self) -> BotUser:
        """Return who the bot is. Telegram is asked once.

        Raises:
            TelegramError: It does not say so.
        """
        if self._bot is None:
            self._bot = await self._api.get_me()
        return self._bot

    def messages(self) -> Messages:
        """Return an iterator over what people write to the bot. It goes on until it is cancelled.

        Texts of those who are allowed count, and in groups only commands, replies to the bot and what
        mentions it. What answers a question, and the presses of buttons, are taken meanwhile and are no
        messages. Nothing is lost where one stops to iterate, and goes on later with another iterator; only
        one can run at a time.

        Iterating raises, among what tells of a bot that cannot get messages:

            TelegramUnauthorized: There is no bot with this token.
            TelegramConflict: A webhook is set, or another program fetches the bot's messages.
        """
        if self._incoming is None:
            raise closed()
        return Messages(self._incoming)

    # Sending

    async def send(self, user_id: str, text: str) -> None:
        """Send a text as a message, or as several. Where a stream is open for the user, it ends with that.

        Raises:
            TelegramError: Something of it could not be sent. A call with the same text goes on there.
            ValueError: `user_id` is no chat.
        """
        with self._chats.use(user_id) as chat:
            answer = chat.take_answer()
            left = self._left.pop(user_id, None)
            if answer is None and left is not None and left.goal == text:
                answer, left = left, None
            self._tidy_later(user_id, left)
            answer = answer or self._answer(user_id, chat)
            answer.chat = chat
            try:
                await answer.finish(text)
            except BaseException:
                self._leave(user_id, answer)
                raise

    async def send_html(self, user_id: str, html: str) -> None:
        """Send a message in Telegram's HTML. Where a stream is open for the user, it ends with that.

        What could not be brought to its end before is done so by the same messages.

        Raises:
            TelegramError: It could not be sent.
            ValueError: `user_id` is no chat.
        """
        with self._chats.use(user_id) as chat:
            answer = chat.take_answer()
            left = self._left.pop(user_id, None)
            if answer is None and left is not None and left.expects(html):
                answer, left = left, None
            self._tidy_later(user_id, left)
            answer = answer or self._answer(user_id, chat)
            answer.chat = chat
            complete = False
            try:
                complete = await answer.add_html(html)
            finally:
                if not complete:
                    self._leave(user_id, answer)

    async def notify(self, user_id: str, text: str) -> None:
        """Send a text beside whatever is being written for the user, which `send` would end.

        Where the same text is about to be sent there, it is not sent twice: a person who writes too much is
        told so once, not a hundred times before the next answer.

        Raises:
            TelegramError: It could not be sent.
            ValueError: `user_id` is no chat.
        """
        with self._chats.use(user_id) as chat:
            if text in chat.notes:
                return
            chat.notes.add(text)
            try:
                writing = Writing(markdown=False)
                await Answer(self._line(chat.address), writing, chat, self._settings).finish(text)
            finally:
                chat.notes.discard(text)

    async def show_typing(self, user_id: str) -> None:
        """Show that the bot types, until this is cancelled.

        Raises:
            ValueError: `user_id` is no chat.
        """
        with self._chats.use(user_id) as chat:
            await keep_typing(self._api, chat.address)

    # While the agent works

    async def on_stream_start(self, user_id: str) -> None:
        """Begin an answer. The first message is sent when there is something to show.

        Raises:
            ValueError: `user_id` is no chat.
        """
        with self._chats.use(user_id) as chat:
            self._tidy_later(user_id, chat.take_answer())
            self._tidy_later(user_id, self._left.pop(user_id, None))
            private = chat.address.chat_id > 0
            draft_id = secrets.randbelow(2**30) + 1 if self._drafts and private else None
            answer = self._answer(user_id, chat, draft_id)
            answer.begin()
            self._running.start_soon(answer.edit)
            chat.answer = answer

    async def on_stream_chunk(self, user_id: str, chunk: str) -> None:
        """Add a piece of text; it is shown as soon as Telegram allows."""
        answer = self._open(user_id)
        if answer is not None and chunk:
            answer.writing.add(chunk)
            answer.wrote(len(chunk))

    async def on_stream_status(self, user_id: str, status: str) -> None:
        """Tell what the agent does, below the text, and that the bot types."""
        answer = self._open(user_id)
        if answer is not None:
            answer.writing.tell(status)
            answer.works()

    async def on_stream_thinking(self, user_id: str, chunk: str) -> None:
        """Add a piece of thinking, of which the end is shown in a quote."""
        answer = self._open(user_id)
        if answer is not None and chunk:
            answer.writing.think(chunk)
            answer.wrote(len(chunk))

    async def on_stream_thinking_end(self, user_id: str, seconds: float) -> None:
        """Fold up the thinking."""
        answer = self._open(user_id)
        if answer is not None:
            answer.writing.stop_thinking(seconds)
            answer.works()

    async def on_stream_end(self, user_id: str, full_text: str) -> None:
        """End with the whole text; return when all of it is there.

        Raises:
            TelegramError: Something of it could not be sent. `send` with the same text goes on there.
        """
        await self.send(user_id, full_text)

    # The person

    async def ask(self, user_id: str, question: ChannelQuestion) -> str | None:
        """Ask with buttons, or for a text, and return the answer; ``None`` where there can be none.

        Raises:
            TelegramError: The question could not be sent.
            ValueError: `user_id` is no chat.
        """
        if self._questions is None:
            raise closed()
        return await self._questions.ask(user_id, question)

    async def on_question_end(self, user_id: str, question: ChannelQuestion, outcome: str) -> None:
        """Show the outcome in the question's message, and remove its buttons."""
        if self._questions is not None:
            self._questions.ended(user_id, question, outcome)

    async def wait_stop(self, user_id: str) -> None:
        """Return when the button that stops the run was pressed.

        Raises:
            ValueError: `user_id` is no chat.
        """
        with self._chats.use(user_id) as chat:
            await chat.wait_stop()

    # Its parts

    @property
    def _running(self) -> Tasks:
        if self._tasks is None:
            raise closed()
        return self._tasks

    def _line(self, address: ChatAddress) -> Line:
        return Line(self._api, self._pacer, self._running, address)

    def _open(self, user_id: str) -> Answer | None:
        """Return what is being written for a user; ``None`` where `send` has ended it."""
        with self._chats.use(user_id) as chat:
            return chat.answer

    def _answer(self, user_id: str, chat: Chat, draft_id: int | None = None) -> Answer:
        line = self._line(chat.address)
        _remember(self._last, user_id, line, MOST_COUNTED)
        token = secrets.token_urlsafe(TOKEN_BYTES)
        writing = Writing(markdown=self._markdown)
        return Answer(line, writing, chat, self._settings, token, draft_id)

    def _leave(self, user_id: str, answer: Answer) -> None:
        """Keep what could not be brought to its end: the next try goes on there."""
        _remember(self._left, user_id, answer, MOST_LEFT)

    def _tidy_later(self, user_id: str, answer: Answer | None) -> None:
        if answer is not None:
            self._running.start_soon(self._tidy, user_id, answer)

    async def _tidy(self, user_id: str, answer: Answer) -> None:
        with self._chats.use(user_id) as answer.chat:
            await answer.tidy()


def _remember(known: OrderedDict[str, T], user_id: str, value: T, most: int) -> None:
    """Keep what is known last of a user, for a bounded number of them."""
    known[user_id] = value
    known.move_to_end(user_id)
    if len(known) > most:
        known.popitem(last=False)
