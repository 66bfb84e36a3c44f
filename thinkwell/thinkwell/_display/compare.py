"""The differences of two sequences, by difflib, with an end to its patience."""

from __future__ import annotations

from contextlib import suppress
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

if TYPE_CHECKING:
    from collections.abc import Sequence
    from difflib import Match

STEPS: Final = 500_000
"""Looks at an item after which two texts are taken for wholly different: some 0.1 s."""


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
    """Whether they were compared; else all between the first and the last difference is one change."""


def compare(old: Sequence[str], new: Sequence[str], steps: int = STEPS) -> Compared:
    """Compare two sequences.

    Args:
        old: What was there before.
        new: What is there now.
        steps: Looks at an item to take at most, besides those that find the common beginning and end.
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
        return Compared((), exact=True)
    whole = Change(head, old_to, head, new_to)
    if head in (old_to, new_to):
        return Compared((whole,), exact=True)
    # Items that repeat, such as empty lines, take the most steps: a second time nothing begins at them.
    for autojunk in (False, True) if steps else ():
        with suppress(_TooManySteps):
            found = _Matcher(old[head:old_to], new[head:new_to], steps, autojunk=autojunk).get_opcodes()
            changes = [Change(*(each + head for each in place)) for tag, *place in found if tag != "equal"]
            return Compared(tuple(changes), exact=not autojunk or changes != [whole])
    return Compared((whole,), exact=False)


class _TooManySteps(Exception):  # noqa: N818 - it is no error
    pass


class _Matcher(SequenceMatcher[str]):
    """A matcher that counts its steps, which are quadratic where items repeat."""

    def __init__(self, old: Sequence[str], new: Sequence[str], steps: int, *, autojunk: bool) -> None:
        super().__init__(None, old, new, autojunk)
        self._old = old
        self._left = steps

    def find_longest_match(
        self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None
    ) -> Match:
        places = cast("Any", self).b2j  # documented, but not typed
        self._left -= sum(1 + len(places.get(item, ())) for item in self._old[alo:ahi])
        if self._left < 0:
            raise _TooManySteps
        return super().find_longest_match(alo, ahi, blo, bhi)
