"""Tracing, where the program uses OpenTelemetry. Where it does not, nothing of that is ever imported."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, TypeVar, TypeVarTuple

from thinkwell._observing import Observer

if TYPE_CHECKING:
    from collections.abc import Callable

    from thinkwell._observing import RunFacts, RunObserver, SessionObserver
    from thinkwell._spans import AgentSpans

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


class Tracing(Observer):
    """Makes spans of an agent's sessions and runs from when the program has imported OpenTelemetry."""

    def __init__(self, agent: str) -> None:
        self._agent = agent
        self._guard = Guard(agent)
        self._spans: AgentSpans | None = None

    def run(self, facts: RunFacts, /) -> RunObserver | None:
        """Begin a run's span."""
        spans = self._ready()
        return None if spans is None else self._guard(spans.run, facts)

    def session(self, how: str, /) -> SessionObserver | None:
        """Prepare a session's span."""
        spans = self._ready()
        return None if spans is None else self._guard(spans.session, how)

    def _ready(self) -> AgentSpans | None:
        if self._spans is None and sys.modules.get("opentelemetry.trace") is not None:
            self._spans = self._guard(self._load)
        return self._spans

    def _load(self) -> AgentSpans:
        from thinkwell._spans import AgentSpans

        return AgentSpans(self._agent, self._guard)
