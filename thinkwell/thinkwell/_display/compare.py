"""The differences of two sequences, by difflib, with a limit."""

from __future__ import annotations

from contextlib import suppress
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

if TYPE_CHECKING:
    from collections.abc import Sequence
    from difflib import Match

STEPS: Final = 500_000
"""Comparisons of items after which two texts count as completely different: about 0.1 s."""


class Change(NamedTuple):
    """Items of the old sequence that were replaced: ``old[old_from:old_to]``. Either side may be empty."""

    old_from: int
    old_to: int
    new_from: int
    new_to: int


class Compared(NamedTuple):
    """The differences of two sequences."""

    changes: tuple[Change, ...]
    """In order; the items between them are equal."""
    exact: bool
    """Whether they were compared; if not, everything between the first and the last difference is one
    change."""


def compare(old: Sequence[str], new: Sequence[str], steps: int = STEPS) -> Compared:
    """Compare two sequences.

    Args:
        old: The old sequence.
        new: The new sequence.
        steps: Most comparisons of items, besides those for the common beginning and end.
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
    # Repeated items, such as empty lines, take the most steps: the second time, no match begins at them.
    for autojunk in (False, True) if steps else ():
        with suppress(_TooManySteps):
            found = _Matcher(old[head:old_to], new[head:new_to], steps, autojunk=autojunk).get_opcodes()
            changes = [Change(*(each + head for each in place)) for tag, *place in found if tag != "equal"]
            return Compared(tuple(changes), exact=not autojunk or changes != [whole])
    return Compared((whole,), exact=False)


class _TooManySteps(Exception):  # noqa: N818 - it is no error
    pass


class _Matcher(SequenceMatcher[str]):
    """A matcher that counts its steps, which are quadratic for repeated items."""

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
