"""Finds the parts of a run that will not change any more: they are printed above the live zone, once."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from thinkwell import events as ev
from thinkwell._display.calls import denied_calls, is_about_result, returns_result
from thinkwell._display.changes import Block, BlockBegun, BlockGrown, CallBegun
from thinkwell._display.phases import OVER
from thinkwell._display.questions import allowed
from thinkwell._display.tools import folds
from thinkwell._display.view_changes import ViewReader
from thinkwell.progress._prose import BACKLOG, TAIL, Prose
from thinkwell.view import AnswerView

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from thinkwell._display.view_changes import ViewChange
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """Ended tool calls that share a line, or one with the calls that it made."""

    tools: tuple[ToolView, ...]
    inner: tuple[tuple[int, ToolView], ...] = ()
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
class Turn:
    """Another prompt was sent."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanChanged:
    """The plan was replaced by one with other steps."""

    entries: tuple[ev.PlanEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A question was answered."""

    answer: AnswerView


@dataclass(frozen=True, slots=True, kw_only=True)
class Returned:
    """The agent returned a result; if it is invalid, the agent was told why."""

    attempt: ev.ResultAttempt


@dataclass(frozen=True, slots=True, kw_only=True)
class Noticed:
    """A notice of the agent."""

    notice: ev.Notice


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """There was too much at once."""

    count: int


Settled: TypeAlias = (
    Calls | Said | Thought | UserSaid | Turn | PlanChanged | Answered | Returned | Noticed | Skipped
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A running tool call."""

    tool: ToolView
    depth: int
    """How deep it stands in calls of sub-agents."""


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
        self._reports: list[tuple[float, Settled]] = []
        """News with their times, in order, which are printed before later parts."""
        self._found: list[Settled] = []
        self.held: tuple[ToolView, ...] = ()
        """Ended calls that wait for others to share their line."""
        self.running: tuple[Running, ...] = ()
        """Running calls."""

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
                self._put(PlanChanged(entries=change.entries))
            case ev.Notice():
                self._reports.append((change.at, Noticed(notice=change)))
            case AnswerView() if not (allowed(change) and is_about_result(change, view)):
                self._reports.append((change.answered_at, Answered(answer=change)))
            case ev.ResultAttempt():
                self._reports.append((change.at, Returned(attempt=change)))
            case _:
                pass

    def _begin(self, part: Block | str | ev.TurnStarted, at: float) -> None:
        if self._last is not None and self._last.ended is None:
            self._last.ended = at
        self._last = _Open(part, at)
        self._open.append(self._last)

    def _texts_and_calls(self, view: RunView, now: float, *, over: bool, end: bool) -> None:
        denied = denied_calls(view)
        families = _Families(self._open, view, apart=over)
        still: list[_Open] = []
        for each in self._open:
            if isinstance(each.part, str):
                if families.settled(each.part):
                    self._call(families.calls(each.part), denied)
                elif not families.told(each.part):
                    still.append(each)
                continue
            if each.new:
                self._report(math.inf)  # usually, this made the agent say it
                each.new = False
            whole = over or end or each.ended is not None
            self._text(each, view, now, whole=whole)
            if not whole:
                still.append(each)
        self._open = still
        running = families.running()
        self.running = tuple(each for each in running if not _is_told_otherwise(each.tool, denied))

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
                self._put(Turn(number=number))
            case _:
                pass

    def _thought(self, thought: Thought) -> None:
        if self.held and not self._verbose:
            self._mused.append(thought)
        else:
            self._put(thought)

    def _report(self, until: float) -> None:
        while self._reports and self._reports[0][0] <= until:
            self._put(self._reports.pop(0)[1])

    def _call(self, calls: Calls, denied: Collection[str]) -> None:
        self._report(calls.tools[0].ended_at or 0.0)
        inner = tuple(each for each in calls.inner if not _is_told_otherwise(each[1], denied))
        if not inner and _is_told_otherwise(calls.tools[0], denied):
            return
        calls = replace(calls, inner=inner)
        if calls.inner or not folds(calls.tools[0]):
            self._put(calls)
            return
        if self.held:
            self._between += self._mused
            self._mused = []
        self.held += calls.tools
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


class _Families:
    """The relations of unsettled calls, at one look."""

    def __init__(self, opened: list[_Open], view: RunView, *, apart: bool) -> None:
        self._tools = {each.part: view.tools[each.part] for each in opened if isinstance(each.part, str)}
        self._apart = apart
        """Whether open calls are settled as well."""
        self._roots: dict[str, tuple[str, int]] = {}
        for id_, tool in self._tools.items():
            self._roots[id_] = self._root(tool)
        self._members: dict[str, list[tuple[int, ToolView]]] = {}
        for id_, (root, depth) in self._roots.items():
            self._members.setdefault(root, []).append((depth, self._tools[id_]))

    def _root(self, tool: ToolView) -> tuple[str, int]:
        """Return the root of a call, which may be itself, and its depth in it."""
        seen = {tool.id}
        at = tool
        while at.parent is not None and at.parent in self._tools:
            if at.parent in seen:
                return tool.id, 0  # a cycle
            if known := self._roots.get(at.parent):  # usually, it began before
                return known[0], min(known[1] + len(seen), DEEPEST)
            at = self._tools[at.parent]
            seen.add(at.id)
        return at.id, min(len(seen) - 1, DEEPEST)

    def _ended(self, tool: ToolView) -> bool:
        return self._apart or tool.ended_at is not None

    def settled(self, id_: str) -> bool:
        """Return whether a call has ended and belongs to no other."""
        return self._roots[id_][0] == id_ and self._ended(self._tools[id_])

    def told(self, id_: str) -> bool:
        """Return whether a call is shown with its root."""
        return self.settled(self._roots[id_][0]) and self._ended(self._tools[id_])

    def calls(self, id_: str) -> Calls:
        """Return a call with those that it made."""
        inner = [(depth, tool) for depth, tool in self._members[id_] if depth and self._ended(tool)]
        return Calls(tools=(self._tools[id_],), inner=tuple(inner))

    def running(self) -> tuple[Running, ...]:
        """Return the calls that go on, but for those within a sub-agent that does, too."""
        if self._apart:
            return ()
        return tuple(
            Running(tool=tool, depth=max(depth - 1, 0))
            for root, members in self._members.items()
            for depth, tool in members
            if tool.ended_at is None and (not depth or self.settled(root))
        )
