"""Texts that come in pieces: where these stand in what is recorded. A secret may be cut into several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from thinkwell._core.schema.json_schema import is_object
from thinkwell._lines._names import MESSAGE_UPDATE
from thinkwell._lines.words import PIECE_FIELDS
from thinkwell._values.content import TextEvent

if TYPE_CHECKING:
    from thinkwell import events as ev
    from thinkwell.events import JsonValue

Place: TypeAlias = tuple[str, ...]
"""The keys that lead to a text."""

SPEECH: Final = frozenset({"agent_message_chunk", MESSAGE_UPDATE, "message", "report", "unhandled"})
"""Kinds of updates and events that say the same piece where an agent speaks lines: none of them interrupts
another."""


class Spoken(NamedTuple):
    """What is to be known of a message of the wire."""

    session: str | None = None
    """The session that it is of."""
    kind: str | None = None
    """The kind of text that it is a piece of."""
    place: Place | None = None
    """Where the piece stands; ``None``: it is none."""


def spoken(message: JsonValue) -> Spoken:
    """Look for a piece of text in a message."""
    match message:
        case {"params": {"sessionId": str(session), "update": {"sessionUpdate": str(kind), **update}}}:
            content = update.get("content")
            if is_object(content) and isinstance(content.get("text"), str):
                return Spoken(session, kind, ("params", "update", "content", "text"))
            said = update.get("message")
            if kind == MESSAGE_UPDATE and is_object(said) and said.get("type") == "partial":
                name = _piece(said)
                return Spoken(session, kind, None if name is None else ("params", "update", "message", name))
            return Spoken(session)
        case {"params": {"sessionId": str(session)}}:
            return Spoken(session)
        case _:
            return Spoken()


def told(event: ev.ThoughtEvent, fields: dict[str, JsonValue]) -> Place | None:
    """Return where a piece of text stands in the fields of an event; ``None``: it has none."""
    if isinstance(event, TextEvent):
        return ("text",)
    body = fields.get("body")
    if event.type in SPEECH and fields.get("kind") == "partial" and is_object(body):
        name = _piece(body)
        return None if name is None else ("body", name)
    return None


def taken_out(value: JsonValue, place: Place | None) -> str | None:
    """Take the piece out, and return it."""
    if place is None:
        return None
    text = _inside(value, place).pop(place[-1])
    assert isinstance(text, str)
    return text


def put_in(value: JsonValue, place: Place, text: str) -> None:
    """Put a piece where it belongs."""
    _inside(value, place)[place[-1]] = text


def _inside(value: JsonValue, place: Place) -> dict[str, JsonValue]:
    for key in place[:-1]:
        assert is_object(value)
        value = value[key]
    assert is_object(value)
    return value


def _piece(said: dict[str, JsonValue]) -> str | None:
    """Return under which name a message has its piece of text."""
    return next((name for name in PIECE_FIELDS if isinstance(said.get(name), str) and said[name]), None)
