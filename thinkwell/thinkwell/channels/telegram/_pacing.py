"""Says when the next message may be sent or edited, so that Telegram does not refuse it.

Telegram tells no exact limits, but: no more than one message a second in a chat, 20 a minute in a group, 30 a
second over all chats (Bots FAQ, "My bot is hitting limits"). Of edits it says nothing, so they count like
messages here. Bursts may pass, and may have to be paid for later, so there are none.
"""

from __future__ import annotations

import math
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import anyio
import anyio.lowlevel

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ("Pacer",)

GROWTH: Final = 1.5
"""What a chat's interval is multiplied by where Telegram refuses a request as one too many."""

MOST: Final = 4.0
"""What it is multiplied by at most."""

RECOVERY: Final = 120.0
"""Seconds without a refusal in which that factor falls by one."""

MANY: Final = 3
"""How many chats are refused within a second where it seems to be the limit over all chats."""

HOLD: Final = 5.0
"""Seconds at most, times that factor, for which nothing is sent to any chat then: to ask might prolong it."""

SLACK: Final = 1.1
"""Many chats at once share less than what there is, so that messages find room."""

RECENT: Final = 10.0
"""Seconds after its last edit for which a chat counts as one that shares."""

SWEEP: Final = 256
"""How many chats are known at least before those of which nothing has to be known are forgotten."""


class _Place:
    """A place in a line."""

    __slots__ = ("changed", "final")

    def __init__(self, *, final: bool) -> None:
        self.final = final
        self.changed: anyio.Event | None = None
        """Set when the place has become the first."""


class _Line:
    """Who waits for the same thing, in order, and those with final messages first."""

    def __init__(self) -> None:
        self._finals: deque[_Place] = deque()
        self._others: deque[_Place] = deque()

    def __len__(self) -> int:
        return len(self._finals) + len(self._others)

    @property
    def first(self) -> _Place | None:
        """Whose turn it is."""
        return next(iter(self._finals or self._others), None)

    @contextmanager
    def join(self, *, final: bool) -> Generator[_Place]:
        """Hold a place in the line."""
        place = _Place(final=final)
        places = self._finals if final else self._others
        places.append(place)
        try:
            yield place
        finally:
            places.remove(place)
            first = self.first
            if first is not None and first.changed is not None:
                first.changed.set()

    async def wait_first(self, place: _Place) -> None:
        """Wait until a place is the first. It may cease to be that, where a final message comes."""
        while self.first is not place:
            place.changed = anyio.Event()
            await place.changed.wait()


class _Pace:
    """The pace of one chat, or of all together.

    Args:
        base: Seconds between two requests where Telegram refuses none.
    """

    __slots__ = ("_base", "_factor", "_refused", "free", "line")

    def __init__(self, base: float) -> None:
        self.free = -math.inf
        """When the next request may be sent."""
        self.line = _Line()
        self._base = base
        self._factor = 1.0
        self._refused = -math.inf

    def factor(self, now: float) -> float:
        """Return by how much it is slower than where Telegram refuses nothing."""
        return max(1.0, self._factor - (now - self._refused) / RECOVERY)

    def interval(self, now: float) -> float:
        """Return the seconds between two requests."""
        return self._base * self.factor(now)

    def take(self, now: float) -> None:
        """Know that a request is sent."""
        self.free = now + self.interval(now)

    def slow_down(self, now: float) -> None:
        """Know that a request was refused."""
        self._factor = min(self.factor(now) * GROWTH, MOST)
        self._refused = now

    def hold(self, until: float) -> None:
        """Send nothing for some time."""
        self.free = max(self.free, until)

    def is_forgettable(self, now: float) -> bool:
        """Return whether a new one would be as this one is."""
        return not self.line and self.free <= now and self.factor(now) == 1.0


class Pacer:
    """The pace of messages and edits of one bot, over all of its chats.

    One `turn`, or one `try_turn` that returned 0, is for one request that sends or edits a message.

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
        """In its line are those whose chat is free."""
        self._refused: deque[tuple[float, int]] = deque(maxlen=MANY)
        """When and where requests were refused last."""
        self._editing: dict[int, float] = {}
        """Chats that edit, and when they last wanted to: the oldest first."""

    async def turn(self, chat_id: int, *, final: bool = False) -> None:
        """Wait until a request may be sent to the chat. It is to be sent at once then.

        Turns of a chat come in the order in which they were asked for, those for final messages first. A wait
        that is cancelled takes no turn.
        """
        await anyio.lowlevel.checkpoint()
        chat = self._chat(chat_id)
        with chat.line.join(final=final) as place:
            while True:
                await chat.line.wait_first(place)
                pause = chat.free - anyio.current_time()
                if pause > 0:
                    await anyio.sleep(pause)
                elif await self._pass(chat, place):
                    return

    def try_turn(self, chat_id: int) -> float:
        """Take a turn, if that makes no other wait, and return 0; else the seconds after which to ask again.

        For intermediate edits: they never come before a `turn` that is waited for. Where many chats want
        more than there is in all, each gets the same share.
        """
        now = anyio.current_time()
        chat = self._chat(chat_id)
        interval, overall = chat.interval(now), self._all.interval(now)
        share = self._count_editing(chat_id, now) * overall * SLACK
        due = max(chat.free + max(share - interval, 0.0), self._all.free + len(self._all.line) * overall)
        if chat.line:
            due = max(due, now) + len(chat.line) * interval
        elif due <= now and not self._all.line:
            self._take(chat, now)
            return 0.0
        return max(due - now, overall)

    def throttled(self, chat_id: int, retry_after: float | None = None) -> None:
        """Know that Telegram has refused a request to the chat as one too many (429).

        Nothing is sent to it for `retry_after` seconds, and its interval grows for some minutes. Where it is
        so for many chats at once, as other programs write by the same bot, all of them pause and slow down.
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
        """Return the seconds between two requests to the chat, as things are."""
        return self._chat(chat_id).interval(anyio.current_time())

    async def _pass(self, chat: _Pace, place: _Place) -> bool:
        """Take a turn among all chats, and return whether the chat was still free and the place the first."""
        with self._all.line.join(final=place.final) as ready:
            while True:
                await self._all.line.wait_first(ready)
                now = anyio.current_time()
                if chat.line.first is not place or chat.free > now:
                    return False
                if self._all.free <= now:
                    self._take(chat, now)
                    return True
                await anyio.sleep(self._all.free - now)

    def _take(self, chat: _Pace, now: float) -> None:
        chat.take(now)
        self._all.take(now)

    def _count_editing(self, chat_id: int, now: float) -> int:
        """Return how many chats share what there is: this one, and those that wanted to edit just now."""
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
