"""How often a bot may write: a model of Telegram's limits, which are not documented exactly.

Told by the FAQ of bots ("My bot is hitting limits"): one message a second in a chat, with short bursts; 20 a
minute in a group; about 30 a second over all chats. Reported by bots: edits count like messages, and who goes
on asking is refused for longer. The model: a bucket of tokens each, a message or an edit takes one of each
that concerns it; an empty bucket refuses and says in how many whole seconds it has a token again, and until
then whatever asks is refused, and begins that time anew.

A message and then 90 edits at an even pace, sent without regard to errors, meet as many 429s: in a private
chat 86 at 500 ms, 70 at 900 ms, none at 1 s; in a group 11 at 2 s, none at 3 s.
"""

from __future__ import annotations

from math import ceil
from typing import Final

from bot_api.rules import too_many_requests

__all__ = ("Limits",)

TOLERANCE: Final = 1e-9
"""Seconds, and tokens, by which floating point may miss."""


class _Bucket:
    def __init__(self, size: int, rate: float) -> None:
        self._size = size
        self._rate = rate
        self._tokens = float(size)
        self._counted = 0.0
        self._shut_until = 0.0

    def seconds_until_open(self, now: float) -> int:
        """Return 0 where there is a token; else the time to wait, which begins anew with every question."""
        self._tokens = min(self._size, self._tokens + max(0.0, now - self._counted) * self._rate)
        self._counted = now
        shut = now < self._shut_until - TOLERANCE
        if self._tokens >= 1 - TOLERANCE and not shut:
            return 0
        least = max(1, ceil((1 - self._tokens) / self._rate - TOLERANCE))
        self.shut(now + least)
        return ceil(self._shut_until - now - TOLERANCE)

    def shut(self, until: float) -> None:
        self._shut_until = max(self._shut_until, until)

    def take(self) -> None:
        self._tokens -= 1


class Limits:
    """The limits of one bot.

    Args:
        enforced: Whether there are any.
    """

    def __init__(self, *, enforced: bool = True) -> None:
        self._times = 1 if enforced else 1_000_000
        self._overall = self._bucket(30, 30.0)
        self._chats: dict[int, list[_Bucket]] = {}

    def _bucket(self, size: int, rate: float) -> _Bucket:
        return _Bucket(size * self._times, rate * self._times)

    def _of(self, chat_id: int) -> list[_Bucket]:
        if chat_id not in self._chats:
            group = [self._bucket(20, 20 / 60)] if chat_id < 0 else []
            self._chats[chat_id] = [self._bucket(3, 1.0), *group]
        return self._chats[chat_id]

    def take(self, chat_id: int, now: float) -> None:
        """Count a message, or refuse it.

        Raises:
            Refusal: 429.
        """
        buckets = [*self._of(chat_id), self._overall]
        wait = max(bucket.seconds_until_open(now) for bucket in buckets)
        if wait:
            raise too_many_requests(wait)
        for bucket in buckets:
            bucket.take()

    def shut(self, chat_id: int, until: float) -> None:
        """Refuse whatever counts until some time, in one chat."""
        for bucket in self._of(chat_id):
            bucket.shut(until)
