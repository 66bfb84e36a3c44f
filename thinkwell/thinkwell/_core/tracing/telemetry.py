"""OpenTelemetry, if the program uses it. Otherwise it is never imported."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Literal

from thinkwell._core.log.observers import Observer
from thinkwell._core.tracing.guard import Guard

if TYPE_CHECKING:
    from collections.abc import Callable

    from thinkwell._core.log.observers import RunFacts, RunObserver, SessionObserver
    from thinkwell._core.tracing.content import Redaction


class Telemetry(Observer):
    """Records spans or metrics of an agent's sessions and runs once the program has imported their API.

    Args:
        agent: Name of the agent.
        signal: The signal, by the name of the API's module.
        redaction: Makes the redaction for spans.
    """

    def __init__(
        self, agent: str, signal: Literal["trace", "metrics"], redaction: Callable[[], Redaction]
    ) -> None:
        self._agent = agent
        self._signal = signal
        self._redaction = redaction
        self._guard = Guard(agent, signal)
        self._instruments: Observer | None = None
        """The spans or the metrics."""

    def run(self, facts: RunFacts, /) -> RunObserver | None:
        """Begin to record a run."""
        instruments = self._ready()
        return None if instruments is None else self._guard(instruments.run, facts)

    def session(self, how: str, /) -> SessionObserver | None:
        """Prepare to record a session."""
        instruments = self._ready()
        return None if instruments is None else self._guard(instruments.session, how)

    def _ready(self) -> Observer | None:
        if self._instruments is None and sys.modules.get(f"opentelemetry.{self._signal}") is not None:
            self._instruments = self._guard(self._load)
        return self._instruments

    def _load(self) -> Observer:
        if self._signal == "trace":
            from thinkwell._core.tracing.content import content_of
            from thinkwell._core.tracing.spans import AgentSpans

            return AgentSpans(self._agent, self._guard, content_of(self._redaction))
        from thinkwell._core.tracing.metrics import AgentMetrics

        return AgentMetrics(self._agent, self._guard)
