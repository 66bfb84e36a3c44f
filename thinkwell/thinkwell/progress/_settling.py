"""Finds the parts of a run that will not change any more: they are printed above the live zone, once."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from thinkwell import events as ev
from thinkwell._display.calls import denied_calls, is_about_result, returns_result
from thinkwell._display.changes import Block, BlockBegun, BlockGrown, CallBegun
from thinkwell._display.phases import OVER
from thinkwell._display.questions import allowed
from thinkwell._display.tools import folds
from thinkwell._display.view_changes import ViewReader, time_of
from thinkwell.progress._prose import BACKLOG, TAIL, Prose
from thinkwell.view import AnswerView

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from thinkwell._display.view_changes import News, ViewChange
    from thinkwell.progress._prose import Piece
    from thinkwell.view import RunView, ToolView

FOLDED: Final = 40
"""Most tool calls that share a line."""

AT_ONCE: Final = 200
"""Most parts that are printed at once; of more, the last ones."""

RESUMABLE: Final = 16
"""Most messages that may continue after another one has begun."""

DEEPEST: Final = 4
"""Most levels of calls of sub-agents."""


class Nested(NamedTuple):
    """A tool call in one of a sub-agent."""

    depth: int
    """How deep it stands in calls of sub-agents."""
    tool: ToolView


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """Ended tool calls that share a line, or one with the calls that it made."""

    tools: tuple[ToolView, ...]
    inner: tuple[Nested, ...] = ()
    """The calls of a sub-agent, each with its depth, from 1."""
    thought: Thought | None = None
    """The thoughts between the calls that share the line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A piece of the agent's messages."""

    piece: Piece
    first: bool
    """Whether it begins its message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thought:
    """The agent has thought."""

    text: str
    seconds: float
    """Seconds until something else began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UserSaid:
    """The user's message, as the agent repeats it."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """There was too much at once."""

    count: int


Settled: TypeAlias = (
    Calls
    | Said
    | Thought
    | UserSaid
    | ev.TurnStarted
    | ev.PlanUpdate
    | ev.ResultAttempt
    | ev.Notice
    | AnswerView
    | Skipped
)
"""A part: for what the agent reports as a whole, the report itself."""


@dataclass(slots=True, eq=False)
class _Open:
    """An unsettled part of the conversation: a block, a tool call (by its id), or a turn."""

    part: Block | str | ev.TurnStarted
    at: float
    """When it began."""
    prose: Prose = field(default_factory=Prose)
    begun: bool = False
    """Whether a piece of it is settled."""
    new: bool = True
    """Whether it began since the last look."""
    ended: float | None = None
    """When something else began after it."""


class Settling:
    """Finds the settled parts of one run, look by look, and knows the others.

    The cost of a look is that of the changes since the last one.

    Args:
        verbose: Whether every thought is shown at its place.
    """

    def __init__(self, *, verbose: bool = False) -> None:
        self._verbose = verbose
        self._reader = ViewReader()
        self._open: list[_Open] = []
        self._last: _Open | None = None
        """The part that began last."""
        self._resumable: dict[Block, _Open] = {}
        """Settled messages with an id, which may continue."""
        self._between: list[Thought] = []
        """Thoughts between the held calls."""
        self._mused: list[Thought] = []
        """Thoughts after them."""
        self._reports: list[News] = []
        """News, in order, which are printed before later parts."""
        self._found: list[Settled] = []
        self.held: tuple[ToolView, ...] = ()
        """Ended calls that wait for others to share their line."""
        self.running: tuple[Nested, ...] = ()
        """Running calls, but for those within a sub-agent that runs, too."""

    def look(self, view: RunView, now: float, *, end: bool = False) -> list[Settled]:
        """Return the newly settled parts.

        Args:
            view: The run.
            now: The time, in seconds since the run began.
            end: Whether this is the last look.
        """
        for change in self._reader.look(view, now):
            self._take(change, view)
        over = view.phase in OVER
        if over and self._last is not None and self._last.ended is None:
            self._last.ended = view.phases[-1].at if view.phases else now
        self._texts_and_calls(view, now, over=over, end=end)
        self._report(math.inf)
        if over or end or self._others_go_on(view):
            self._let_go()
        found, self._found = self._found, []
        return _end_of(found)

    def saying(self, view: RunView) -> tuple[str, bool]:
        """Return the end of the agent's current message, unchanged, and whether it is code."""
        for each in reversed(self._open):
            if isinstance(each.part, Block) and each.part.kind == "message":
                return each.prose.tail(view.messages[each.part.index]), each.prose.in_code
        return "", False

    def thinking(self, view: RunView) -> str:
        """Return the end of the agent's current thought, unchanged."""
        for each in reversed(self._open):
            if isinstance(each.part, Block) and each.part.kind == "thought":
                return view.thought_blocks[each.part.index][-TAIL:]
        return ""

    def _take(self, change: ViewChange, view: RunView) -> None:
        match change:
            case BlockBegun(block, at=at):
                self._begin(block, at)
            case BlockGrown(block, resumed=True):
                if (resumed := self._resumable.pop(block, None)) is not None:
                    self._open.append(resumed)
            case CallBegun(view=tool, at=at):
                self._begin(tool.id, at)
            case ev.TurnStarted():
                self._begin(change, change.at)
            case ev.PlanUpdate() if change.entries:
                self._put(change)
            case AnswerView() if allowed(change) and is_about_result(change, view):
                pass
            case AnswerView() | ev.Notice() | ev.ResultAttempt():
                self._reports.append(change)
            case _:
                pass

    def _begin(self, part: Block | str | ev.TurnStarted, at: float) -> None:
        if self._last is not None and self._last.ended is None:
            self._last.ended = at
        self._last = _Open(part, at)
        self._open.append(self._last)

    def _texts_and_calls(self, view: RunView, now: float, *, over: bool, end: bool) -> None:
        tools = {each.part: view.tools[each.part] for each in self._open if isinstance(each.part, str)}
        ended = {id_ for id_, tool in tools.items() if over or tool.ended_at is not None}
        roots = _roots(tools)
        families: dict[str, list[Nested]] = {}
        for id_, (root, depth) in roots.items():
            families.setdefault(root, []).append(Nested(depth, tools[id_]))
        denied = denied_calls(view)
        still: list[_Open] = []
        for each in self._open:
            if isinstance(each.part, str):
                root, _ = roots[each.part]
                if not {root, each.part} <= ended:
                    still.append(each)
                elif root == each.part:
                    inner = [one for one in families[root] if one.depth and one.tool.id in ended]
                    self._call(tools[root], inner, denied)
                continue
            if each.new:
                self._report(math.inf)  # usually, this made the agent say it
                each.new = False
            whole = over or end or each.ended is not None
            self._text(each, view, now, whole=whole)
            if not whole:
                still.append(each)
        self._open = still
        self.running = tuple(
            Nested(max(depth - 1, 0), tool)
            for root, members in families.items()
            for depth, tool in members
            if tool.id not in ended and (not depth or root in ended) and not _is_told_otherwise(tool, denied)
        )

    def _text(self, each: _Open, view: RunView, now: float, *, whole: bool) -> None:
        match each.part:
            case Block(kind="message", index=index, id=id_):
                for piece in each.prose.take(view.messages[index], whole=whole):
                    self._put(Said(piece=piece, first=not each.begun))
                    each.begun = True
                if whole and id_ is not None:
                    self._resumable[each.part] = each
                    if len(self._resumable) > RESUMABLE:
                        del self._resumable[next(iter(self._resumable))]
            case Block(kind="thought", index=index) if whole:
                seconds = max((now if each.ended is None else each.ended) - each.at, 0.0)
                self._thought(Thought(text=view.thought_blocks[index], seconds=seconds))
            case Block(kind="user", index=index) if whole:
                self._put(UserSaid(text=view.user_messages[index]))
            case ev.TurnStarted(number=number) if whole and number > 1:
                self._put(each.part)
            case _:
                pass

    def _thought(self, thought: Thought) -> None:
        if self.held and not self._verbose:
            self._mused.append(thought)
        else:
            self._put(thought)

    def _report(self, until: float) -> None:
        while self._reports and time_of(self._reports[0]) <= until:
            self._put(self._reports.pop(0))

    def _call(self, tool: ToolView, inner: Sequence[Nested], denied: Collection[str]) -> None:
        self._report(tool.ended_at or 0.0)
        inner = tuple(each for each in inner if not _is_told_otherwise(each.tool, denied))
        if not inner and _is_told_otherwise(tool, denied):
            return
        if inner or not folds(tool):
            self._put(Calls(tools=(tool,), inner=inner))
            return
        if self.held:
            self._between += self._mused
            self._mused = []
        self.held += (tool,)
        if len(self.held) >= FOLDED:
            self._let_go()

    def _others_go_on(self, view: RunView) -> bool:
        """Return whether something is running that may not share the line of the held calls."""
        said, _ = self.saying(view)
        return bool(said.strip()) or any(each.tool.kind not in ("read", "search") for each in self.running)

    def _put(self, thing: Settled) -> None:
        self._let_go()
        self._found.append(thing)

    def _let_go(self) -> None:
        """Settle the held calls."""
        if self.held:
            between = _joined(self._between) if self._between else None
            self._found.append(Calls(tools=self.held, thought=between))
            self.held = ()
            self._between = []
        if self._mused:
            self._found.append(_joined(self._mused))
            self._mused = []


def _is_told_otherwise(tool: ToolView, denied: Collection[str]) -> bool:
    """Return whether a call needs no row: the denial or the returned result shows it."""
    return tool.id in denied or returns_result(tool)


def _joined(thoughts: Sequence[Thought]) -> Thought:
    text = "\n\n".join(each.text for each in thoughts)
    return Thought(text=text, seconds=sum(each.seconds for each in thoughts))


def _end_of(found: list[Settled]) -> list[Settled]:
    """Return the last of many parts, or of long ones."""
    begin = max(len(found) - AT_ONCE, 0)
    characters = 0
    for index in range(len(found) - 1, begin - 1, -1):
        thing = found[index]
        characters += len(thing.piece.text) if isinstance(thing, Said) else 0
        if characters > BACKLOG:
            begin = index
            break
    return [Skipped(count=begin), *found[begin:]] if begin else found


def _roots(tools: Mapping[str, ToolView]) -> dict[str, tuple[str, int]]:
    """Return the outermost of the calls around each one, which may be itself, and its depth in that."""
    roots: dict[str, tuple[str, int]] = {}
    for id_, tool in tools.items():
        root, depth, seen = tool, 0, {id_}
        while (parent := root.parent) is not None and parent in tools:
            if parent in seen:  # a cycle
                root, depth = tool, 0
                break
            if parent in roots:  # usually, it began before
                known, above = roots[parent]
                root, depth = tools[known], depth + 1 + above
                break
            root, depth = tools[parent], depth + 1
            seen.add(parent)
        roots[id_] = root.id, min(depth, DEEPEST)
    return roots
