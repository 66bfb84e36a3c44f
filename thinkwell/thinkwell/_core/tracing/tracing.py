"""Tracing, where the program uses OpenTelemetry. Where it does not, nothing of that is ever imported."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from thinkwell._core.log.observers import Observer
from thinkwell._core.tracing.guard import Guard

if TYPE_CHECKING:
    from thinkwell._core.log.observers import RunFacts, RunObserver, SessionObserver
    from thinkwell._core.tracing.spans import AgentSpans


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
        from thinkwell._core.tracing.spans import AgentSpans

        return AgentSpans(self._agent, self._guard)
