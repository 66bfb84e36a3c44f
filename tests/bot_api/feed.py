"""The updates of a bot that nobody has acknowledged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bot_api.rules import as_list

if TYPE_CHECKING:
    from collections.abc import Mapping

    from thinkwell.events import JsonValue

__all__ = ("Feed",)

FIRST_UPDATE: Final = 715_200_001
"""Ids of updates begin somewhere, and count up."""

NOT_BY_DEFAULT: Final = frozenset(("chat_member", "message_reaction", "message_reaction_count"))
"""Kinds that have to be asked for (Bot API, getUpdates, ``allowed_updates``)."""

FUTURE: Final = 10
"""An offset that is further ahead than that is as good as none (TDLib, ``TQueue.cpp``)."""


class Feed:
    """A queue of updates. Which kinds come into it is decided when something happens, not when it is read."""

    def __init__(self) -> None:
        self.waiting: list[dict[str, JsonValue]] = []
        self.allowed: frozenset[str] | None = None
        self._next = FIRST_UPDATE

    def allow(self, kinds: JsonValue) -> None:
        """Take only updates of these kinds from now on; an empty list: what is taken by default."""
        given = as_list(kinds)
        if given is not None:
            self.allowed = frozenset(given) or None

    def add(self, kind: str, body: Mapping[str, JsonValue]) -> int | None:
        """Add an update, and return its id; ``None``: updates of this kind are not wanted."""
        if kind in NOT_BY_DEFAULT if self.allowed is None else kind not in self.allowed:
            return None
        number = self._next
        self._next += 1
        self.waiting.append({"update_id": number, kind: body})
        return number

    def take(self, offset: int, limit: int) -> list[dict[str, JsonValue]]:
        """Forget what is before the offset, and return what follows; below 0, all but so many of the last."""
        if offset < 0:
            self.waiting = self.waiting[offset:]
        elif offset <= self._next + FUTURE:
            self.waiting = [update for update in self.waiting if update["update_id"] >= offset]
        return self.waiting[:limit]

    def drop(self) -> None:
        """Forget all of them."""
        self.waiting = []
