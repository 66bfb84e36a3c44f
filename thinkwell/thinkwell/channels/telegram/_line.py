"""Requests to one chat: at Telegram's pace, with retries."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import anyio

from thinkwell.channels.telegram._errors import TelegramError, TelegramRefused, TelegramThrottled
from thinkwell.channels.telegram._values import ChatAddress

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from thinkwell._core.exit import BackgroundTasks
    from thinkwell.channels.telegram._api import TelegramApi
    from thinkwell.channels.telegram._pacing import Pacer

ATTEMPTS: Final = 6
"""Most attempts of a required request after faults of the network or Telegram."""

FIRST_PAUSE: Final = 0.5
"""Seconds before the first retry. Each pause is twice as long as the one before."""

MOST_THROTTLED: Final = 20
"""Most refusals of such a request in a row (429) before it fails."""

LONG: Final = 60.0
"""Seconds of a pause that need no warning."""


logger = logging.getLogger("thinkwell")


def closed() -> RuntimeError:
    """Return the error for a channel that is used outside its block."""
    return RuntimeError("the channel is closed; use it inside its block: async with TelegramChannel(…)")


class Line:
    """Makes the requests of one answer, or of one question, to its chat, one after another.

    A started request runs to its end even if its caller is cancelled. So its result is known, and it is not
    sent twice. If Telegram's answer is lost on the way, the result is unknown; the message is then sent
    again: two copies do less harm than none.

    Args:
        api: Sends the requests.
        pacer: Sets the pace.
        tasks: The tasks of requests.
        address: The chat.
    """

    def __init__(self, api: TelegramApi, pacer: Pacer, tasks: BackgroundTasks, address: ChatAddress) -> None:
        self.api: Final = api
        self.pacer: Final = pacer
        self.address: ChatAddress = address
        self.edits = 0
        """The number of edits."""
        self.retries: int = 0
        """The number of retries."""
        self.first_after: float | None = None
        """Seconds until the first message was sent; ``None`` before that."""
        self._began = anyio.current_time()
        self._tasks = tasks
        self._landed = anyio.Event()
        """Set when there is no request in progress."""
        self._landed.set()

    async def once(self, request: Callable[[], Awaitable[object]]) -> None:
        """Make a request, whose turn was taken.

        Args:
            request: Makes it, and keeps its result.

        Raises:
            TelegramError: It failed.
            RuntimeError: The channel is closed.
        """
        landed = self._landed = anyio.Event()
        errors: list[Exception] = [closed()]  # unless it begins

        async def fly() -> None:
            try:
                await request()
                errors.clear()
            except Exception as exc:
                errors[:] = [exc]
            finally:
                landed.set()

        self._tasks.start_soon(fly, never=landed.set)
        await landed.wait()
        if not errors:
            return
        (error,) = errors
        if isinstance(error, TelegramThrottled):
            self.pacer.throttled(self.address.chat_id, error.retry_after)
            if (error.retry_after or 0.0) > LONG:  # a delivery may then run out of time
                about = "Nothing is sent to the chat %d for %g s: %s"
                logger.warning(about, self.address.chat_id, error.retry_after, error)
        if isinstance(error, TelegramRefused) and error.migrated_to is not None:
            self.address = ChatAddress(error.migrated_to)
        raise error

    def showed(self) -> None:
        """Record that a message was sent."""
        if self.first_after is None:
            self.first_after = anyio.current_time() - self._began

    async def insist(self, request: Callable[[], Awaitable[object]]) -> None:
        """Make a request at its turn, and retry it, for bounded time.

        Raises:
            TelegramError: It was refused, or failed repeatedly.
        """
        failed = throttled = 0
        while True:
            await self.pacer.turn(self.address.chat_id)
            try:
                return await self.once(request)
            except TelegramThrottled:
                throttled += 1
                if throttled == MOST_THROTTLED:
                    raise
            except TelegramError as exc:
                failed += 1
                if not exc.temporary or failed == ATTEMPTS:
                    raise
                await anyio.sleep(FIRST_PAUSE * 2 ** (failed - 1))
            self.retries += 1

    async def landed(self) -> None:
        """Wait for the request in progress."""
        await self._landed.wait()
