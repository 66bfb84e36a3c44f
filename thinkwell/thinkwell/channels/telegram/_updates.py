"""The stream of updates from Telegram."""

from __future__ import annotations

import logging
import random
from collections import deque
from typing import TYPE_CHECKING, Final, Self

import anyio

from thinkwell.channels.telegram._errors import (
    TelegramConflict,
    TelegramError,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkwell.channels.telegram._api import TelegramApi
    from thinkwell.channels.telegram._values import Update

ALLOWED: Final = ("message", "callback_query")

POLL: Final = 50
"""Most seconds that Telegram lets a request wait (telegram-bot-api, LONG_POLL_MAX_TIMEOUT)."""

FIRST_PAUSE: Final = 1.0
"""Seconds to wait after a fault; doubled after each further one."""

LONGEST_PAUSE: Final = 30.0

CONFLICTS: Final = 5
"""Most interruptions by another program. One that this program replaces still polls for a while."""

CONFLICTS_FORGOTTEN: Final = 120.0
"""Seconds without such a conflict after which earlier ones are forgotten: a little over two polls."""

REMEMBERED: Final = 1000
"""Update ids that are remembered so that none is yielded twice. Their order says nothing: after a week of
silence Telegram starts over with a random id (Bot API, Update), and your own server may count from
anywhere."""

LAST_WORD: Final = 2.0
"""Seconds for the acknowledgement at the end."""

logger = logging.getLogger("thinkwell")


class Updates:
    """All updates of the bot, each once, until it is cancelled (getUpdates, long polling).

    An update is acknowledged by the poll after it was yielded, or by `aclose`: updates that were not yielded
    come again the next time. Malformed ones are skipped with a warning in the log.

    After faults of the network or Telegram, it waits and retries. Iterating raises:

        TelegramUnauthorized: No bot has this token.
        TelegramConflict: A webhook is set, or another program keeps polling.
        TelegramRefused: Telegram refuses the request, for example an unknown kind of update.

    Args:
        api: The bot's API.
        allowed: Kinds of updates.
        poll: Seconds that a request waits for updates, at most 50.
    """

    def __init__(
        self,
        api: TelegramApi,
        *,
        allowed: Sequence[str] = ALLOWED,
        poll: int = POLL,
    ) -> None:
        if not 1 <= poll <= POLL:
            raise ValueError(f"Updates(poll={poll!r}): it must be from 1 to {POLL}")
        self._api = api
        self._allowed = tuple(allowed)
        self._poll = poll
        self._lock = anyio.Lock()
        self._waiting: deque[Update] = deque()
        self._seen: dict[int, None] = {}
        self._offset: int | None = None
        self._acknowledged: int | None = None
        self._faults = 0
        self._conflicts = 0
        self._last_conflict = 0.0
        self._closed = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Update:
        async with self._lock:
            while not self._closed:
                while self._waiting:
                    update = self._waiting.popleft()
                    if self._is_new(update):
                        return update
                await self._fetch()
            raise StopAsyncIteration

    async def aclose(self) -> None:
        """Acknowledge the yielded updates, if that works at once. No more are yielded."""
        self._closed = True
        if self._offset == self._acknowledged:
            return
        with anyio.move_on_after(LAST_WORD, shield=True):
            try:
                await self._api.get_updates(self._offset, limit=1, allowed=self._allowed)
            except TelegramError as exc:
                logger.info("The bot's last updates will come again: %s", exc)
            else:
                self._acknowledged = self._offset

    def _is_new(self, update: Update) -> bool:
        """Record an update, and return whether to yield it."""
        self._offset = update.update_id + 1
        if update.update_id in self._seen:
            return False
        self._seen[update.update_id] = None
        if len(self._seen) > REMEMBERED:
            del self._seen[next(iter(self._seen))]
        if update.fault is not None:
            logger.warning("Telegram sent a malformed update; it is skipped: %s", update.fault)
        return update.fault is None

    async def _fetch(self) -> None:
        """Poll once, and wait after a fault.

        Raises:
            TelegramError: A retry cannot help.
        """
        began = anyio.current_time()
        offset = self._offset
        try:
            fetched = await self._api.get_updates(offset, wait=self._poll, allowed=self._allowed)
        except TelegramError as exc:
            if isinstance(exc, TelegramConflict):
                self._conflict(exc)
            elif not exc.temporary:
                raise
            await self._pause(exc)
            return
        self._acknowledged = offset
        if self._faults:
            self._faults = 0
            logger.info("Telegram is reachable again")
        self._waiting.extend(fetched)
        if all(update.update_id in self._seen for update in fetched) and anyio.current_time() - began < 1.0:
            # Nothing new without a wait: a server that does not support waiting must not be polled without
            # pause.
            await anyio.sleep(FIRST_PAUSE)

    def _conflict(self, exc: TelegramConflict) -> None:
        """Record that another program polls, or a webhook is set.

        Raises:
            TelegramConflict: It is permanent.
        """
        now = anyio.current_time()
        if now - self._last_conflict > CONFLICTS_FORGOTTEN:
            self._conflicts = 0
        self._conflicts += 1
        self._last_conflict = now
        if exc.webhook or self._conflicts >= CONFLICTS:
            raise exc

    async def _pause(self, exc: TelegramError) -> None:
        """Wait before the next attempt: longer after every fault, with jitter."""
        log = logger.info if self._faults else logger.warning  # one warning for a row of them
        seconds = min(FIRST_PAUSE * 2.0**self._faults, LONGEST_PAUSE)
        self._faults = min(self._faults + 1, 30)
        pause = (exc.retry_after or 0.0) + seconds * random.uniform(0.5, 1.0)  # noqa: S311 - nothing secret
        log("Fetching updates failed; retrying in %.1f s: %s", pause, exc)
        await anyio.sleep(pause)
