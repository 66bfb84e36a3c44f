"""Requests to one chat: in the pace that Telegram allows, and again where one failed."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import anyio

from thinkwell.channels.telegram._errors import TelegramError, TelegramRefused, TelegramThrottled
from thinkwell.channels.telegram._values import ChatAddress

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from thinkwell.channels.telegram._api import TelegramApi
    from thinkwell.channels.telegram._pacing import Pacer
    from thinkwell.channels.telegram._tasks import Tasks

__all__ = ("Line", "closed")

ATTEMPTS: Final = 6
"""How often a request that has to work is made, where the network or Telegram has a fault."""

FIRST_PAUSE: Final = 0.5
"""Seconds before the first repetition; each pause is twice as long as the one before."""

MOST_THROTTLED: Final = 20
"""How often in a row such a request is put off by Telegram (429) before that, too, is a failure."""

LONG: Final = 60.0
"""Seconds that Telegram may want to be waited without that anybody has to know."""


logger = logging.getLogger("thinkwell")


def closed() -> RuntimeError:
    """Return the error for using a channel outside of its block."""
    return RuntimeError("the channel is closed; use it inside of its block: async with TelegramChannel(…)")


class Line:
    """Makes the requests of one answer, or of one question, to its chat, one after another.

    A request that has begun goes on to its end even where its caller is cancelled. What it has sent is then
    known, and is not sent twice. Where Telegram's answer is lost on the way, that cannot be known; such a
    message is sent again, for one that comes twice does less harm than one that does not come.

    Args:
        api: Sends the requests.
        pacer: Knows when.
        tasks: Where requests live.
        address: The chat.
    """

    def __init__(self, api: TelegramApi, pacer: Pacer, tasks: Tasks, address: ChatAddress) -> None:
        self.api: Final = api
        self.pacer: Final = pacer
        self.address: ChatAddress = address
        self.edits = 0
        """How often a message was edited."""
        self.retries: int = 0
        """How often a request was repeated."""
        self.first_after: float | None = None
        """Seconds until the first message was there; ``None`` before that."""
        self._began = anyio.current_time()
        self._tasks = tasks
        self._flight: _Flight | None = None

    async def once(self, request: Callable[[], Awaitable[object]]) -> None:
        """Make a request; a turn was taken for it.

        Args:
            request: Makes it, and keeps what comes of it.

        Raises:
            TelegramError: It was not fulfilled.
            RuntimeError: The channel is closed.
        """
        flight = self._flight = _Flight()
        if not self._tasks.start_soon(flight.run, request):
            raise closed()
        await flight.landed.wait()
        self._flight = None
        error = flight.error
        if error is None:
            return
        if isinstance(error, TelegramThrottled):
            self.pacer.throttled(self.address.chat_id, error.retry_after)
            if (error.retry_after or 0.0) > LONG:  # then a delivery may fail by the time that it takes
                about = "Nothing is sent to the chat %d for %g s: %s"
                logger.warning(about, self.address.chat_id, error.retry_after, error)
        if isinstance(error, TelegramRefused) and error.migrated_to is not None:
            self.address = ChatAddress(error.migrated_to)
        raise error

    def showed(self) -> None:
        """Know that a message is there."""
        if self.first_after is None:
            self.first_after = anyio.current_time() - self._began

    async def insist(self, request: Callable[[], Awaitable[object]]) -> None:
        """Make a request when it is its turn, and again until it works, for bounded time.

        Raises:
            TelegramError: It was refused, or has failed again and again.
        """
        failed = throttled = 0
        while True:
            await self.pacer.turn(self.address.chat_id, final=True)
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
        """Wait for the request that is on its way, no matter whose it is."""
        if self._flight is not None:
            await self._flight.landed.wait()
            self._flight = None


class _Flight:
    """A request on its way."""

    def __init__(self) -> None:
        self.landed = anyio.Event()
        self.error: Exception | None = closed()

    async def run(self, request: Callable[[], Awaitable[object]]) -> None:
        try:
            await request()
        except Exception as exc:
            self.error = exc
        else:
            self.error = None
        finally:
            self.landed.set()
