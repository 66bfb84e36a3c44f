"""Stores the items of a run."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import OrderedDict
from operator import itemgetter
from typing import TYPE_CHECKING, Final, Literal

import msgspec
from msgspec import Raw, Struct

from thinkwell.web._watching import in_pieces

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from thinkwell._display.items.nodes import Node

ABOUT: Final = 100
"""Approximate bytes of an item besides its node."""

MARGIN: Final = 1_000
"""Versions of replaced items that are kept in any case."""

_encoder: Final = msgspec.json.Encoder()


class More(Struct, frozen=True, omit_defaults=True, gc=False):
    """The properties of an item besides its node."""

    open: bool = False
    """Whether it is open at first."""
    say: str | Literal[True] = ""
    """The text for screen readers; ``True``: that of its parts."""
    urgent: bool = False
    lane: str = ""
    """The lane of its bar on the time axis."""
    look: str = ""
    """The kind of its bar."""
    cuts: Sequence[float] = ()
    """The lengths of a text over time: seconds of the run and a length, alternating; the last is the whole.
    """


NOTHING: Final = More()


class Shown(Struct, frozen=True, gc=False):
    """A future item."""

    id: str
    place: tuple[str, int]
    node: Node | None
    seq: int
    at: float
    began: float
    ended: float | None = None
    more: More = NOTHING
    kept: bool = False
    """Whether earlier states are kept, for the replay."""


class Item(Struct, frozen=True, array_like=True, gc=False):
    """An item for clients."""

    seq: int
    """Number of its entry."""
    at: float
    """Its time, in seconds of the run."""
    id: str
    place: tuple[str, int]
    """The id of its parent, and its place there."""
    began: float
    ended: float | None
    """``None``: it is not over."""
    node: Raw
    """Its node; ``null``: it was removed."""
    more: More


class ItemStore:
    """The items of a run, or the last ones of them.

    Args:
        most: Approximate bytes of items that are kept; always the last item.
    """

    def __init__(self, most: float = math.inf) -> None:
        self.seq = 0
        """Number of the last entry that it includes."""
        self.at = 0.0
        """Its time, in seconds of the run."""
        self.version = 0
        """The number of items so far."""
        self.lost = 0
        """The version up to which items may be missing."""
        self._most = most
        self._size = 0
        self._items: OrderedDict[tuple[str, int], tuple[int, int, Item]] = OrderedDict()
        """The items by key, with their versions, which rise, and their approximate bytes. Earlier states of
        panels and heads are kept: their keys also have the number of the entry."""
        self._keys: dict[str, tuple[str, int]] = {}
        """The key of the last item of each id, even if that is missing."""
        self._order: list[tuple[int, tuple[str, int]]] = []
        """The versions with their keys, for finding one: also those of items that were replaced since."""

    def __contains__(self, id_: str) -> bool:
        return id_ in self._keys

    def put(self, shown: Shown) -> None:
        """Add an item, if it has changed."""
        id_, seq = shown.id, shown.seq
        known = self._keys.get(id_)
        if known is None and shown.node is None:
            return
        encoded = _encoder.encode(shown.node)
        node, size = Raw(encoded), len(encoded) + ABOUT
        ended = None if shown.ended is None else round(shown.ended, 3)
        key = (id_, seq if shown.kept else -1)
        if known is not None:
            if (found := self._items.get(known)) is not None:
                before = found[2]
                if (
                    before.node == node
                    and before.place == shown.place
                    and before.ended == ended
                    and before.more == shown.more
                ):
                    return
                if not shown.kept or before.seq == seq:
                    self._remove(known)
            self._remove(key)  # so that it becomes the last
        began = round(shown.began, 3)
        item = Item(seq, round(shown.at, 3), id_, shown.place, began, ended, node, shown.more)
        self.version += 1
        self._items[key] = self.version, size, item
        self._keys[id_] = key
        self._order.append((self.version, key))
        self._size += size
        while self._size > self._most and len(self._items) > 1:
            _, (self.lost, size, _) = self._items.popitem(last=False)
            self._size -= size
        if len(self._order) > 2 * len(self._items) + MARGIN:
            self._order = [(version, key) for key, (version, _, _) in self._items.items()]

    def _remove(self, key: tuple[str, int]) -> None:
        if key in self._items:
            self._size -= self._items.pop(key)[1]

    def missing(self) -> set[str]:
        """Return the ids of items that may be missing."""
        return {id_ for id_, key in self._keys.items() if key[1] >= 0 or key not in self._items}

    def part(self, ids: set[str], most: int) -> Iterator[list[Item]]:
        """Yield the items with these ids in pieces. An id without an item counts as removed.

        Args:
            ids: The ids.
            most: Approximate bytes of a piece.
        """
        items = [(size, item) for _, size, item in self._items.values() if item.id in ids]
        items += (
            (ABOUT, Item(self.seq, self.at, id_, ("", 0), self.at, None, Raw(b"null"), NOTHING))
            for id_ in ids - self._keys.keys()
        )
        for piece in in_pieces(items, itemgetter(0), most):
            yield [item for _, item in piece]

    def after(self, version: int, most: float) -> tuple[int, list[Item]]:
        """Return the items after a version, oldest first, and the version after them.

        Args:
            version: The version, from `lost` on; 0: from the beginning.
            most: Approximate bytes to return.
        """
        items: list[Item] = []
        begin = bisect_right(self._order, version, key=itemgetter(0))
        for place in range(begin, len(self._order)):
            if most <= 0:
                break
            version, key = self._order[place]
            found = self._items.get(key)
            if found is not None and found[0] == version:
                items.append(found[2])
                most -= found[1]
        return version, items
