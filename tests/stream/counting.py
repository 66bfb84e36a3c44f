"""Counts work without a clock."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Generator


class Calls:
    """How many there were."""

    count = 0


@contextmanager
def counted_calls() -> Generator[Calls]:
    """Count the calls, of functions in Python and in C, that this thread makes in a block."""
    calls = Calls()

    def count(_frame: object, event: str, _arg: object) -> None:
        calls.count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        yield calls
    finally:
        sys.setprofile(before)


def calls_made(function: Callable[[], object]) -> int:
    """Count the calls that a function comes to."""
    with counted_calls() as calls:
        function()
    return calls.count
