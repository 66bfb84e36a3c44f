"""Random tests that can be repeated: how many, and which one went wrong."""

from __future__ import annotations

import os
import random
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator


def seeds(name: str, default: int) -> range:
    """Return the seeds to try: the environment says how many, or by ``THINKWELL_SEED`` which one."""
    only = os.environ.get("THINKWELL_SEED")
    if only is not None:
        return range(int(only), int(only) + 1)
    return range(int(os.environ.get(name, default)))


@contextmanager
def noted(seed: int) -> Generator[random.Random]:
    """Give a block dice, and name their seed where it fails."""
    try:
        yield random.Random(seed)
    except BaseException as exc:
        exc.add_note(f"Repeat it with THINKWELL_SEED={seed}")
        raise
