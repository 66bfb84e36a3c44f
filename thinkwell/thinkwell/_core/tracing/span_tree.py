"""A span of OpenTelemetry with its children, and attributes for tools and errors."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from opentelemetry import propagate, trace
from opentelemetry.trace import SpanKind, StatusCode

from thinkwell._values.tool_titles import JOINT, WORD, WORDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opentelemetry.context import Context
    from opentelemetry.trace import Span, Tracer
    from opentelemetry.util.types import AttributeValue

    from thinkwell import events as ev
    from thinkwell._core.tracing.guard import Guard

_SERVER: Final = "thinkwell[0-9a-f]{12}"
OWN_TOOL: Final = re.compile(
    rf"{WORDS}(?:(?:{_SERVER}(?:{JOINT})?){{1,2}}([A-Za-z0-9][\w-]{{0,99}})"
    rf"|([\w-]{{1,99}}?){JOINT}{WORDS}{_SERVER}(?:{JOINT}{WORD}){{0,2}}[)\]]?)"
    r"(?:(?:: ?| )\{.*)?",
    re.DOTALL,
)
"""How agents show a call of a tool of ours; our server's name differs in each session."""


class Tree:
    """A span, and its open children."""

    def __init__(self, tracer: Tracer, root: Span, around: Context, guard: Guard) -> None:
        self.root = root
        self.shared: dict[str, AttributeValue] = {}
        """The attributes of every span that begins from now on."""
        self._tracer = tracer
        self._around = around
        self._guard = guard
        self._open: dict[str, Span] = {}

    def context(self, span: Span) -> Context:
        """Return the context for code that a span is about, with the caller's baggage."""
        return trace.set_span_in_context(span, self._around)

    def start(
        self,
        name: str,
        attributes: Mapping[str, AttributeValue],
        above: Span | None = None,
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> Span:
        """Begin a span that the caller ends."""
        context = self.context(above or self.root)
        return self._tracer.start_span(name, context, kind, {**self.shared, **attributes})

    def grow(
        self,
        key: str,
        name: str,
        attributes: Mapping[str, AttributeValue],
        above: Span | None = None,
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> Span:
        """Begin a span that `end` ends, replacing the earlier one with that key."""
        self.end(key)
        span = self._open[key] = self.start(name, attributes, above, kind)
        return span

    def get(self, key: str) -> Span | None:
        """Return an open span."""
        return self._open.get(key)

    def end(
        self, key: str, attributes: Mapping[str, AttributeValue] | None = None, error: str | None = None
    ) -> None:
        """End a span, if it is open."""
        span = self._open.pop(key, None)
        if span is not None:
            finish(span, attributes or {}, error)

    def ask(self, event: ev.QuestionAsked) -> None:
        """Begin the span of a question, under that of its tool call or its turn."""
        attributes = {"thinkwell.question.id": event.id, "thinkwell.question.asks": event.asks}
        if event.tool_id is not None:
            attributes["gen_ai.tool.call.id"] = event.tool_id
        above = self.get(f"tool {event.tool_id}") or self.get("turn")
        self.grow(f"question {event.id}", f"question {event.asks}", attributes, above)

    def answer(self, event: ev.QuestionAnswered) -> None:
        """End the span of a question."""
        said = {"thinkwell.question.choice": event.choice or "cancelled", "thinkwell.question.by": event.by}
        self.end(f"question {event.id}", said)

    def fell(self, attributes: Mapping[str, AttributeValue], error: str | None, sharing: str = "") -> None:
        """End all spans, even if ending one of them fails.

        Args:
            attributes: The last attributes of the root.
            error: The error.
            sharing: The key of the failed span, if it is open.
        """
        for key in reversed(list(self._open)):
            self._guard(self.end, key, None, error if key == sharing else None)
        self._guard(finish, self.root, attributes, error)


def own_tool(*shown: str | None) -> str | None:
    """Return the name of the tool of ours that one of these names or titles means."""
    for words in shown:
        found = OWN_TOOL.fullmatch(words or "")
        if found is not None:
            return str(found[1] or found[2])
    return None


def injected(context: Context) -> Mapping[str, str]:
    """Return the fields that propagate a context, from the configured propagator."""
    carrier: dict[str, object] = {}
    propagate.inject(carrier, context)
    return {key: value for key, value in carrier.items() if isinstance(value, str)}


def finish(span: Span, attributes: Mapping[str, AttributeValue], error: str | None) -> None:
    """End a span."""
    if error is not None:
        fail(span, error)
    span.set_attributes(attributes)
    span.end()


def fail(span: Span, error: str) -> None:
    """Mark a span as failed."""
    span.set_attribute("error.type", error)
    span.set_status(StatusCode.ERROR)
