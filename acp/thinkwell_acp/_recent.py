"""A bounded memory."""

from __future__ import annotations

from collections import OrderedDict


class Recent:
    """The names added last, up to a bound: the other side may mention them after their end."""

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self._names: OrderedDict[str, None] = OrderedDict()

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def add(self, name: str) -> None:
        """Remember a name; if there is no room, forget the oldest."""
        self._names[name] = None
        self._names.move_to_end(name)
        if len(self._names) > self._bound:
            self._names.popitem(last=False)

    def discard(self, name: str) -> None:
        """Forget a name."""
        self._names.pop(name, None)
