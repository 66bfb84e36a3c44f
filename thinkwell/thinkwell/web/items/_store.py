"""The items of a run, as they are kept and sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

import msgspec
from msgspec import Raw, Struct

from thinkwell.web.items._rows import More  # noqa: TC001 - the type of a field

if TYPE_CHECKING:
    from thinkwell.web.items._rows import Shown

__all__ = ("Item", "ItemStore")

_encoder: Final = msgspec.json.Encoder()


class Item(Struct, frozen=True, array_like=True):
    """An item, as it is sent."""

    seq: int
    """Number of the entry after which it is so."""
    at: float
    """When that was, in seconds of the run."""
    id: str
    place: tuple[str, int]
    """The id of what it stands in, and where among its like."""
    began: float
    ended: float | None
    """``None``: it goes on."""
    node: Raw
    """What it looks like; ``null``: it is gone."""
    more: More


class ItemStore:
    """The items of a run."""

    def __init__(self) -> None:
        self.seq = 0
        """Number of the last entry that counts in them."""
        self.at = 0.0
        """When that was, in seconds of the run."""
        self.version = 0
        """How many items were made."""
        self._items: dict[tuple[str, int], tuple[int, Item]] = {}
        """The items by their ids, with the versions in which they came, which rise. Those of panels and heads
        are kept when they change: their keys have the number of the entry too."""
        self._latest: dict[str, tuple[tuple[str, int], Item]] = {}

    def __contains__(self, id_: str) -> bool:
        return id_ in self._latest

    def put(self, shown: Shown) -> None:
        """Make an item, where it has changed."""
        node = Raw(_encoder.encode(shown.node))
        known = self._latest.get(shown.id)
        if known is None:
            if shown.node is None:
                return
        else:
            key, before = known
            if (before.node, before.place, before.ended, before.more) == (
                node,
                shown.place,
                shown.ended,
                shown.more,
            ):
                return
            if not shown.kept or before.seq == shown.seq:
                del self._items[key]
        item = Item(
            shown.seq,
            round(shown.at, 3),
            shown.id,
            shown.place,
            round(shown.began, 3),
            None if shown.ended is None else round(shown.ended, 3),
            node,
            shown.more,
        )
        key = (shown.id, shown.seq if shown.kept else -1)
        self.version += 1
        self._items.pop(key, None)  # so that it comes last
        self._items[key] = self.version, item
        self._latest[shown.id] = key, item

    def after(self, version: int, most: int) -> tuple[int, list[Item]]:
        """Return the items that came behind a version, oldest first, and the version behind them.

        Args:
            version: The version; 0: from the beginning.
            most: Bytes after which no more is returned, about.
        """
        found: list[tuple[int, Item]] = []
        for each in reversed(self._items.values()):
            if each[0] <= version:
                break
            found.append(each)
        items: list[Item] = []
        while found and most > 0:
            version, item = found.pop()
            items.append(item)
            most -= len(cast("bytes", memoryview(item.node))) + len(item.id)
        return version, items
