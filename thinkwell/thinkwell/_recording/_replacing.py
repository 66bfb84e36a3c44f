"""Parts of a text that are replaced."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable


class Span(NamedTuple):
    """A part of a text that is replaced."""

    start: int
    end: int
    replacement: str


def replaced(text: str, spans: Iterable[Span], start: int = 0, end: int | None = None) -> str:
    """Return the text, or a part of it, without the spans: replaced where they begin."""
    parts: list[str] = []
    size = len(text) if end is None else end
    for span in spans:
        if span.end > start and span.start < size:
            parts.append(text[start : span.start])
            if span.start >= start:
                parts.append(span.replacement)
            start = span.end
    parts.append(text[start:size])
    return "".join(parts)


def merged(spans: list[Span]) -> list[Span]:
    """Join those that overlap. The name of a variable is kept."""
    out: list[Span] = []
    for span in sorted(spans):
        last = out[-1] if out else span
        if not out or span.start >= last.end:
            out.append(span)
        else:
            label = max(last.replacement, span.replacement, key=len)
            out[-1] = Span(last.start, max(last.end, span.end), label)
    return out
