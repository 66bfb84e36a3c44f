"""Which runs to delete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    from thinkwell.journal._types import Journal, RunRecord

PAGE: Final = 100
"""How many runs to look at at once."""

GRACE: Final = 60.0
"""Seconds that a run is kept after its end even if there are too many, for those who still watch it."""


class Retention(Struct, frozen=True, kw_only=True):
    """Which ended runs to keep. A running one is never deleted.

    Raises:
        TypeError: A limit is not a number.
        ValueError: A limit is negative.
    """

    max_age: float | None = None
    """Seconds since its end after which a run is deleted; ``None`` for never."""
    max_bytes: int | None = None
    """Maximum bytes of all entries, including running runs. Beyond that, the runs that ended first are
    deleted until the others fit; ``None`` for no limit. Storage takes up to half as much again."""

    def __post_init__(self) -> None:
        for name, value in (("max_age", self.max_age), ("max_bytes", self.max_bytes)):
            _check(name, value)

    async def prune(self, journal: Journal, now: float) -> list[str]:
        """Delete the runs that are too old or too many.

        Args:
            journal: The journal, open.
            now: The time, in seconds since the epoch.

        Returns:
            The ids of the deleted runs, in that order.

        Raises:
            JournalError: The journal cannot be used. Runs deleted before that are gone.
        """
        gone: list[str] = []
        excess = 0 if self.max_bytes is None else await journal.size() - self.max_bytes
        while page := await journal.oldest(PAGE):
            known = len(gone)
            for record in page:
                if not self._is_old(record, now) and (excess <= 0 or _has_just_ended(record, now)):
                    return gone
                excess -= record.size
                if await journal.delete(record.id):
                    gone.append(record.id)
            if len(gone) == known:  # another process deletes them
                break
        return gone

    def _is_old(self, record: RunRecord, now: float) -> bool:
        return self.max_age is not None and record.ended is not None and record.ended <= now - self.max_age


def _has_just_ended(record: RunRecord, now: float) -> bool:
    return record.ended is not None and record.ended > now - GRACE


def _check(name: str, value: object) -> None:
    if value is None:
        return
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"Retention({name}={value!r:.100}): it must be a number, or None")
    if not value >= 0:  # NaN fails both comparisons
        raise ValueError(f"Retention({name}={value}): it must not be negative")
