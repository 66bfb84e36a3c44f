"""`TelegramChannel`: deliver runs to Telegram chats."""

from __future__ import annotations

import os
import secrets
from collections import OrderedDict
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, TypeVar

import anyio
from anyio import AsyncContextManagerMixin
from msgspec.structs import replace

from thinkwell._core.exit import background_tasks
from thinkwell.channels._protocols import ChannelCapabilities, ChannelCounts, DeliverySettings
from thinkwell.channels.telegram._api import DEFAULT_BASE_URL, TelegramApi
from thinkwell.channels.telegram._asking import Questions
from thinkwell.channels.telegram._chat import Answer, Chats, keep_typing
from thinkwell.channels.telegram._incoming import Incoming, Messages
from thinkwell.channels.telegram._line import Line, closed
from thinkwell.channels.telegram._message import CAPABILITIES, Writing
from thinkwell.channels.telegram._pacing import Pacer
from thinkwell.channels.telegram._people import People
from thinkwell.channels.telegram._tasks import logged

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Collection
    from typing import Self

    import httpx

    from thinkwell._core.exit import BackgroundTasks
    from thinkwell.channels._protocols import ChannelQuestion
    from thinkwell.channels.telegram._chat import Chat
    from thinkwell.channels.telegram._values import BotUser, ChatAddress

T = TypeVar("T")

TOKEN: Final = "TELEGRAM_BOT_TOKEN"  # noqa: S105 - the name of a variable
"""The environment variable with the bot's token."""

CLOSING: Final = 5.0
"""Seconds to finish unfinished messages and questions on closing."""

MOST_COUNTED: Final = 1_000
"""Most users whose last delivery is remembered."""

MOST_LEFT: Final = 100
"""Most users of whom an unfinished answer is kept."""

TOKEN_BYTES: Final = 12
"""Random bytes in a button's data."""


class TelegramChannel(AsyncContextManagerMixin):
    """Delivers runs to Telegram chats with a bot. Use it inside its block.

        async with TelegramChannel(allowed=[123456789]) as channel, anyio.create_task_group() as tasks:
            async for message in channel.messages():
                stream = agent.think().text(message.text).stream()
                tasks.start_soon(deliver, stream, channel, message.user_id)

    A ``user_id`` is a chat's number, or ``<chat>:<topic>``, as in `IncomingMessage.user_id`.

    While the agent writes, its message is edited as often as Telegram allows, and has a stop button. The
    thinking is in a quote above. A text that is too long for a message continues in another one. Questions
    have buttons; presses and typed answers are handled while `messages` is iterated.

    The final message is retried, for bounded time, after faults of the network or Telegram. If only
    Telegram's answer was lost, a message may appear twice; none is left out.

    Args:
        token: The bot's token from BotFather; by default, the environment variable ``TELEGRAM_BOT_TOKEN``.
        allowed: The numbers of the users who may write to the bot and press its buttons, in private chats and
            in groups. Other users are told the number that you need to add here.
        settings: The settings of deliveries, unless the caller of `deliver` gives others. The edit interval
            and the least characters always apply: edits can be rarer than Telegram allows, not more frequent.
        markdown: Whether to render texts as Markdown.
        drafts: Whether to show an unfinished answer as a draft, in private chats and if Telegram supports it
            (Bot API 9.5). A draft is animated, and only the finished message makes a sound.
        base_url: Your own Bot API server. Plain HTTP only on this machine.
        client: Sends the requests, and is not closed; ``None``: a new client.

    Raises:
        ValueError: The token is missing or malformed.
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
                f"there is no token for the bot: set the environment variable {TOKEN} to BotFather's"
            )
        self._api = TelegramApi(token, base_url=base_url, client=client)
        self._people = People(allowed)
        self._settings = settings or DeliverySettings()
        self._capabilities = replace(CAPABILITIES, markdown=markdown)
        self._drafts = drafts
        self._pacer = Pacer()
        self._chats = Chats()
        self._last: OrderedDict[str, Line] = OrderedDict()
        """The counts of each user's last delivery."""
        self._left: OrderedDict[str, Answer] = OrderedDict()
        """Answers that could not be finished, until they are retried."""
        self._bot: BotUser | None = None
        self._tasks: BackgroundTasks | None = None
        self._incoming: Incoming | None = None
        self._questions: Questions | None = None

    def __repr__(self) -> str:
        return f"TelegramChannel({self._api!r})"

    @asynccontextmanager
    async def __asynccontextmanager__(self) -> AsyncGenerator[Self]:
        async with self._api, background_tasks() as self._tasks:
            self._questions = Questions(self._line, self._chats, self._tasks)
            self._incoming = Incoming(
                self, self._people, self._chats, self._questions, self._tasks, drafts=self._drafts
            )
            try:
                yield self
            finally:
                with anyio.move_on_after(CLOSING, shield=True):
                    await self._close(self._questions, self._incoming)
                self._tasks = self._questions = self._incoming = None

    async def _close(self, questions: Questions, incoming: Incoming) -> None:
        """Finish the messages of answers and questions."""
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
        """What Telegram's messages can do."""
        return self._capabilities

    @property
    def settings(self) -> DeliverySettings:
        """The settings of deliveries, unless the caller of `deliver` gives others."""
        return self._settings

    @property
    def api(self) -> TelegramApi:
        """The Bot API, for everything else, such as the menu of commands."""
        return self._api

    def counts(self, user_id: str) -> ChannelCounts:
        """Return the counts of the current delivery, or of the last one."""
        line = self._last.get(user_id)
        if line is None:
            return ChannelCounts()
        return ChannelCounts(edits=line.edits, retries=line.retries, first_delivery=line.first_after)

    # People

    async def bot(self) -> BotUser:
        """Return the bot's own user. Telegram is asked once.

        Raises:
            TelegramError: Telegram could not be asked.
        """
        if self._bot is None:
            self._bot = await self._api.get_me()
        return self._bot

    def messages(self) -> Messages:
        """Return an iterator over messages to the bot. It runs until it is cancelled.

        It yields texts of allowed users; in groups only commands, replies to the bot and mentions of it.
        Answers to questions and button presses are handled meanwhile, and not yielded. You may stop
        iterating, and continue later with another iterator: nothing is lost. Only one can run at a time.

        Iterating raises, among the errors of a bot that cannot get messages:

            TelegramUnauthorized: No bot has this token.
            TelegramConflict: A webhook is set, or another program fetches the bot's messages.
        """
        if self._incoming is None:
            raise closed()
        return Messages(self._incoming)

    # Sending

    async def send(self, user_id: str, text: str) -> None:
        """Send a text as one message or several. This ends the user's open stream, if there is one.

        Raises:
            TelegramError: A part of it could not be sent. A call with the same text continues there.
            ValueError: `user_id` is not a chat.
        """
        await self._finish(user_id, lambda left: left.goal == text, lambda answer: answer.finish(text))

    async def send_html(self, user_id: str, html: str) -> None:
        """Send a message in Telegram's HTML. This ends the user's open stream, if there is one.

        The same messages finish an answer that could not be finished before.

        Raises:
            TelegramError: It could not be sent.
            ValueError: `user_id` is not a chat.
        """
        await self._finish(user_id, lambda left: left.expects(html), lambda answer: answer.add_html(html))

    async def notify(self, user_id: str, text: str) -> None:
        """Send a text beside the user's open stream, which `send` would end.

        The same text is not queued twice: a user who writes too much gets the notice once, not a hundred
        times before the next answer.

        Raises:
            TelegramError: It could not be sent.
            ValueError: `user_id` is not a chat.
        """
        with self._chats.use(user_id) as chat:
            if text in chat.notes:
                return
            chat.notes.add(text)
            try:
                line, writing = self._line(chat.address), Writing(CAPABILITIES)
                await Answer(line, writing, chat, self._settings).finish(text)
            finally:
                chat.notes.discard(text)

    async def show_typing(self, user_id: str) -> None:
        """Show that the bot types, until this is cancelled.

        Raises:
            ValueError: `user_id` is not a chat.
        """
        with self._chats.use(user_id) as chat:
            await keep_typing(self._api, chat.address)

    # While the agent works

    async def on_stream_start(self, user_id: str) -> None:
        """Begin an answer. The first message is sent with the first text.

        Raises:
            ValueError: `user_id` is not a chat.
        """
        with self._chats.use(user_id) as chat:
            self._tidy_later(user_id, chat.take_answer())
            self._tidy_later(user_id, self._left.pop(user_id, None))
            private = chat.address.chat_id > 0
            draft_id = secrets.randbelow(2**30) + 1 if self._drafts and private else None
            answer = self._answer(user_id, chat, draft_id)
            answer.begin()
            self._running.start_soon(logged(answer.edit))
            chat.answer = answer

    async def on_stream_chunk(self, user_id: str, chunk: str) -> None:
        """Add a piece of text. It is shown as soon as Telegram allows."""
        answer = self._open(user_id)
        if answer is not None and chunk:
            answer.writing.add(chunk)
            answer.wrote(len(chunk))

    async def on_stream_status(self, user_id: str, status: str) -> None:
        """Show the agent's status below the text, and that the bot types."""
        answer = self._open(user_id)
        if answer is not None:
            answer.writing.tell(status)
            answer.works()

    async def on_stream_thinking(self, user_id: str, chunk: str) -> None:
        """Add a piece of thinking. Its end is shown in a quote."""
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
        """End with the whole text; return when all of it is sent.

        Raises:
            TelegramError: A part of it could not be sent. `send` with the same text continues there.
        """
        await self.send(user_id, full_text)

    # The user

    async def ask(self, user_id: str, question: ChannelQuestion) -> str | None:
        """Ask with buttons, or for a text, and return the answer, or ``None`` if none is possible.

        Raises:
            TelegramError: The question could not be sent.
            ValueError: `user_id` is not a chat.
        """
        if self._questions is None:
            raise closed()
        return await self._questions.ask(user_id, question)

    async def on_question_end(self, user_id: str, question: ChannelQuestion, outcome: str) -> None:
        """Show the outcome in the question's message, and remove its buttons."""
        if self._questions is not None:
            self._questions.ended(user_id, question, outcome)

    async def wait_stop(self, user_id: str) -> None:
        """Return when the stop button was pressed.

        Raises:
            ValueError: `user_id` is not a chat.
        """
        with self._chats.use(user_id) as chat:
            await chat.wait_stop()

    # Its parts

    @property
    def _running(self) -> BackgroundTasks:
        if self._tasks is None:
            raise closed()
        return self._tasks

    def _line(self, address: ChatAddress) -> Line:
        return Line(self._api, self._pacer, self._running, address)

    def _open(self, user_id: str) -> Answer | None:
        """Return a user's unfinished answer, or ``None`` if `send` has ended it."""
        with self._chats.use(user_id) as chat:
            return chat.answer

    def _answer(self, user_id: str, chat: Chat, draft_id: int | None = None) -> Answer:
        line = self._line(chat.address)
        _remember(self._last, user_id, line, MOST_COUNTED)
        token = secrets.token_urlsafe(TOKEN_BYTES)
        return Answer(line, Writing(self._capabilities), chat, self._settings, token, draft_id)

    async def _finish(
        self,
        user_id: str,
        continues: Callable[[Answer], bool],
        finish: Callable[[Answer], Awaitable[bool]],
    ) -> None:
        """Finish the open answer, one that could not be finished before, or a new one.

        Args:
            user_id: The user.
            continues: Returns whether that goes on with an unfinished answer.
            finish: Sends it, and returns whether nothing of it is left. The next attempt continues otherwise.
        """
        with self._chats.use(user_id) as chat:
            answer = chat.take_answer()
            left = self._left.pop(user_id, None)
            if answer is None and left is not None and continues(left):
                answer, left = left, None
            self._tidy_later(user_id, left)
            answer = answer or self._answer(user_id, chat)
            answer.chat = chat
            complete = False
            try:
                complete = await finish(answer)
            finally:
                if not complete:
                    _remember(self._left, user_id, answer, MOST_LEFT)

    def _tidy_later(self, user_id: str, answer: Answer | None) -> None:
        if answer is not None:
            self._running.start_soon(logged(self._tidy, user_id, answer))

    async def _tidy(self, user_id: str, answer: Answer) -> None:
        with self._chats.use(user_id) as answer.chat:
            await answer.tidy()


def _remember(known: OrderedDict[str, T], user_id: str, value: T, most: int) -> None:
    """Keep the latest value of a user, for a bounded number of users."""
    known[user_id] = value
    known.move_to_end(user_id)
    if len(known) > most:
        known.popitem(last=False)
