"""What goes on in each chat: kept for as long as something does."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import anyio

from thinkwell.channels.telegram._values import ChatAddress

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from thinkwell.channels.telegram._answer import Answer

__all__ = ("Chat", "Chats")


class Chat:
    """What goes on in a chat, or in a topic of one."""

    def __init__(self, address: ChatAddress) -> None:
        self.address = address
        self.lock: anyio.Lock = anyio.Lock()
        """Held while something is written to it, so that no two texts of several messages get mixed up."""
        self.answer: Answer | None = None
        """What is being written."""
        self.notes: set[str] = set()
        """What is to be said beside it, and waits for its turn."""
        self.questions = 0
        """How many wait for the person."""
        self.users = 0
        """How many calls and tasks have to do with it."""
        self._stop = anyio.Event()
        self._wait_for_stop = 0

    @property
    def is_idle(self) -> bool:
        """Whether nothing of it has to be kept."""
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
        """Return what is being written, which is about to end; it cannot be stopped any more."""
        answer, self.answer = self.answer, None
        if self._stop.is_set():
            self._stop = anyio.Event()
        return answer

    def stop(self) -> bool:
        """Tell the waiting task that the run is to be stopped; return whether that is news."""
        if not self.can_stop:
            return False
        self._stop.set()
        self.look()
        return True

    async def wait_stop(self) -> None:
        """Wait until the run is to be stopped."""
        self._wait_for_stop += 1
        self.look()
        try:
            await self._stop.wait()
        finally:
            self._wait_for_stop -= 1
            self.look()

    def look(self) -> None:
        """Let what is being written show what has changed."""
        if self.answer is not None:
            self.answer.look()


class Chats:
    """The chats in which something goes on, by the names that `thinkwell.channels.Channel` has for users."""

    def __init__(self) -> None:
        self._chats: dict[str, Chat] = {}

    def __len__(self) -> int:
        return len(self._chats)

    def __iter__(self) -> Iterator[Chat]:
        return iter(tuple(self._chats.values()))

    def find(self, address: ChatAddress) -> Chat | None:
        """Return a chat, where something goes on there."""
        return self._chats.get(str(address))

    @contextmanager
    def use(self, user_id: str) -> Generator[Chat]:
        """Return a chat, which is kept for the time of the block.

        Raises:
            ValueError: That is no address of a chat.
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
