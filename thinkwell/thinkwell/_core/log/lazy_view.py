"""The view of a run, computed on access."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from thinkwell import events as ev
from thinkwell._core.log.reducer import PARTS, ViewReducer, last_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkwell._core.schema.partial import PartialResult
    from thinkwell.view import RunView

WAITING: Final = 1000
"""Events outside the log that may wait until the next access."""

WAITING_TEXT: Final = 1024 * 1024
"""Characters of their texts."""

_OF_NO_PLACE: Final = (ev.UsageUpdate, ev.PhaseChanged, ev.TurnEnded, ev.ToolsSeen)
"""Events that mean the same to the view in any place among events of other kinds."""

_TEXTS: Final = (ev.Message, ev.Thought, ev.UserMessage, ev.SubagentText)


class LazyView:
    """Reduces the events of a log, and those that it does not keep, on access.

    Args:
        agent: The agent's name.
        cwd: The folder in which it works.
        partial: The part of its result before the end.
        keeps_turns: Whether kept events are never merged or dropped.
        keeps_turn_starts: Whether the log keeps the starts of turns: then `leave_out` never gets one.
    """

    def __init__(
        self, agent: str, cwd: str, partial: PartialResult, *, keeps_turns: bool, keeps_turn_starts: bool
    ) -> None:
        self.partial = partial
        self._reducer = ViewReducer(agent=agent, cwd=cwd, drafts=partial.kind)
        self.reduced: int = 0
        """The number of kept events that are reduced."""
        self._waiting: list[tuple[int, ev.ThoughtEvent]] = []
        """Events not kept since, and the number of kept events before each."""
        self._waiting_text = 0
        self._keeps_turns = keeps_turns
        self._turn = 0
        """The index of the last turn's start among the kept events."""
        self._turn_is_whole = keeps_turns and not keeps_turn_starts
        """Whether all text of it is kept."""

    def leave_out(self, event: ev.ThoughtEvent, kept: Sequence[ev.ThoughtEvent], *, ended: bool) -> None:
        """Count an event that is not kept. Small ones wait until the next access."""
        if isinstance(event, ev.TurnStarted):
            self._turn = len(kept)
            self._turn_is_whole = self._keeps_turns
        elif isinstance(event, PARTS):
            self._turn_is_whole = False
        if isinstance(event, _OF_NO_PLACE) and not ended:
            self._reducer.apply((event,))
            return
        self._waiting.append((len(kept), event))
        self._waiting_text += len(event.text) if isinstance(event, _TEXTS) else 0
        if len(self._waiting) >= WAITING or self._waiting_text >= WAITING_TEXT or not _is_light(event):
            self.reduce(kept)

    def reduce(self, kept: Sequence[ev.ThoughtEvent]) -> None:
        """Reduce the events since the last access."""
        news: list[ev.ThoughtEvent] = []
        for place, event in self._waiting:
            news += kept[self.reduced : place]
            news.append(event)
            self.reduced = place
        news += kept[self.reduced :]
        self.reduced = len(kept)
        self._waiting.clear()
        self._waiting_text = 0
        self._reducer.apply(news)

    def dropped(self, count: int) -> None:
        """Count events that the log has dropped."""
        self._reducer.dropped(count)

    def snapshot(self, kept: Sequence[ev.ThoughtEvent], error: Exception | None) -> RunView:
        """Return the current view of the run."""
        return self.reducer(kept).snapshot(error)

    def reducer(self, kept: Sequence[ev.ThoughtEvent]) -> ViewReducer:
        """Return the reducer, with all events reduced."""
        self.reduce(kept)
        return self._reducer

    def last_message(self, kept: Sequence[ev.ThoughtEvent]) -> str:
        """Return the text of the last message. Most often nothing has to be reduced for it."""
        if self._turn_is_whole and (text := last_text(kept[self._turn :])) is not None:
            return text
        return self.reducer(kept).last_message()


def _is_light(event: ev.ThoughtEvent) -> bool:
    """Return whether an event has nothing large except its text."""
    if isinstance(event, _TEXTS):
        return isinstance(event.content, ev.TextContent)
    return isinstance(event, (ev.PlanUpdate, ev.TurnStarted, ev.ModeUpdate, ev.QuestionVerdict, ev.Notice))
