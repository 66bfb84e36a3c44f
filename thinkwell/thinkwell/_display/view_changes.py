"""Changes between two looks at a view, in the types of `thinkwell._display.changes`.

Displays look at views: a log has only the events that its run keeps, buffers merge and drop, and a display
may begin late; a `RunView` is always complete.
"""

from __future__ import annotations

from itertools import chain, compress
from operator import is_not
from typing import TYPE_CHECKING, TypeAlias

from thinkwell import events as ev
from thinkwell._display import changes as ch
from thinkwell.view import AnswerView, RunView

if TYPE_CHECKING:
    from collections.abc import Iterator

    from thinkwell.view import TimelineItem, ToolView

News: TypeAlias = ev.Notice | ev.ResultAttempt | AnswerView
"""What is told apart from texts and calls."""

ViewChange: TypeAlias = ch.BlockBegun | ch.BlockGrown | ch.CallBegun | ev.TurnStarted | ev.PlanUpdate | News
"""A change. A plan includes all changes of its steps since the last look."""


class ViewReader:
    """Reads a run look by look.

    A look costs as much as has happened since the last one, plus a little for each message and call, as
    making the view does.

    Blocks, calls and turns come in the order in which they began, then texts of older blocks, then the plan,
    then notices, refusals and answers, sorted by time. A view does not have the numbers of events, so none is
    set.
    """

    def __init__(self) -> None:
        self._before = RunView()
        """The run at the last look."""
        self._blocks: dict[tuple[str, int], ch.Block] = {}
        """The blocks by their kinds and numbers."""
        self._calls: dict[str, float] = {}
        """When the last call of each id began."""
        self._begun_calls = 0

    def look(self, view: RunView, now: float) -> Iterator[ViewChange]:
        """Yield the changes since the last look.

        Args:
            view: The run.
            now: Seconds since the run began.
        """
        before, self._before = self._before, view
        grown = dict(_grown(view, before))
        known = len(before.timeline)
        begin = max(known - 1, 0)  # the last one may go on
        for place, item in enumerate(view.timeline[begin:], begin):
            if place >= known:
                yield self._begin(item, view)
            if text := grown.pop((item.kind, item.index), ""):
                yield ch.BlockGrown(self._blocks[item.kind, item.index], text, False, 0, now)
        for block, text in grown.items():
            yield ch.BlockGrown(self._blocks[block], text, True, 0, now)
        if view.tools is not before.tools:
            for tool in view.tools.values():
                if tool.started_at != self._calls[tool.id]:  # its id was reused
                    yield self._call(tool)
        if view.plan_changes > before.plan_changes:
            yield ev.PlanUpdate(entries=view.plan, at=now)
        news: list[News] = [
            *view.notices[len(before.notices) :],
            *view.attempts[len(before.attempts) :],
            *view.answers[len(before.answers) :],
        ]
        yield from sorted(news, key=time_of)

    def _begin(self, item: TimelineItem, view: RunView) -> ViewChange:
        match item.kind:
            case "tool":
                assert item.id is not None
                return self._call(view.tools[item.id])
            case "turn":
                return ev.TurnStarted(number=item.index, at=item.at)
            case kind:
                block = self._blocks[kind, item.index] = ch.Block(kind=kind, index=item.index, id=item.id)
                return ch.BlockBegun(block, 0, item.at)

    def _call(self, tool: ToolView) -> ch.CallBegun:
        number = self._begun_calls
        self._begun_calls += 1
        self._calls[tool.id] = tool.started_at
        return ch.CallBegun(number, tool, 0, tool.started_at)


def _grown(view: RunView, before: RunView) -> Iterator[tuple[tuple[str, int], str]]:
    """Yield the new text of blocks that have grown, by their kinds and numbers."""
    for kind, blocks, old in (
        ("message", view.messages, before.messages),
        ("thought", view.thought_blocks, before.thought_blocks),
        ("user", view.user_messages, before.user_messages),
    ):
        changed = compress(range(len(old)), map(is_not, blocks, old))  # nearly all are the same
        for index in chain(changed, range(len(old), len(blocks))):
            told = len(old[index]) if index < len(old) else 0
            if text := blocks[index][told:]:
                yield (kind, index), text


def time_of(news: News) -> float:
    """Return its time, in seconds since the run began."""
    return news.answered_at if isinstance(news, AnswerView) else news.at
