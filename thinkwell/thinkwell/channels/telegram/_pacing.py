"""Decides when the next message may be sent or edited, so that Telegram does not refuse it.

Telegram gives no exact limits, but: no more than one message a second in a chat, 20 a minute in a group, 30 a
second over all chats (Bots FAQ, "My bot is hitting limits"). It gives none for edits, so they count as
messages here. Bursts may pass, and be refused later, so there are none.
"""

from __future__ import annotations

import math
from collections import deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import anyio

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

GROWTH: Final = 1.5
"""The factor by which a chat's interval grows when Telegram refuses a request (429)."""

MOST: Final = 4.0
"""The largest factor."""

RECOVERY: Final = 120.0
"""Seconds without a refusal after which the factor falls by one."""

MANY: Final = 3
"""Chats refused within a second that indicate the limit over all chats."""

HOLD: Final = 5.0
"""Most seconds, times that factor, without requests to any chat then: requests might prolong the limit."""

SLACK: Final = 1.1
"""The factor by which editing chats stay below the shared limit, so that messages find room."""

RECENT: Final = 10.0
"""Seconds after its last edit for which a chat counts as editing."""

SWEEP: Final = 256
"""Known chats above which those without special state are forgotten."""


class _Pace:
    """The pace of one chat, or of all together.

    Args:
        base: Seconds between two requests without refusals.
    """

    __slots__ = ("_base", "_factor", "_line", "_refused", "free", "waiting")

    def __init__(self, base: float) -> None:
        self.free = -math.inf
        """When the next request may be sent."""
        self.waiting = 0
        """The number of those who wait for a turn."""
        self._line = anyio.Lock()
        self._base = base
        self._factor = 1.0
        self._refused = -math.inf

    @asynccontextmanager
    async def first(self) -> AsyncGenerator[None]:
        """Wait until all who came before have had their turn or left."""
        self.waiting += 1
        try:
            async with self._line:
                yield
        finally:
            self.waiting -= 1

    async def wait_free(self) -> None:
        """Wait until the next request may be sent."""
        while (pause := self.free - anyio.current_time()) > 0:  # noqa: ASYNC110 - it waits for a time
            await anyio.sleep(pause)

    def factor(self, now: float) -> float:
        """Return the current factor of the interval."""
        return max(1.0, self._factor - (now - self._refused) / RECOVERY)

    def interval(self, now: float) -> float:
        """Return the seconds between two requests."""
        return self._base * self.factor(now)

    def take(self, now: float) -> None:
        """Record that a request is sent."""
        self.free = now + self.interval(now)

    def slow_down(self, now: float) -> None:
        """Record that a request was refused."""
        self._factor = min(self.factor(now) * GROWTH, MOST)
        self._refused = now

    def hold(self, until: float) -> None:
        """Send nothing until a time."""
        self.free = max(self.free, until)

    def is_forgettable(self, now: float) -> bool:
        """Return whether it is in the state of a new one."""
        return not self.waiting and self.free <= now and self.factor(now) == 1.0


class Pacer:
    """The pace of one bot's messages and edits, over all of its chats.

    One `turn`, or one `try_turn` that returned 0, allows one request that sends or edits a message.

    Args:
        private: Seconds between two such requests to a private chat.
        group: Seconds between two such requests to a group.
        overall: Seconds between two such requests to any chats.
    """

    def __init__(self, *, private: float = 1.1, group: float = 3.1, overall: float = 0.04) -> None:
        self._private = private
        self._group = group
        self._chats: dict[int, _Pace] = {}
        self._sweep_at = SWEEP
        self._all = _Pace(overall)
        """The pace of all chats; those whose chat is free wait for a turn."""
        self._refused: deque[tuple[float, int]] = deque(maxlen=MANY)
        """When and where requests were refused last."""
        self._editing: dict[int, float] = {}
        """Editing chats, and the time of their last attempt, oldest first."""

    async def turn(self, chat_id: int) -> None:
        """Wait until a request may be sent to the chat. Send it at once then.

        A chat's turns come in the order of the calls. A cancelled wait takes no turn.
        """
        chat = self._chat(chat_id)
        async with chat.first():
            while True:
                await chat.wait_free()
                async with self._all.first():
                    await self._all.wait_free()
                    now = anyio.current_time()
                    if chat.free <= now:  # else it was throttled meanwhile, and lets others pass
                        self._take(chat, now)
                        return

    def try_turn(self, chat_id: int) -> float:
        """Take a turn and return 0 if no other waits; else return the seconds after which to ask again.

        For intermediate edits: they never come before a waiting `turn`. If many chats want more than the
        limit, each gets the same share.
        """
        now = anyio.current_time()
        chat = self._chat(chat_id)
        interval, overall = chat.interval(now), self._all.interval(now)
        share = self._count_editing(chat_id, now) * overall * SLACK
        due = max(chat.free + max(share - interval, 0.0), self._all.free + self._all.waiting * overall)
        if chat.waiting:
            due = max(due, now) + chat.waiting * interval
        elif due <= now and not self._all.waiting:
            self._take(chat, now)
            return 0.0
        return max(due - now, overall)

    def throttled(self, chat_id: int, retry_after: float | None = None) -> None:
        """Record that Telegram refused a request to the chat as one too many (429).

        Nothing is sent to it for `retry_after` seconds, and its interval grows for some minutes. If this
        happens to many chats at once, because other programs use the same bot, all of them pause and slow
        down.
        """
        now = anyio.current_time()
        chat = self._chat(chat_id)
        chat.slow_down(now)
        chat.hold(now + (chat.interval(now) if retry_after is None else retry_after))
        self._refused.append((now, chat_id))
        if len({each for at, each in self._refused if now - at <= 1.0}) == MANY:
            self._refused.clear()
            self._all.slow_down(now)
            self._all.hold(now + min(retry_after or 1.0, HOLD) * self._all.factor(now))

    def interval(self, chat_id: int) -> float:
        """Return the current seconds between two requests to the chat."""
        return self._chat(chat_id).interval(anyio.current_time())

    def _take(self, chat: _Pace, now: float) -> None:
        chat.take(now)
        self._all.take(now)

    def _count_editing(self, chat_id: int, now: float) -> int:
        """Return how many chats share the limit: this one, and those that wanted to edit just now."""
        editing = self._editing
        editing.pop(chat_id, None)
        editing[chat_id] = now
        while next(iter(editing.values())) < now - RECENT:
            del editing[next(iter(editing))]
        return len(editing)

    def _chat(self, chat_id: int) -> _Pace:
        chat = self._chats.get(chat_id)
        if chat is None:
            if len(self._chats) >= self._sweep_at:
                now = anyio.current_time()
                self._chats = {each: one for each, one in self._chats.items() if not one.is_forgettable(now)}
                self._sweep_at = max(2 * len(self._chats), SWEEP)
            chat = self._chats[chat_id] = _Pace(self._group if chat_id < 0 else self._private)
        return chat
