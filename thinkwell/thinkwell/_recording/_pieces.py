"""The places of streamed texts in records. A secret may be cut into several pieces."""

from __future__ import annotations

from functools import reduce
from operator import getitem
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from thinkwell._core.schema.json_schema import is_object
from thinkwell._lines._names import MESSAGE_UPDATE
from thinkwell._lines.words import PIECE_FIELDS
from thinkwell._values.content import TextEvent

if TYPE_CHECKING:
    from thinkwell import events as ev
    from thinkwell.events import JsonValue

Place: TypeAlias = tuple[str, ...]
"""The path of keys to a text."""

SPEECH: Final = frozenset({"agent_message_chunk", MESSAGE_UPDATE, "message", "report", "unhandled"})
"""Kinds of updates and events with the same piece in NDJSON runs: they do not interrupt each other."""


class Spoken(NamedTuple):
    """The text of a message of the wire."""

    session: str | None = None
    """Its session."""
    kind: str | None = None
    """The kind of text that it is a piece of."""
    place: Place | None = None
    """The place of the piece; ``None`` if it has none."""


def spoken(message: JsonValue) -> Spoken:
    """Find a piece of text in a message."""
    match message:
        case {"params": {"sessionId": str(session), "update": {"sessionUpdate": str(kind), **update}}}:
            match update:
                case {"content": {"text": str()}}:
                    return Spoken(session, kind, ("params", "update", "content", "text"))
                case {"message": {"type": "partial"} as said} if kind == MESSAGE_UPDATE and is_object(said):
                    return Spoken(session, kind, _piece(said, "params", "update", "message"))
                case _:
                    return Spoken(session)
        case {"params": {"sessionId": str(session)}}:
            return Spoken(session)
        case _:
            return Spoken()


def told(event: ev.ThoughtEvent, fields: dict[str, JsonValue]) -> Place | None:
    """Return the place of a piece of text in an event's fields; ``None`` if it has none."""
    if isinstance(event, TextEvent):
        return ("text",)
    body = fields.get("body")
    speaks = event.type in SPEECH and fields.get("kind") == "partial"
    return _piece(body, "body") if speaks and is_object(body) else None


def _piece(said: dict[str, JsonValue], *before: str) -> Place | None:
    names = (name for name in PIECE_FIELDS if isinstance(said.get(name), str) and said[name])
    return next(((*before, name) for name in names), None)


def taken_out(value: JsonValue, place: Place | None) -> str | None:
    """Remove the piece, and return it."""
    return None if place is None else reduce(getitem, place[:-1], value).pop(place[-1])


def put_in(value: JsonValue, place: Place, text: str) -> None:
    """Put a piece in its place."""
    reduce(getitem, place[:-1], value)[place[-1]] = text
