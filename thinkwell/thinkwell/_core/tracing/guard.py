"""Keeps what goes wrong with tracing away from the runs."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, TypeVar, TypeVarTuple

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
Args = TypeVarTuple("Args")

logger = logging.getLogger("thinkwell")


class Guard:
    """Calls what may run code of others: samplers, processors and propagators of the program's.

    What they raise must not hurt a run, and is not worth a line for each event.
    """

    def __init__(self, agent: str) -> None:
        self._agent = agent
        self._level = logging.WARNING

    def __call__(self, action: Callable[[*Args], T], *args: *Args) -> T | None:
        """Return what an action returns; ``None`` where it fails."""
        try:
            return action(*args)
        except Exception:
            level, self._level = self._level, logging.DEBUG
            logger.log(level, "Agent %s: spans are lost, since tracing failed", self._agent, exc_info=True)
            return None
