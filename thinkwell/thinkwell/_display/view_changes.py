"""Changes between two looks at a view, in the types of `thinkwell._display.changes`.

Displays look at views: a log has only the events that its run keeps, buffers merge and drop, and a display
may begin late; a `RunView` is always complete.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from thinkwell import events as ev
from thinkwell._display import changes as ch
from thinkwell.view import AnswerView

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from thinkwell.view import RunView, TimelineItem, ToolView

News: TypeAlias = ev.Notice | ev.ResultAttempt | AnswerView
"""What is told apart from texts and calls."""

ViewChange: TypeAlias = ch.BlockBegun | ch.BlockGrown | ch.CallBegun | ev.TurnStarted | ev.PlanUpdate | News
"""A change. A plan includes all changes of its steps since the last look."""


class _Text(Struct):
    """A block, and how many of its characters were yielded."""

    block: ch.Block
    told: int = 0


class ViewReader:
    """Reads a run look by look.

    A look costs as much as has happened since the last one, plus a little for each message and call, as
    making the view does.

    Blocks, calls and turns come in the order in which they began, then texts of older blocks, then the plan,
    then notices, refusals and answers, sorted by time. A view does not have the numbers of events, so none is
    set.
    """

    def __init__(self) -> None:
        self._items = 0
        """The number of yielded items of the timeline."""
        self._texts: dict[ch.BlockKind, list[_Text]] = {"message": [], "thought": [], "user": []}
        self._told: dict[ch.BlockKind, int] = {"message": 0, "thought": 0, "user": 0}
        """The number of yielded characters, over all blocks of a kind."""
        self._tools: Mapping[str, ToolView] | None = None
        self._calls: dict[str, float] = {}
        """When the last call of each id began."""
        self._begun_calls = 0
        self._plans = self._notices = self._attempts = self._answers = 0

    def look(self, view: RunView, now: float) -> Iterator[ViewChange]:
        """Yield the changes since the last look.

        Args:
            view: The run.
            now: Seconds since the run began.
        """
        texts: dict[ch.BlockKind, Sequence[str]] = {
            "message": view.messages,
            "thought": view.thought_blocks,
            "user": view.user_messages,
        }
        for place in range(max(self._items - 1, 0), len(view.timeline)):
            item = view.timeline[place]
            if place >= self._items:
                yield from self._begin(item, view)
            if item.kind != "tool" and item.kind != "turn":
                yield from self._grow(item.kind, texts[item.kind], item.index, now)
        self._items = len(view.timeline)
        for kind, blocks in texts.items():
            if self._told[kind] < sum(map(len, blocks)):  # an earlier one has grown
                for index in range(len(blocks)):
                    yield from self._grow(kind, blocks, index, now, resumed=True)
        if view.tools is not self._tools:
            self._tools = view.tools
            for tool in view.tools.values():
                if tool.started_at != self._calls[tool.id]:  # its id was reused
                    yield self._call(tool)
        yield from self._news(view, now)

    def _begin(self, item: TimelineItem, view: RunView) -> Iterator[ViewChange]:
        match item.kind:
            case "tool":
                assert item.id is not None
                yield self._call(view.tools[item.id])
            case "turn":
                yield ev.TurnStarted(number=item.index, at=item.at)
            case _:
                block = ch.Block(kind=item.kind, index=item.index, id=item.id)
                self._texts[item.kind].append(_Text(block))
                yield ch.BlockBegun(block, 0, item.at)

    def _grow(
        self, kind: ch.BlockKind, blocks: Sequence[str], index: int, now: float, *, resumed: bool = False
    ) -> Iterator[ViewChange]:
        text = self._texts[kind][index]
        if new := blocks[index][text.told :]:
            text.told += len(new)
            self._told[kind] += len(new)
            yield ch.BlockGrown(text.block, new, resumed, 0, now)

    def _call(self, tool: ToolView) -> ch.CallBegun:
        number = self._begun_calls
        self._begun_calls += 1
        self._calls[tool.id] = tool.started_at
        return ch.CallBegun(number, tool, 0, tool.started_at)

    def _news(self, view: RunView, now: float) -> Iterator[ViewChange]:
        if view.plan_changes > self._plans:
            self._plans = view.plan_changes
            yield ev.PlanUpdate(entries=view.plan, at=now)
        news: list[News] = [
            *view.notices[self._notices :],
            *view.attempts[self._attempts :],
            *view.answers[self._answers :],
        ]
        self._notices, self._attempts = len(view.notices), len(view.attempts)
        self._answers = len(view.answers)
        yield from sorted(news, key=time_of)


def time_of(news: News) -> float:
    """Return its time, in seconds since the run began."""
    return news.answered_at if isinstance(news, AnswerView) else news.at
