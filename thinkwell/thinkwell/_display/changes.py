"""Changes of a run: blocks of text that begin, grow and end, and tool calls; other events unchanged.

The rules for beginnings and ends are only here. Everything that follows a run reads its log through a
`ChangeReader`; `ViewReducer` has the same rules for the whole run.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from thinkwell import events as ev
from thinkwell.view import AnswerView, QuestionView, TokenCounts, ToolView

ToolEvent: TypeAlias = ev.ToolStart | ev.ToolUpdate | ev.ToolDone
"""Events of tool calls."""

BlockKind: TypeAlias = Literal["message", "thought", "user"]

_Piece: TypeAlias = ev.Message | ev.Thought | ev.UserMessage


KEPT: Final = 64
"""Ended tool calls that are still kept completely, for late updates."""


class Block(Struct, frozen=True, eq=False, kw_only=True, gc=False):
    """A message, a thought, or the user's text: text that grows piece by piece."""

    kind: BlockKind
    index: int
    """Its number among its kind, as in `RunView.messages`."""
    id: str | None
    """The agent's id for it."""


class BlockBegun(Struct, frozen=True, gc=False):
    """The first piece of a block with text in it comes next."""

    block: Block
    seq: int
    at: float


class BlockGrown(Struct, frozen=True, gc=False):
    """A piece of text."""

    block: Block
    text: str
    resumed: bool
    """Whether the block had ended: it has an id, or only a question or a plan came between."""
    seq: int
    at: float


class BlockEnded(Struct, frozen=True, gc=False):
    """Something else follows. The block may be resumed later."""

    block: Block
    seq: int
    at: float


class Media(Struct, frozen=True, gc=False):
    """A piece that is not text, such as a picture. It belongs to no block."""

    kind: BlockKind
    id: str | None
    """The agent's id for the message that it belongs to."""
    content: ev.ContentBlock
    seq: int
    at: float


class CallBegun(Struct, frozen=True, gc=False):
    """A tool call was reported for the first time, or its id was reused."""

    number: int
    """The number of the call in the run, from 0."""
    view: ToolView
    seq: int
    at: float


class CallChanged(Struct, frozen=True, gc=False):
    """A tool call has changed."""

    number: int
    view: ToolView
    before: ToolView
    late: bool
    """Whether the call had ended."""
    seq: int
    at: float


class CallEnded(Struct, frozen=True, gc=False):
    """A tool call has ended."""

    number: int
    view: ToolView
    before: ToolView
    late: bool
    """Whether the call had ended before."""
    status: ev.FinalStatus
    seq: int
    at: float


Change: TypeAlias = (
    BlockBegun | BlockGrown | BlockEnded | Media | CallBegun | CallChanged | CallEnded | ev.ThoughtEvent
)
"""A change. For other events, the event itself."""


class ChangeReader:
    """Reads the log of a run, event by event. The same events give the same changes.

    It keeps no text. To continue after an event, take all events up to it and ignore their changes.
    """

    def __init__(self) -> None:
        self.repeating = False
        """Whether the agent is replaying the session's earlier conversation."""
        self.tokens: TokenCounts | None = None
        """The tokens of all ended turns, if the agent reports them."""
        self._blocks = Counter[BlockKind]()
        self._open: Block | None = None
        """The message or thought without an id to which the next piece without an id belongs."""
        self._named: dict[tuple[BlockKind, str], Block] = {}
        """The blocks of this turn that have an id."""
        self._latest: Block | None = None
        """The block that began last; `None`: a call or a turn began after it."""
        self._said: Block | None = None
        """The current block."""
        self._numbers: dict[str, int] = {}
        """The number of the last call of each id."""
        self._calls = 0
        self._running: dict[str, ToolView] = {}
        self._ended: dict[str, ToolView] = {}
        """The last calls that have ended."""

    def take(self, event: ev.ThoughtEvent) -> list[Change]:
        """Take the next event, and return its changes."""
        match event:
            case ev.Message():
                return self._piece("message", event)
            case ev.Thought():
                return self._piece("thought", event)
            case ev.UserMessage():
                return self._piece("user", event)
            case ev.Steered(outcome="injected" | "interrupted"):
                return self._steered(event)
            case ev.ToolStart() | ev.ToolUpdate() | ev.ToolDone():
                self._open = None
                return [*self.end_block(event), *self._call(event)]
            case ev.PlanUpdate():
                self._open = None
            case ev.TurnStarted():
                self._open = self._latest = None
                self._named.clear()
            case ev.TurnEnded():
                if event.usage is not None:
                    self.tokens = with_tokens(self.tokens or TokenCounts(), event.usage)
            case ev.QuestionAsked() if event.timeout is not None:
                pass  # the user needs the text before the question
            case _:
                if isinstance(event, ev.ReplayStarted | ev.ReplayEnded):
                    self.repeating = isinstance(event, ev.ReplayStarted)
                return [event]
        return [*self.end_block(event), event]

    def goes_on(self, event: ev.Message | ev.Thought) -> Block | None:
        """Return the current block, if an event only adds to its text: then it need not be taken.

        Most events of a run are such pieces.
        """
        block = self._said
        if block is None or block.kind != event.type or not event.text:
            return None
        return block if self._known(block.kind, event.message_id) is block else None

    def end_block(self, event: ev.ThoughtEvent) -> list[Change]:
        """End the current block, and return the change, if there was a block.

        Args:
            event: The next event.
        """
        block, self._said = self._said, None
        return [] if block is None else [BlockEnded(block, event.seq, event.at)]

    def _piece(self, kind: BlockKind, event: _Piece) -> list[Change]:
        id_ = event.message_id
        block = self._known(kind, id_)
        if kind == "user" or (self._open is not None and self._open.kind != kind):
            self._open = None
        if block is not None and id_ is not None:
            self._open = None
        if not event.text:  # some agents send empty pieces
            content = event.content
            if isinstance(content, ev.TextContent):
                return []
            return [*self.end_block(event), Media(kind, id_, content, event.seq, event.at)]
        changes: list[Change] = []
        resumed = False
        if block is None:
            block = self._begin(kind, id_)
            changes += [*self.end_block(event), BlockBegun(block, event.seq, event.at)]
        elif block is not self._said:
            resumed = True
            changes += self.end_block(event)
        self._said = block
        changes.append(BlockGrown(block, event.text, resumed, event.seq, event.at))
        return changes

    def _steered(self, event: ev.Steered) -> list[Change]:
        """Begin and end a block with what the user said: all of it is there at once."""
        ended = self.end_block(event)
        block, seq, at = self._begin("user", None), event.seq, event.at
        said = BlockGrown(block, event.text, False, seq, at)
        return [*ended, BlockBegun(block, seq, at), said, BlockEnded(block, seq, at)]

    def _known(self, kind: BlockKind, id_: str | None) -> Block | None:
        """Return the block to which a piece belongs; ``None``: a new one."""
        if id_ is not None:
            return self._named.get((kind, id_))
        block = self._latest if kind == "user" else self._open
        return block if block is not None and block.kind == kind and block.id is None else None

    def _begin(self, kind: BlockKind, id_: str | None) -> Block:
        block = self._latest = Block(kind=kind, index=self._blocks[kind], id=id_)
        self._blocks[kind] += 1
        self._open = block if id_ is None and kind != "user" else None
        if id_ is not None:
            self._named[kind, id_] = block
        return block

    def _call(self, event: ToolEvent) -> list[Change]:
        id_, seq, at = event.id, event.seq, event.at
        number, running = self._numbers.get(id_), id_ in self._running
        changes: list[Change] = []
        if number is None or (not running and isinstance(event, ev.ToolStart)):
            if number is None:
                self._latest = None
            number = self._numbers[id_] = self._calls
            self._calls += 1
            before = ToolView(id=id_, started_at=at)
            view = merged_tool(before, event)
            changes.append(CallBegun(number, view, seq, at))
            late = False
        else:
            before = self._running.get(id_) or self._ended.get(id_) or ToolView(id=id_, started_at=at)
            view = merged_tool(before, event)
            late = not running
            if not isinstance(event, ev.ToolDone):
                changes.append(CallChanged(number, view, before, late, seq, at))
        if isinstance(event, ev.ToolDone):
            changes.append(CallEnded(number, view, before, late, event.status, seq, at))
        self._keep(view, running=not (late or isinstance(event, ev.ToolDone)))
        return changes

    def _keep(self, view: ToolView, *, running: bool) -> None:
        for calls in (self._running, self._ended):
            calls.pop(view.id, None)
        (self._running if running else self._ended)[view.id] = view
        if len(self._ended) > KEPT:
            del self._ended[next(iter(self._ended))]


def with_tokens(counts: TokenCounts, usage: ev.TokenUsage) -> TokenCounts:
    """Return counts with an agent's report for a turn added."""
    added = {
        name: (getattr(counts, name) or 0) + more
        for name in counts.__struct_fields__
        if (more := getattr(usage, name)) is not None
    }
    return replace(counts, **added)


def open_question(event: ev.QuestionAsked) -> QuestionView:
    """Return the state of a question when it is asked."""
    return QuestionView(
        id=event.id,
        title=event.title,
        asks=event.asks,
        options=event.options,
        fields=event.fields,
        url=event.url,
        tool_id=event.tool_id,
        asked_at=event.at,
        deadline=None if event.timeout is None else event.at + event.timeout,
    )


def answered_question(question: QuestionView, event: ev.QuestionAnswered) -> AnswerView:
    """Return a question with its answer."""
    return AnswerView(
        id=event.id,
        title=question.title,
        asks=question.asks,
        tool_id=question.tool_id,
        choice=event.choice,
        by=event.by,
        why=event.why,
        verdicts=question.verdicts,
        asked_at=question.asked_at,
        answered_at=event.at,
    )


def merged_tool(old: ToolView, event: ToolEvent) -> ToolView:
    """Return a tool call with the changes of an event."""
    if isinstance(event, ev.ToolStart):
        return ToolView(
            id=event.id,
            title=event.title,
            name=event.name,
            kind=event.kind,
            status=event.status,
            input=event.input,
            content=event.content,
            locations=event.locations,
            started_at=old.started_at if old.ended_at is None else event.at,
            parent=event.parent,
        )
    if isinstance(event, ev.ToolUpdate):
        return replace(
            old,
            title=old.title if event.title is None else event.title,
            name=event.name or old.name,
            kind=event.kind or old.kind,
            status=event.status or old.status,
            input=old.input if event.input is None else event.input,
            output=old.output if event.output is None else event.output,
            content=old.content if event.content is None else event.content,
            locations=old.locations if event.locations is None else event.locations,
            parent=event.parent or old.parent,
        )
    return replace(
        old,
        title=event.title or old.title,
        status=event.status,
        output=event.output,
        content=event.content,
        ended_at=event.at,
    )
