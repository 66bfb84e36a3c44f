"""Calls, plans, questions and pictures for front ends, in JSON of bounded size."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from thinkwell import events as ev
from thinkwell.web._records import ShownError

if TYPE_CHECKING:
    from thinkwell.view import ToolView
    from thinkwell.web._records import RunEnded

Chunk: TypeAlias = dict[str, object]
"""A frame of a format: a JSON object."""

MOST_TEXT: Final = 1_000_000
"""Characters of a text that cannot be split, such as a tool's output.

One of the clients refuses frames of 10 million.
"""

MOST_MEDIA: Final = 8_000_000
"""The same for a picture in base64."""

ID: Final = 200
"""Characters of an id. Agents choose the ids of tool calls."""

_MEDIA: Final = re.compile(r"(?:image/(?:png|jpeg|gif|webp)|audio/[a-z0-9.+-]{1,40})\Z")
"""The media types of ``data:`` addresses that browsers show without running anything."""

_BASE64: Final = re.compile(r"[A-Za-z0-9+/]*={0,2}\Z")


def short(name: str) -> str:
    """Return an id of bounded length that is unique."""
    if len(name) <= ID:
        return name
    return f"{name[: ID - 20]}…{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def clipped(text: str, most: int = MOST_TEXT) -> str:
    """Return a text of bounded length, with a note if it was cut."""
    if len(text) <= most:
        return text
    return f"{text[:most]}… ({len(text) - most} more characters)"


def call_text(view: ToolView) -> str:
    """Return the output of a tool as a text: the content that the agent shows, or else the raw output."""
    texts = [_block_text(part.content) for part in view.content if isinstance(part, ev.BlockContent)]
    text = "\n".join(filter(None, texts))
    if text or view.output is None:
        return clipped(text)
    return clipped(view.output if isinstance(view.output, str) else as_json(view.output))


def as_json(value: ev.JsonValue) -> str:
    """Return a JSON value from an agent as a text; empty if it is nested too deeply."""
    try:
        return msgspec.json.encode(value).decode()
    except RecursionError:  # pragma: no cover - only before Python 3.12: what was read is written again
        return ""


def call_facts(view: ToolView) -> Chunk:
    """Return the facts about a call besides its name, input and output."""
    facts: Chunk = {"kind": view.kind, "status": view.status}
    if view.title:
        facts["title"] = clipped(view.title)
    if view.locations:
        facts["locations"] = msgspec.to_builtins(view.locations)
    if view.parent is not None:
        facts["parent"] = view.parent
    return facts


def plan_shown(event: ev.PlanUpdate) -> Chunk:
    """Return a plan for clients."""
    plan: Chunk = {"id": event.id, "entries": list(msgspec.to_builtins(event.entries))}
    if event.markdown is not None:
        plan["markdown"] = clipped(event.markdown)
    if event.uri is not None:
        plan["uri"] = event.uri
    return plan


def plain(event: ev.ThoughtEvent) -> Chunk:
    """Return an event without its type, number and time."""
    fields: Chunk = msgspec.to_builtins(event)
    for name in ("type", "seq", "at"):
        fields.pop(name, None)
    return fields


def _block_text(block: ev.ContentBlock) -> str:
    match block:
        case ev.TextContent():
            return block.text
        case ev.EmbeddedResource():
            return block.text or ""
        case _:
            return ""


def media(block: ev.ContentBlock) -> tuple[str, str] | None:
    """Return the media type of a picture or sound, and its base64, if browsers can show it."""
    if not isinstance(block, ev.ImageContent | ev.AudioContent) or len(block.data) > MOST_MEDIA:
        return None
    kind = block.mime_type.lower()
    if _MEDIA.match(kind) is None or _BASE64.match(block.data) is None:
        return None
    return kind, block.data


def end_error(end: RunEnded) -> ShownError | None:
    """Return why a run has failed; ``None``: it has completed, or was cancelled."""
    if end.status == "interrupted":
        return ShownError(name="Interrupted", message="the server has ended in the middle of the run")
    if end.status != "failed":
        return None
    return end.error or ShownError(name="ServerError", message="the run could not continue")
