"""Keeps what goes wrong with OpenTelemetry away from the runs."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Literal, TypeVar, TypeVarTuple

from thinkwell._core.log.log_lines import log_fields

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import Context

T = TypeVar("T")
Args = TypeVarTuple("Args")

logger = logging.getLogger("thinkwell")


class Guard:
    """Calls what may run code of others: samplers, processors and propagators of the program's.

    What they raise must not hurt a run, and is not worth a line for each event.
    """

    def __init__(self, agent: str, signal: Literal["trace", "metrics"]) -> None:
        self._agent = agent
        self._what = "spans are lost, since tracing failed"
        if signal == "metrics":
            self._what = "metrics are lost, since measuring failed"
        self._level = logging.WARNING

    def __call__(
        self, action: Callable[[*Args], T], *args: *Args, context: Context | None = None
    ) -> T | None:
        """Return what an action returns; ``None`` where it fails.

        Args:
            action: What to call.
            args: Its arguments.
            context: The context variables that it is called with, and does not change.
        """
        try:
            return action(*args) if context is None else context.copy().run(lambda: action(*args))
        except Exception:
            level, self._level = self._level, logging.DEBUG
            extra = log_fields(agent=self._agent)
            logger.log(level, "Agent %s: %s", self._agent, self._what, exc_info=True, extra=extra)
            return None
