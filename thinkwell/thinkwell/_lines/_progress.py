"""What a program says of its progress, as tool calls: one for each step."""

from __future__ import annotations

import math
from itertools import count
from typing import TYPE_CHECKING

from msgspec import Struct

from thinkwell._lines.words import text_of
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from thinkwell.events import JsonValue


class _Step(Struct, frozen=True):
    id: str
    key: tuple[str, str]
    """What the messages of a step have in common: their stage, or where they have none, their text."""
    title: str


class Progress:
    """The step that a program is at, and those before it."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._step: _Step | None = None

    def heard(self, body: dict[str, JsonValue]) -> list[s.SessionUpdate]:
        """Return what a message of progress changes."""
        stage, text = text_of(body, "stage"), text_of(body, "message")
        key = ("stage", stage) if stage else ("message", text)
        title = (text or stage or "progress") + _share(body.get("percent"))
        step = self._step
        if step is None or step.key != key:
            updates = self.ended("completed")
            self._step = _Step(f"progress-{next(self._numbers)}", key, title)
            start = s.ToolCallStart(
                tool_call_id=self._step.id, title=title, kind="other", status="in_progress"
            )
            return [*updates, start]
        if step.title == title:
            return []
        self._step = _Step(step.id, key, title)
        return [s.ToolCallProgress(tool_call_id=step.id, title=title, status="in_progress")]

    def ended(self, status: s.ToolCallStatus) -> list[s.SessionUpdate]:
        """Return how the step ends that the program is at, where it is at any."""
        step, self._step = self._step, None
        return [] if step is None else [s.ToolCallProgress(tool_call_id=step.id, status=status)]


def _share(percent: JsonValue) -> str:
    """Return how much is done, for a title; nothing where it is not said in a way that makes sense."""
    if isinstance(percent, bool) or not isinstance(percent, int | float) or not 0 <= percent <= 100:
        return ""
    return f" ({math.floor(percent)} %)"
