"""What an event changes of what was there before: a tool call, the tokens that were counted."""

from __future__ import annotations

from typing import TypeAlias

from msgspec.structs import replace

from thinkwell import events as ev
from thinkwell.view import TokenCounts, ToolView

__all__ = ("ToolEvent", "merged_tool", "with_tokens")

ToolEvent: TypeAlias = ev.ToolStart | ev.ToolUpdate | ev.ToolDone
"""What tells of a tool call."""


def with_tokens(counts: TokenCounts, usage: ev.TokenUsage) -> TokenCounts:
    """Return counts with those in it that an agent has reported for a turn."""
    added = {
        name: (getattr(counts, name) or 0) + more
        for name in counts.__struct_fields__
        if (more := getattr(usage, name)) is not None
    }
    return replace(counts, **added)


def merged_tool(old: ToolView, event: ToolEvent) -> ToolView:
    """Return a tool call with the news of an event in it."""
    if isinstance(event, ev.ToolStart):
        return ToolView(
            id=event.id,
            title=event.title,
            name=event.name,
            kind=event.kind,
            status=event.status,
            input=event.input,
            content=event.content,
            locations=event.locations,
            started_at=old.started_at if old.ended_at is None else event.at,
            parent=event.parent,
        )
    if isinstance(event, ev.ToolUpdate):
        return ToolView(
            id=event.id,
            title=old.title if event.title is None else event.title,
            name=event.name or old.name,
            kind=event.kind or old.kind,
            status=event.status or old.status,
            input=old.input if event.input is None else event.input,
            output=old.output if event.output is None else event.output,
            content=old.content if event.content is None else event.content,
            locations=old.locations if event.locations is None else event.locations,
            started_at=old.started_at,
            ended_at=old.ended_at,
            parent=event.parent or old.parent,
        )
    return ToolView(
        id=event.id,
        title=event.title or old.title,
        name=old.name,
        kind=old.kind,
        status=event.status,
        input=old.input,
        output=event.output,
        content=event.content,
        locations=old.locations,
        started_at=old.started_at,
        ended_at=event.at,
        parent=old.parent,
    )
