"""`Retry`: when a task is tried again."""

from __future__ import annotations

import math
import random as dice
import time
from collections.abc import Callable  # noqa: TC003 - type of a field, read at run time
from typing import TYPE_CHECKING, Final, cast

from msgspec import Struct

from thinkwell._core.schema.arguments import check_count, check_seconds
from thinkwell.errors import AgentExited, Overloaded, QuotaExhausted, ThinkwellError

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_DOUBLINGS: Final = 64
"""Beyond that, a delay would be no number."""


class Retry(Struct, frozen=True, kw_only=True):
    """Tries a task again after an error: ``run(retry=Retry(attempts=5))``.

    Only as long as the agent has changed nothing. Before the second attempt it waits a random time of up to
    `base_delay` seconds, before each further one up to twice as long. Where the agent says how long to wait,
    it waits that much longer.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of range.
    """

    attempts: int = 3
    """How often the agent may try, the first time included."""
    base_delay: float = 1.0
    """Seconds to wait at most before the second attempt."""
    max_delay: float = 60.0
    """Seconds to wait at most before any. If the agent wants to be left alone for longer, the task is not
    tried again."""
    on: tuple[type[ThinkwellError], ...] = (Overloaded, QuotaExhausted, AgentExited)
    """The classes of the errors after which it is. A `QuotaExhausted` counts only if the agent says when the
    quota is renewed, and an `AgentExited` only if thinkwell can start the agent again."""
    random: Callable[[], float] = dice.random
    """Returns a number from 0 to 1, the share of the delay that is waited."""

    def __post_init__(self) -> None:
        check_count("Retry(attempts=…)", self.attempts)
        if not self.attempts:
            raise ValueError("Retry(attempts=0): the first attempt counts; give 1 or more")
        check_seconds("Retry(base_delay=…)", self.base_delay)
        check_seconds("Retry(max_delay=…)", self.max_delay)
        if not _are_errors(self.on):
            raise TypeError(f"Retry(on={self.on!r:.100}): give a tuple of classes of thinkwell.errors")

    def delay(self, error: Exception, failed: int) -> float | None:
        """Return how many seconds to wait; ``None``: the task is not tried again.

        Args:
            error: Why the last attempt has failed.
            failed: How many attempts have.
        """
        if failed >= self.attempts or not isinstance(error, self.on):
            return None
        least = 0.0
        if isinstance(error, Overloaded):
            least = max(0.0, 0.0 if error.retry_after is None else error.retry_after)
        elif isinstance(error, QuotaExhausted):
            least = math.inf if error.resets_at is None else max(0.0, error.resets_at - time.time())
        if least > self.max_delay:
            return None
        return least + self.random() * min(
            self.max_delay, self.base_delay * 2.0 ** min(failed - 1, MOST_DOUBLINGS)
        )


def _are_errors(kinds: object) -> bool:
    if not isinstance(kinds, tuple):
        return False
    each = cast("Iterable[object]", kinds)
    return all(isinstance(kind, type) and issubclass(kind, ThinkwellError) for kind in each)
