"""Active chats, and their answers: shown while they are written, and brought to their final form."""

from __future__ import annotations

import math
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final, Literal

import anyio

from thinkwell.channels._html import HtmlPiece
from thinkwell.channels.telegram._errors import (
    TelegramError,
    TelegramForbidden,
    TelegramRefused,
    TelegramThrottled,
    TelegramUnauthorized,
)
from thinkwell.channels.telegram._shown import Shown
from thinkwell.channels.telegram._values import ChatAddress, InlineButton, InlineKeyboard

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from thinkwell.channels._protocols import DeliverySettings
    from thinkwell.channels.telegram._api import TelegramApi
    from thinkwell.channels.telegram._line import Line
    from thinkwell.channels.telegram._message import Writing

TYPING: Final = 4.5
"""Seconds between two chat actions: each shows for 5 s (Bot API, sendChatAction)."""

DRAFT: Final = 20.0
"""Seconds after which a draft is shown again without changes: each one shows for 30 s (Bot API,
sendMessageDraft)."""

LINGER: Final = 0.1
"""Seconds to wait for more before a change is shown: agents write in bursts, and the end often comes with the
last of them."""

FIRST_PAUSE: Final = 1.0
"""Seconds between a failed edit and the next one. Each pause is twice as long as the one before."""

LONGEST_PAUSE: Final = 30.0

STOP: Final = "s:"
"""The start of a stop button's data; the answer's token follows."""

ENOUGH: Final = 200
"""Characters at the end of a message that identify it: the text above the answer may differ."""


class _Pace:
    """Decides when to show the next change of an answer.

    Args:
        settings: The edit interval, if it is longer than the chat's.
    """

    def __init__(self, settings: DeliverySettings) -> None:
        self.draft_until = math.inf
        """When to show the draft again without changes."""
        self._settings = settings
        self._due = math.inf
        """When to show the next change."""
        self._new = 0
        """Characters that were not shown yet."""
        self._shown_at = -math.inf
        """When something was shown last."""
        self._not_before = -math.inf
        self._failures = 0

    @property
    def wait(self) -> float:
        """Seconds until the next change is shown."""
        due = max(self._due, self._shown_at + (self._settings.edit_interval or 0.0))
        return max(min(due, self.draft_until), self._not_before) - anyio.current_time()

    def grew(self, characters: int) -> None:
        """Show a longer text, as soon as there is enough of it."""
        self._new += characters
        if self._new >= self._settings.least_characters:
            self.soon()

    def soon(self) -> None:
        """Show a change, together with those of the next moment."""
        self._due = min(self._due, anyio.current_time() + LINGER)

    def at_once(self) -> None:
        """Show the next change as soon as possible."""
        self._due = -math.inf

    def shows(self) -> None:
        """Record that everything is being shown."""
        self._due = math.inf
        self._new = 0
        self._shown_at = anyio.current_time()

    def worked(self) -> None:
        """Record that it was shown."""
        self._failures = 0

    def failed(self) -> None:
        """Wait before anything is shown again, each time longer."""
        pause = min(FIRST_PAUSE * 2**self._failures, LONGEST_PAUSE)
        self._failures = min(self._failures + 1, 10)
        self._not_before = anyio.current_time() + pause


class Answer:
    """An answer, and the messages that show it.

    `edit` shows the text while it is written, as often as the chat allows, and never fails. `finish` sends
    all of it, or raises; it can then be called again, and continues from there.

    Args:
        line: Sends requests to the chat.
        writing: The text.
        chat: The chat's state.
        settings: The edit interval, if it is longer than the chat's.
        token: Identifies the answer's stop button.
        draft_id: The id of its first draft; ``None``: it is shown by edited messages.
    """

    def __init__(
        self,
        line: Line,
        writing: Writing,
        chat: Chat,
        settings: DeliverySettings,
        token: str = "",
        draft_id: int | None = None,
    ) -> None:
        self.line: Final = line
        self.writing: Final = writing
        self.stop_data: Final = f"{STOP}{token}"
        """The data of its stop button."""
        self.goal: str | None = None
        """The final text, once it is known."""
        self._settled = 0
        """The number of messages in their final form, as `add_html` counts them."""
        self._html = ""
        """The message that was added last."""
        self.chat = chat
        self._pace = _Pace(settings)
        self._draft_id = draft_id
        self._shown = Shown(line)
        self._parts: Sequence[HtmlPiece] = ()
        """The messages to show, as computed last."""
        self._dead: TelegramError | None = None
        """The error after which nothing can be shown."""
        self._busy = True
        """Whether to show that the bot types."""
        self._news = anyio.Event()
        self._ending = False
        self._edited = anyio.Event()
        self._edited.set()

    def is_shown_by(self, draft_id: int) -> bool:
        """Return whether a draft shows this answer."""
        first = self._draft_id
        return first is not None and first <= draft_id <= first + len(self._shown)

    def wrote(self, characters: int) -> None:
        """Show a longer text, as soon as possible and when there is enough of it."""
        self._busy = False
        self._pace.grew(characters)
        self._wake()

    def works(self) -> None:
        """Show the agent's status, as soon as possible. The agent is not writing."""
        self._busy = True
        self._pace.soon()
        self._wake()

    def look(self) -> None:
        """Show the current state of the chat."""
        if len(self._shown) or self._pace.draft_until < math.inf:
            self._pace.soon()
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = anyio.Event()

    # While it is written

    def begin(self) -> None:
        """Prepare for `edit`."""
        self._edited = anyio.Event()

    async def edit(self) -> None:
        """Show the text until `finish` is called."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._type)
                while not self._ending:
                    await self._look()
                tasks.cancel_scope.cancel()
        finally:
            self._edited.set()

    async def _look(self) -> None:
        news = self._news
        wait = math.inf if self._dead is not None else self._pace.wait
        if wait <= 0:
            async with self.chat.lock:
                if self._ending:
                    return
                wait = self.line.pacer.try_turn(self.line.address.chat_id)
                if wait <= 0:
                    await self._step()
                    return
        with anyio.move_on_after(wait):
            await news.wait()

    async def _step(self) -> None:
        """Make one request that shows more of the text."""
        self._pace.shows()
        try:
            await self._show(self._next_parts())
        except TelegramError as exc:
            self._pace.at_once()
            self._after(exc)
        else:
            self._pace.worked()

    def _next_parts(self) -> Sequence[HtmlPiece]:
        """Return the messages to show.

        Until the finished ones are shown, they are those of the last time. Otherwise the megabytes of a fast
        agent would be read again for every edit.
        """
        finished = enumerate(self._parts[:-1])
        if all(self._shown.shows(index, part) for index, part in finished):
            self._parts = self.writing.parts()
        return self._parts

    async def _show(self, parts: Sequence[HtmlPiece]) -> None:
        finished = len(parts) - (self._draft_id is not None)
        for index, part in enumerate(parts[:finished]):
            is_last = index + 1 == len(parts)
            buttons = None
            if is_last and self.chat.can_stop:
                buttons = InlineKeyboard(((InlineButton("⏹ Stop", self.stop_data),),))
            if not self._shown.shows(index, part, buttons):
                if not is_last:
                    self._pace.at_once()
                await self._shown.show(index, part, buttons)
                return
        if self._draft_id is not None and parts:
            await self._show_draft(self._draft_id + finished, parts[-1])

    def _after(self, error: TelegramError) -> None:
        """Decide what to do after a failed request."""
        self.line.retries += 1
        if isinstance(error, TelegramThrottled) or self._shown.mended(error):
            return
        gone = isinstance(error, TelegramRefused) and error.reason == "chat_gone"
        if gone or isinstance(error, TelegramForbidden | TelegramUnauthorized):
            self._dead = error
        else:
            self._pace.failed()

    async def _type(self) -> None:
        """Show that the bot types, while the agent does something invisible."""
        while self._dead is None:
            if not self._busy or self.chat.questions:
                await self._news.wait()
                continue
            await anyio.sleep(await show_typing(self.line.api, self.line.address))

    # Its end

    async def finish(self, full_text: str) -> Literal[True]:
        """Send all of it, in its final form, so that nothing of it is left.

        Args:
            full_text: The whole text.

        Raises:
            TelegramError: A part of it could not be sent.
        """
        self.goal = full_text
        await self._settle(send=True)
        return True

    def expects(self, html: str) -> bool:
        """Return whether a message is probably the next one of an unfinished answer."""
        if self.goal is None:
            return html == self._html
        parts = self.writing.final(self.goal)[self._settled :]
        return bool(parts) and parts[0].html[-ENOUGH:] == html[-ENOUGH:]

    async def add_html(self, html: str) -> bool:
        """Send its next message, which was composed elsewhere; return whether it was the last.

        Raises:
            TelegramError: It could not be sent.
        """
        self._html = html
        await self._end()
        async with self.chat.lock:
            await self._shown.settle(self._settled, HtmlPiece(html, ""))
            self._settled += 1
            if self.goal is not None and self._settled < len(self.writing.final(self.goal)):
                return False
            await self._shown.remove(self._settled)
        return True

    async def tidy(self) -> None:
        """Bring the shown messages to a clean end, if possible, without new ones."""
        with suppress(TelegramError):
            await self._settle(send=False)

    async def _settle(self, *, send: bool) -> None:
        """Bring the messages to their final form.

        Args:
            send: Whether to send those that are missing.

        Raises:
            TelegramError: A request failed.
        """
        await self._end()
        async with self.chat.lock:
            parts = self.writing.final(self.writing.text if self.goal is None else self.goal)
            for index, part in enumerate(parts):
                await self._shown.settle(index, part, send=send)
            await self._shown.remove(len(parts))

    async def _end(self) -> None:
        """Wait until `edit` has ended.

        Raises:
            TelegramError: Nothing can be sent to the chat.
        """
        self._ending = True
        self._wake()
        await self._edited.wait()
        await self.line.landed()
        dead, self._dead = self._dead, None  # a retry may succeed
        if dead is not None:
            raise dead

    async def _show_draft(self, draft_id: int, part: HtmlPiece) -> None:
        text, mode = self._shown.written(part)
        send = partial(
            self.line.api.send_message_draft,
            self.line.address,
            draft_id,
            text,
            parse_mode=mode,
            can_stop=self.chat.can_stop,
        )
        try:
            await self.line.once(send)
        except (TelegramRefused, TelegramUnauthorized) as exc:
            if isinstance(exc, TelegramRefused) and exc.reason != "other":
                raise
            self._draft_id = None  # this server has no drafts, or none for this chat
            self._pace.draft_until = math.inf
            self._pace.at_once()
        else:
            self.line.showed()
            self._pace.draft_until = anyio.current_time() + DRAFT


class Chat:
    """The state of a chat, or of a topic in one."""

    def __init__(self, address: ChatAddress) -> None:
        self.address = address
        self.lock: anyio.Lock = anyio.Lock()
        """Held while something is written, so that texts of several messages do not mix."""
        self.answer: Answer | None = None
        """The answer that is being written."""
        self.notes: set[str] = set()
        """Notices that wait to be sent beside it."""
        self.questions = 0
        """The number of open questions."""
        self.users = 0
        """The number of calls and tasks that use the chat."""
        self._stop = anyio.Event()
        self._wait_for_stop = 0

    @property
    def can_stop(self) -> bool:
        """Whether a task waits for the run to be stopped."""
        return self._wait_for_stop > 0 and not self._stop.is_set()

    def take_answer(self) -> Answer | None:
        """Return the unfinished answer, which is about to end and cannot be stopped any more."""
        answer, self.answer = self.answer, None
        if self._stop.is_set():
            self._stop = anyio.Event()
        return answer

    def stop(self) -> bool:
        """Let the waiting task stop the run; return whether this was the first request."""
        if not self.can_stop:
            return False
        self._stop.set()
        self.look()
        return True

    async def wait_stop(self) -> None:
        """Wait for a request to stop the run."""
        self._wait_for_stop += 1
        self.look()
        try:
            await self._stop.wait()
        finally:
            self._wait_for_stop -= 1
            self.look()

    def look(self) -> None:
        """Show changes of the chat's state in the answer."""
        if self.answer is not None:
            self.answer.look()


class Chats:
    """The active chats, by the user ids of `thinkwell.channels.Channel`."""

    def __init__(self) -> None:
        self._chats: dict[str, Chat] = {}

    def __len__(self) -> int:
        return len(self._chats)

    def __iter__(self) -> Iterator[Chat]:
        return iter(tuple(self._chats.values()))

    def find(self, address: ChatAddress) -> Chat | None:
        """Return a chat if it is active."""
        return self._chats.get(str(address))

    @contextmanager
    def use(self, user_id: str) -> Generator[Chat]:
        """Return a chat, which is kept during the block.

        Raises:
            ValueError: The user id is not a chat.
        """
        address = ChatAddress.parse(user_id)
        name = str(address)
        chat = self._chats.get(name)
        if chat is None:
            chat = self._chats[name] = Chat(address)
        chat.users += 1
        try:
            yield chat
        finally:
            chat.users -= 1
            if chat.answer is None and not chat.users:
                del self._chats[name]


async def keep_typing(api: TelegramApi, address: ChatAddress) -> None:
    """Show that the bot types, until this is cancelled."""
    while True:
        pause = await show_typing(api, address)
        await anyio.sleep(pause)


async def show_typing(api: TelegramApi, address: ChatAddress) -> float:
    """Try to show that the bot types, and return the seconds until the next time."""
    try:
        await api.send_chat_action(address)
    except TelegramError as exc:
        return max(TYPING, exc.retry_after or 0.0) if exc.temporary else math.inf
    return TYPING
