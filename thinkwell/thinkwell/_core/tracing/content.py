"""Prompts, texts and results as attributes of spans: on request, without secrets, and bounded."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from thinkwell import events as ev
from thinkwell._core.schema.json_schema import is_array, is_object

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


VARIABLE: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""The environment variable of OpenTelemetry's instrumentations."""

ON: Final = ("true", "span_only", "span_and_event")
"""Its values that request content in spans."""

LIMIT: Final = 16_384
"""Most characters of one attribute, before JSON escapes them. Backends cut attributes at similar sizes."""

PUNCTUATION: Final = 4
"""Characters that JSON adds around a text."""

NUMBER: Final = 20
"""Characters that are counted for a number, and for an empty list."""

DEPTH: Final = 50
"""Most levels of lists and objects."""


class Redaction(Protocol):
    """Removes secrets; see `thinkwell._recording._redact.Redactor`."""

    def redact(self, value: ev.JsonValue) -> ev.JsonValue:
        """Return a JSON value without its secrets."""
        ...

    def cut(self, text: str) -> str:
        """Return the beginning of a longer text without secrets, even one cut at its end."""
        ...


class Content:
    """Writes content.

    Args:
        redaction: Removes secrets.
    """

    def __init__(self, redaction: Redaction) -> None:
        self._redaction = redaction

    def attribute(self, value: ev.JsonValue) -> str:
        """Return a value as the JSON of an attribute."""
        bounded = self._bounded(value, [LIMIT], 0)
        return msgspec.json.encode(self._redaction.redact(bounded)).decode()

    def _bounded(self, value: ev.JsonValue, room: list[int], depth: int) -> ev.JsonValue:
        """Return as much of a value as fits."""
        if isinstance(value, str):
            kept = value[: max(room[0], 0)]
            room[0] -= len(value) + PUNCTUATION
            return kept if len(kept) == len(value) else self._redaction.cut(kept) + "…"
        room[0] -= NUMBER
        if depth < DEPTH and is_object(value):
            shown: dict[str, ev.JsonValue] = {}
            for key, item in value.items():
                if room[0] <= len(key):
                    break
                room[0] -= len(key) + PUNCTUATION
                shown[key] = self._bounded(item, room, depth + 1)
            return shown
        if depth < DEPTH and is_array(value):
            items: list[ev.JsonValue] = []
            for item in value:
                if room[0] <= 0:
                    break
                items.append(self._bounded(item, room, depth + 1))
            return items
        return value if value is None or isinstance(value, (bool, int, float)) else "…"


def content_of(redaction: Callable[[], Redaction]) -> Content | None:
    """Return a writer of content; ``None`` if the program does not ask for it."""
    return Content(redaction()) if os.environ.get(VARIABLE, "").strip().lower() in ON else None


class Transcript:
    """The texts of one run, as the messages of the conventions."""

    def __init__(self) -> None:
        self.inputs: list[ev.JsonValue] = []
        self.outputs: list[ev.JsonValue] = []
        self._parts: list[dict[str, ev.JsonValue]] = []
        self._pieces: list[str] = []
        """The text of the last part."""
        self._room = 2 * LIMIT
        """Characters left for texts."""

    def prompted(self, blocks: Sequence[object]) -> None:
        """Add a prompt. For parts that are not text, only their kind is added."""
        parts = [
            {"type": "text", "content": block["text"]} if block["type"] == "text" else {"type": block["type"]}
            for block in msgspec.to_builtins(blocks)
        ]
        self.inputs.append({"role": "user", "parts": parts})

    def said(self, event: ev.Message | ev.Thought) -> None:
        """Add a piece of a message or a thought, within the bounds."""
        if self._room <= 0:
            return
        kind = str(event.content.__struct_config__.tag)
        if kind == "text" and isinstance(event, ev.Thought):
            kind = "reasoning"
        if not self._parts or self._parts[-1]["type"] != kind:
            self._part({"type": kind})
        self._room -= len(event.text) or 1
        self._pieces.append(event.text)

    def returned(self, raw: ev.JsonValue) -> None:
        """Add a result that the agent returned by a call."""
        self._part({"type": "tool_call", "name": "return_result", "arguments": raw})

    def ended(self, reason: str) -> None:
        """Handle the end of a turn, or of the run if something is left."""
        if self._parts:
            self._close()
            self.outputs.append({"role": "assistant", "parts": self._parts, "finish_reason": reason})
            self._parts = []

    def _part(self, part: dict[str, ev.JsonValue]) -> None:
        self._close()
        self._parts.append(part)

    def _close(self) -> None:
        text = "".join(self._pieces)
        self._pieces = []
        if text:
            self._parts[-1]["content"] = text


def tool_result(event: ev.ToolDone) -> ev.JsonValue:
    """Return the result of an agent's tool call, if it is shown."""
    if event.output is not None or not event.content:
        return event.output
    shown: ev.JsonValue = msgspec.to_builtins(list(event.content))
    return shown
