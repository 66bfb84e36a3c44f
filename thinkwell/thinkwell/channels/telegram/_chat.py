"""The state of active chats."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import anyio

from thinkwell.channels.telegram._values import ChatAddress

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from thinkwell.channels.telegram._answer import Answer


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
    def is_idle(self) -> bool:
        """Whether the chat can be forgotten."""
        return self.answer is None and not self.users

    @property
    def can_stop(self) -> bool:
        """Whether a task waits for the run to be stopped."""
        return self._wait_for_stop > 0 and not self._stop.is_set()

    @property
    def asks(self) -> bool:
        """Whether a question waits for the person."""
        return self.questions > 0

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
            if chat.is_idle:
                del self._chats[name]
