"""Keeps failures of OpenTelemetry away from the runs."""

from __future__ import annotations

import logging
from contextvars import copy_context
from typing import TYPE_CHECKING, Literal, TypeVar, TypeVarTuple

from thinkwell._core.log.log_lines import log_fields

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import Context

    from thinkwell import events as ev

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


class Guarded:
    """Handles events in the context of the task that creates it, whose variables span processors may use."""

    def __init__(self, guard: Guard) -> None:
        self._safely = guard
        self._context = copy_context()
        self._takes: dict[str, Callable[..., None]] = {}
        """The handlers by the kinds of their events."""

    def event(self, event: ev.ThoughtEvent, /) -> None:
        """Handle an event, if its kind has a handler."""
        take = self._takes.get(event.type)
        if take is not None:
            self._safely(take, event, context=self._context)

    def _guard(self, action: Callable[[*Args], T], *args: *Args) -> T | None:
        return self._safely(action, *args, context=self._context)
