"""Messages to the bot, and button presses."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, Protocol, Self

import anyio

from thinkwell.channels.telegram._errors import TelegramError
from thinkwell.channels.telegram._people import IncomingMessage, Seldom, addressed, sender
from thinkwell.channels.telegram._question_text import PRESS
from thinkwell.channels.telegram._tasks import logged
from thinkwell.channels.telegram._updates import ALLOWED, Updates

if TYPE_CHECKING:
    from thinkwell._core.exit import BackgroundTasks
    from thinkwell.channels.telegram._api import TelegramApi
    from thinkwell.channels.telegram._asking import Questions
    from thinkwell.channels.telegram._chat import Chats
    from thinkwell.channels.telegram._people import People
    from thinkwell.channels.telegram._values import (
        BotUser,
        CallbackQuery,
        ChatAddress,
        Message,
        MessageGenerationStopped,
        Update,
    )

DRAFT_STOPPED: Final = "stopped_message_generation"
"""The kind of update for a draft's stop button."""

MOST_ANSWERS: Final = 32
"""Presses that are answered at the same time. Further ones are handled, but not answered."""

REMINDED: Final = 60.0
"""Seconds between two reminders in a chat that only texts can be read: an album has many messages."""

FIRST_PAUSE: Final = 1.0
"""Seconds before getMe is retried; doubled each time."""

LONGEST_PAUSE: Final = 30.0

ENDED: Final = "This has already ended."

TEXT_ONLY: Final = "Sorry, I can only read texts."

logger = logging.getLogger("thinkwell")


class Speaker(Protocol):
    """The parts of the channel that are needed."""

    @property
    def api(self) -> TelegramApi: ...

    async def bot(self) -> BotUser: ...

    async def notify(self, user_id: str, text: str) -> None: ...


class Incoming:
    """Takes updates: yields messages, and handles the rest.

    Args:
        channel: Sends answers.
        people: The allowed users.
        chats: The chats' states.
        questions: The open questions.
        tasks: Tasks that send answers in the background.
        drafts: Whether answers are shown as drafts, which may be stopped.
    """

    def __init__(
        self,
        channel: Speaker,
        people: People,
        chats: Chats,
        questions: Questions,
        tasks: BackgroundTasks,
        *,
        drafts: bool,
    ) -> None:
        self._channel = channel
        self._people = people
        self._chats = chats
        self._questions = questions
        self._tasks = tasks
        self._updates = Updates(channel.api, allowed=(*ALLOWED, DRAFT_STOPPED) if drafts else ALLOWED)
        self._reading = anyio.ResourceGuard("iterating over the messages of the channel")
        self._reminded = Seldom(REMINDED)
        self._answering = 0

    async def next(self) -> IncomingMessage:
        """Wait for the next message.

        Raises:
            TelegramError: The bot cannot get messages.
            anyio.BusyResourceError: Another task waits already.
        """
        with self._reading:
            me = await self._introduction()
            while True:
                message = self._take(await self._updates.__anext__(), me)
                if message is not None:
                    return message

    async def close(self) -> None:
        """Acknowledge the yielded messages to Telegram."""
        await self._updates.aclose()

    async def _introduction(self) -> BotUser:
        """Return the bot's own user, with retries."""
        pause = FIRST_PAUSE
        while True:
            try:
                return await self._channel.bot()
            except TelegramError as exc:
                if not exc.temporary:
                    raise
                seconds = max(pause, exc.retry_after or 0.0)
                logger.warning("getMe failed; retrying in %.1f s: %s", seconds, exc)
            await anyio.sleep(seconds)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _take(self, update: Update, me: BotUser) -> IncomingMessage | None:
        if update.message is not None:
            return self._take_message(update.message, me)
        if update.callback_query is not None:
            self._take_press(update.callback_query)
        elif update.stopped_message_generation is not None:
            self._take_stop(update.stopped_message_generation)
        return None

    def _take_message(self, message: Message, me: BotUser) -> IncomingMessage | None:
        person, address = message.from_, message.address
        if person is None or person.is_bot or message.chat.type == "channel":
            return None
        text = addressed(message, me)
        if text is None:
            return None
        if not self._people.allows(person):
            self._tell(address, self._people.refusal(person, address))
            return None
        if message.text is None:
            if self._reminded.may(address):
                self._tell(address, TEXT_ONLY)
            return None
        by = sender(person)
        reply = self._questions.take(message, by)
        if reply is not None:
            self._tell(address, reply)
            return None
        if not text.strip():
            return None
        return IncomingMessage(
            text=text,
            user_id=str(address),
            person=by,
            chat="private" if message.chat.type == "private" else "group",
            message_id=message.message_id,
        )

    def _take_press(self, query: CallbackQuery) -> None:
        if not self._people.allows(query.from_):
            words = f"Only people whom my owner has allowed can press this. Your number is {query.from_.id}."
            self._answer(query, words, alert=True)
        elif query.message is None or query.data is None:
            self._answer(query, ENDED)
        elif query.data.startswith(PRESS):
            words = self._questions.press(query.data, query.message.address, sender(query.from_))
            self._answer(query, words)
        else:
            self._answer(query, "Stopping…" if self._stop(query.data, query.message.address) else ENDED)

    def _stop(self, data: str, address: ChatAddress) -> bool:
        chat = self._chats.find(address)
        if chat is None or chat.answer is None or data != chat.answer.stop_data:
            return False
        return chat.stop()

    def _take_stop(self, stopped: MessageGenerationStopped) -> None:
        chat = self._chats.find(stopped.address)
        if chat is not None and chat.answer is not None and chat.answer.is_shown_by(stopped.draft_id):
            chat.stop()

    def _tell(self, address: ChatAddress, text: str | None) -> None:
        """Send an answer in the background."""
        if text:
            self._tasks.start_soon(logged(self._channel.notify, str(address), text))

    def _answer(self, query: CallbackQuery, text: str, *, alert: bool = False) -> None:
        """Send the result of a button press to its user in the background."""
        if self._answering < MOST_ANSWERS:
            self._answering += 1
            self._tasks.start_soon(logged(self._send_answer, query.id, text, alert))

    async def _send_answer(self, query_id: str, text: str, alert: bool) -> None:
        try:
            await self._channel.api.answer_callback_query(query_id, text, alert=alert)
        finally:
            self._answering -= 1


class Messages:
    """An iterator over messages to the bot: see `TelegramChannel.messages`."""

    def __init__(self, incoming: Incoming) -> None:
        self._incoming = incoming

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> IncomingMessage:
        return await self._incoming.next()
