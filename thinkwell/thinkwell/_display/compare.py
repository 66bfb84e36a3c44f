"""The differences of two sequences, by E. Myers' algorithm, with an end to its patience."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

STEPS: Final = 200_000
"""Comparisons after which two texts are taken for wholly different: some 30 ms."""


class Change(NamedTuple):
    """Items of the old sequence in whose place others stand: ``old[old_from:old_to]``. Either may be none."""

    old_from: int
    old_to: int
    new_from: int
    new_to: int


class Compared(NamedTuple):
    """What two sequences differ in."""

    changes: tuple[Change, ...]
    """In order; what is between them is equal."""
    exact: bool
    """Whether they are as few as can be; else all between the first and the last difference is one change."""
    steps: int
    """Comparisons that it took."""


def compare(old: Sequence[str], new: Sequence[str], steps: int = STEPS) -> Compared:
    """Compare two sequences.

    Args:
        old: What was there before.
        new: What is there now.
        steps: Comparisons to make at most, besides those that find the common beginning and end.
    """
    least = min(len(old), len(new))
    head = 0
    while head < least and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < least - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    old_to, new_to = len(old) - tail, len(new) - tail
    if head == old_to and head == new_to:
        return Compared((), exact=True, steps=0)
    whole = Change(head, old_to, head, new_to)
    if head in (old_to, new_to):
        return Compared((whole,), exact=True, steps=0)
    search = _Search(old[head:old_to], new[head:new_to], steps)
    if not search.found:
        return Compared((whole,), exact=False, steps=search.steps)
    changes = tuple(Change(*(each + head for each in change)) for change in search.changes())
    return Compared(changes, exact=True, steps=search.steps)


class _Search:
    """The way through the grid of two sequences that takes the most equal items with it."""

    def __init__(self, old: Sequence[str], new: Sequence[str], most: int) -> None:
        self._old = old
        self._new = new
        self.steps = 0
        self._reached: list[list[int]] = []
        """By number of differences: how far each diagonal was followed, from the lowest."""
        self.found = self._search(most)

    def _search(self, most: int) -> bool:
        old, new = self._old, self._new
        old_length, new_length = len(old), len(new)
        furthest: dict[int, int] = {1: 0}
        for differences in count():  # there is an end: the worst way is to replace everything
            for diagonal in range(-differences, differences + 1, 2):
                if diagonal == -differences or (
                    diagonal != differences and furthest[diagonal - 1] < furthest[diagonal + 1]
                ):
                    x = furthest[diagonal + 1]
                else:
                    x = furthest[diagonal - 1] + 1
                y = begun = x - diagonal
                while x < old_length and y < new_length and old[x] == new[y]:
                    x += 1
                    y += 1
                self.steps += 1 + y - begun
                furthest[diagonal] = x
                if x >= old_length and y >= new_length:
                    self._keep(furthest, differences)
                    return True
            if self.steps > most:
                return False
            self._keep(furthest, differences)
        raise AssertionError  # pragma: no cover - the loop has no other end

    def _keep(self, furthest: dict[int, int], differences: int) -> None:
        self._reached.append(
            [furthest.get(diagonal, 0) for diagonal in range(-differences, differences + 1, 2)]
        )

    def changes(self) -> list[Change]:
        """Follow the way back and return what it does not take."""
        changes: list[Change] = []
        x, y = len(self._old), len(self._new)
        for differences in range(len(self._reached) - 1, 0, -1):
            before = self._reached[differences - 1]
            diagonal = x - y
            index = (diagonal + differences) // 2  # of the diagonal above, among those of one difference less
            down = diagonal == -differences or (diagonal != differences and before[index - 1] < before[index])
            from_x = before[index] if down else before[index - 1]
            from_y = from_x - (diagonal + 1 if down else diagonal - 1)
            change = (
                Change(from_x, from_x, from_y, from_y + 1)
                if down
                else Change(from_x, from_x + 1, from_y, from_y)
            )
            if changes and changes[-1].old_from == change.old_to and changes[-1].new_from == change.new_to:
                change = Change(change.old_from, changes[-1].old_to, change.new_from, changes.pop().new_to)
            changes.append(change)
            x, y = from_x, from_y
        return changes[::-1]
