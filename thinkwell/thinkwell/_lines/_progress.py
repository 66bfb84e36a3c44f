"""A program's progress as tool calls: one for each step."""

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
    """The common key of a step's messages: their stage, or without one, their text."""
    title: str


class Progress:
    """The program's current step, and those before it."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._step: _Step | None = None

    def heard(self, body: dict[str, JsonValue]) -> list[s.SessionUpdate]:
        """Return the updates for a progress message."""
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
        """Return the update that ends the current step, if there is one."""
        step, self._step = self._step, None
        return [] if step is None else [s.ToolCallProgress(tool_call_id=step.id, status=status)]


def _share(percent: JsonValue) -> str:
    """Return the percentage for a title; empty if it is not valid."""
    if isinstance(percent, bool) or not isinstance(percent, int | float) or not 0 <= percent <= 100:
        return ""
    return f" ({math.floor(percent)} %)"
