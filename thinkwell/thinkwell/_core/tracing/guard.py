"""Keeps failures of OpenTelemetry away from the runs."""

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
    """Calls code that may run the program's samplers, processors and propagators.

    Their exceptions must not affect a run, and are not worth a line for each event.
    """

    def __init__(self, agent: str, signal: Literal["trace", "metrics"]) -> None:
        self._agent = agent
        self._what = "spans are lost, because tracing failed"
        if signal == "metrics":
            self._what = "metrics are lost, because measuring failed"
        self._level = logging.WARNING

    def __call__(
        self, action: Callable[[*Args], T], *args: *Args, context: Context | None = None
    ) -> T | None:
        """Return the result of an action; ``None`` if it fails.

        Args:
            action: The function to call.
            args: Its arguments.
            context: Its context variables, which it does not change.
        """
        try:
            return action(*args) if context is None else context.copy().run(lambda: action(*args))
        except Exception:
            level, self._level = self._level, logging.DEBUG
            extra = log_fields(agent=self._agent)
            logger.log(level, "Agent %s: %s", self._agent, self._what, exc_info=True, extra=extra)
            return None
