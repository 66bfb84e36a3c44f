"""What the program's OpenTelemetry collects, for tests: the real SDK, set up as a program does."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from opentelemetry import propagate, trace
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.context import Context
from opentelemetry.propagators.composite import CompositePropagator
from opentelemetry.propagators.textmap import (
    CarrierT,
    Getter,
    Setter,
    TextMapPropagator,
    default_getter,
    default_setter,
)
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from opentelemetry.sdk.trace import Span
    from opentelemetry.trace import Link, SpanKind, TraceState
    from opentelemetry.util.types import Attributes, AttributeValue

USUAL = CompositePropagator([TraceContextTextMapPropagator(), W3CBaggagePropagator()])


class Silent(TextMapPropagator):
    """Says nothing of spans to others, and hears nothing."""

    @property
    def fields(self) -> set[str]:
        return set()

    def extract(
        self, carrier: CarrierT, context: Context | None = None, getter: Getter[CarrierT] = default_getter
    ) -> Context:
        return context or Context()

    def inject(
        self, carrier: CarrierT, context: Context | None = None, setter: Setter[CarrierT] = default_setter
    ) -> None:
        pass


class Switch(Sampler):
    """Samples all or nothing: a process has one provider, and other tests want no spans."""

    def __init__(self) -> None:
        self.decision = Decision.DROP

    def should_sample(
        self,
        parent_context: Context | None,
        trace_id: int,
        name: str,
        kind: SpanKind | None = None,
        attributes: Attributes = None,
        links: Sequence[Link] | None = None,
        trace_state: TraceState | None = None,
    ) -> SamplingResult:
        return SamplingResult(self.decision, attributes)

    def get_description(self) -> str:
        return "all or nothing"


class Saboteur(SpanProcessor):
    """Counts the spans that are open, and fails where it is told to."""

    def __init__(self) -> None:
        self.open: set[int] = set()
        self.fails_at: str | None = None
        """When, and over which spans: ``start``, ``end``, ``start turn``, …"""
        self.on_step: Callable[[str], None] | None = None
        """Called with what happens, in those words."""

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        self._fail(f"start {span.name}")
        assert span.context is not None
        self.open.add(span.context.span_id)

    def on_end(self, span: ReadableSpan) -> None:
        assert span.context is not None
        self.open.discard(span.context.span_id)
        self._fail(f"end {span.name}")

    def _fail(self, step: str) -> None:
        if self.on_step is not None:
            self.on_step(step)
        if self.fails_at is not None and step.startswith(self.fails_at):
            raise RuntimeError("broken processor")


class Collected:
    """What was collected in one test."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.switch = Switch()
        self.saboteur = Saboteur()
        self.provider = TracerProvider(sampler=self.switch)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.provider.add_span_processor(self.saboteur)

    @property
    def all(self) -> tuple[ReadableSpan, ...]:
        """The spans that have ended, in that order."""
        return self.exporter.get_finished_spans()

    @property
    def names(self) -> list[str]:
        return [span.name for span in self.all]

    def one(self, name: str) -> ReadableSpan:
        (span,) = (span for span in self.all if span.name == name)
        return span

    def path(self, span: ReadableSpan) -> list[str]:
        """The names of the spans above, the nearest first."""
        by_id = {known.context.span_id: known for known in self.all if known.context is not None}
        above: list[str] = []
        while span.parent is not None:
            span = by_id[span.parent.span_id]
            above.append(span.name)
        return above

    def tree(self) -> set[tuple[str, ...]]:
        """Each span as the way to it."""
        return {(*reversed(self.path(span)), span.name) for span in self.all}


_collected = Collected()
_installed: list[Collected] = []


@contextmanager
def collecting() -> Generator[Collected]:
    """Collect spans for the time of a block."""
    if not _installed:  # a provider can be set once
        trace.set_tracer_provider(_collected.provider)
        _installed.append(_collected)
    _collected.exporter.clear()
    _collected.saboteur.open.clear()
    _collected.saboteur.fails_at = _collected.saboteur.on_step = None
    _collected.switch.decision = Decision.RECORD_AND_SAMPLE
    propagate.set_global_textmap(USUAL)
    try:
        yield _collected
    finally:
        _collected.switch.decision = Decision.DROP
        propagate.set_global_textmap(Silent())


def attributes(span: ReadableSpan) -> Mapping[str, AttributeValue]:
    return span.attributes or {}


def traceparent(span: ReadableSpan) -> str:
    """What is told to the agent of a span."""
    assert span.context is not None
    return f"00-{span.context.trace_id:032x}-{span.context.span_id:016x}-{span.context.trace_flags:02x}"
