"""The reduction of a run's events to a `RunView`.

Each event costs a bounded amount of work, and none is done before an access.
"""

from __future__ import annotations

from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

from thinkwell import events as ev
from thinkwell._core.log.run_state import Plans, Questions, ResultCall, State
from thinkwell._display.changes import (
    ToolEvent,
    merged_tool,
)
from thinkwell.view import (
    NO_TOOLS,
    AgentView,
    PhaseView,
    RunView,
    TimelineItem,
    ToolView,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from thinkwell.view import DraftKind

_TOOL_EVENTS: Final = (ev.ToolStart, ev.ToolUpdate, ev.ToolDone)
_RARE: Final = (ev.PlanUpdate, ev.UserMessage, ev.Steered)
"""The other parts of the conversation."""

_ABOUT_QUESTIONS: Final = (ev.QuestionAsked, ev.QuestionVerdict, ev.QuestionAnswered)

PARTS: Final = (ev.Message, ev.Thought, *_TOOL_EVENTS, *_RARE)
"""The parts of the conversation: any of them ends a message without an id before it."""

MERGE_AT: Final = 64
"""Events of one tool call that are kept until an access."""

CONTENTS_AT: Final = 8
"""The same, if the last one has content, which may be long and replaces the old one."""

PIECES: Final = 40
"""Pieces of one text that are kept separately. Short ones take ten times the memory of their characters."""

PACKED: Final = 24
"""How many of them are joined to one: fewer, because long ones stay separate."""


class ViewReducer:
    """Reduce events to a `RunView`, for instance from a file, or from the event stream of a server.

    For example:

        reducer = ViewReducer()
        reducer.apply(event_from_json(line) for line in lines)
        print(reducer.snapshot().text)

    A `ThoughtStream` already has a `view`. Each event costs a bounded amount of work.

    Args:
        agent: The name of the agent.
        cwd: The folder in which it works.
        drafts: What drafts its result has; see `RunView.drafts`.
    """

    def __init__(self, *, agent: str = "", cwd: str = "", drafts: DraftKind = "end") -> None:
        self._drafts: DraftKind = drafts
        self._state = State(ev.SessionOpened(agent=agent, cwd=cwd, session_id=""))
        self._questions = Questions()
        self._messages: list[list[str]] = []
        """The pieces of each message."""
        self._thoughts: list[list[str]] = []
        """The pieces of each block of thoughts."""
        self._users: list[list[str]] = []
        """The pieces of each message of the user."""
        self._timeline: list[TimelineItem] = []
        self._open: list[str] | None = None
        """The message without an id that the next text without an id belongs to."""
        self._open_thought: list[str] | None = None
        """The same for thoughts. Never both: one ends the other."""
        self._named: dict[str, list[str]] = {}
        """The current turn's messages with an id."""
        self._named_thoughts: dict[str, list[str]] = {}
        """The current turn's thoughts with an id. Some agents use a message's id for them."""
        self._named_users: dict[str, list[str]] = {}
        self._tools: dict[str, ToolView] = {}
        self._tool_news: dict[str, list[ToolEvent]] = {}
        """The events of each tool call since the last merge."""
        self._shown_tools: Mapping[str, ToolView] | None = NO_TOOLS
        """What the last snapshot showed, as long as it is still right."""
        self._heard: dict[str, dict[bool, list[str]]] = {}
        """The pieces of what each sub-agent says, and of what it thinks."""
        self._shown_agents: Mapping[str, AgentView] | None = None
        """As `_shown_tools`."""
        self._plans = Plans()
        self._result = ResultCall()
        self._heard_at = 0.0
        """The time of the last event."""

    def apply(self, events: Iterable[ev.ThoughtEvent]) -> None:  # noqa: C901 - calls would cost more than this
        """Add the next events, in order. `TurnStarted` begins new messages."""
        open_, open_thought = self._open, self._open_thought
        named, named_thoughts = self._named, self._named_thoughts
        event: ev.ThoughtEvent | None = None
        for event in events:
            # Most events are text and tool calls, so their path is short.
            if isinstance(event, ev.Message):
                open_thought = None
                id_ = event.message_id
                pieces = open_ if id_ is None else named.get(id_)
                if pieces is None:
                    if event.text:  # some agents send empty pieces; none is the last message of a turn
                        open_ = self._begin("message", self._messages, event, named)
                    continue
                if id_ is not None:
                    open_ = None
            elif isinstance(event, ev.Thought):
                open_ = None
                id_ = event.message_id
                pieces = open_thought if id_ is None else named_thoughts.get(id_)
                if pieces is None:
                    if event.text:
                        open_thought = self._begin("thought", self._thoughts, event, named_thoughts)
                    continue
                if id_ is not None:
                    open_thought = None
            elif isinstance(event, _TOOL_EVENTS):
                open_ = open_thought = None
                self._tool(event)
                continue
            else:
                if self._apply_rest(event):
                    open_ = open_thought = None
                continue
            pieces.append(event.text)
            if len(pieces) >= PIECES:
                _pack(pieces)
        self._open, self._open_thought = open_, open_thought
        if event is not None and event.at > self._heard_at:
            self._heard_at = event.at

    def _apply_rest(self, event: ev.ThoughtEvent) -> bool:
        """Handle any other event, and return whether it ends the current message."""
        if isinstance(event, _RARE):
            self._plan_or_user(event)
            return _is_said(event)
        if isinstance(event, ev.TurnStarted):
            self._forget_messages()
            self._timeline.append(TimelineItem(kind="turn", index=event.number, at=event.at))
            self._state.take(event)
            return True
        # Such updates may come in the middle of a message.
        if isinstance(event, _ABOUT_QUESTIONS):
            self._questions.take(event)
        elif isinstance(event, ev.SubagentText):
            self._heard.setdefault(event.agent, {False: [], True: []})[event.thinks].append(event.text)
            self._shown_agents = None
        else:
            if isinstance(event, ev.ResultAttempt) and not event.accepted:
                self._result.refused()
            self._state.take(event)
        return False

    def _begin(
        self,
        kind: Literal["user", "thought", "message"],
        blocks: list[list[str]],
        event: ev.Thought | ev.Message | ev.UserMessage,
        named: dict[str, list[str]],
    ) -> list[str] | None:
        """Begin a block of text; return it if the next piece without an id belongs to it."""
        if blocks:
            _joined(blocks[-1])  # it is usually complete
        pieces = [event.text]
        id_ = event.message_id
        self._timeline.append(TimelineItem(kind=kind, index=len(blocks), id=id_, at=event.at))
        blocks.append(pieces)
        if id_ is None:
            return pieces
        named[id_] = pieces
        return None

    def _user(self, event: ev.UserMessage) -> None:
        last = self._timeline[-1] if self._timeline else None
        pieces = None
        if event.message_id is not None:
            pieces = self._named_users.get(event.message_id)
        elif last is not None and last.kind == "user" and last.id is None:  # no other part is between them
            pieces = self._users[-1]
        if pieces is not None:
            pieces.append(event.text)
            if len(pieces) >= PIECES:
                _pack(pieces)
        elif event.text:
            self._begin("user", self._users, event, self._named_users)

    def _plan_or_user(self, event: ev.PlanUpdate | ev.UserMessage | ev.Steered) -> None:
        if isinstance(event, ev.UserMessage):
            self._user(event)
        elif isinstance(event, ev.Steered):
            if _is_said(event):
                told = event.outcome == "injected"
                item = TimelineItem(kind="user", index=len(self._users), at=event.at, steered=told)
                self._timeline.append(item)
                self._users.append([event.text])
        else:
            self._plans.take(event)

    def _tool(self, event: ToolEvent) -> None:
        news = self._tool_news.get(event.id)
        if news is None:
            news = self._tool_news[event.id] = []
            if event.id not in self._tools:
                self._tools[event.id] = ToolView(id=event.id, started_at=event.at)  # keeps its place
                self._timeline.append(TimelineItem(kind="tool", id=event.id, at=event.at))
        news.append(event)
        self._result.take(event)
        if len(news) >= MERGE_AT or (event.content and len(news) >= CONTENTS_AT):
            self._merge_tool(event.id, news)

    def result_call(self) -> ToolView | None:
        """Return the last call that seems to return the result, unless that was refused."""
        id_ = self._result.id
        if id_ is None:
            return None
        self._merge_tool(id_, self._tool_news.pop(id_, []))
        return self._tools[id_]

    def _merge_tool(self, id_: str, news: list[ToolEvent]) -> None:
        view = self._tools[id_]
        for event in news:
            view = merged_tool(view, event)
        news.clear()
        self._tools[id_] = view
        self._shown_tools = self._shown_agents = None

    def _merge_tools(self) -> None:
        for id_, news in self._tool_news.items():
            self._merge_tool(id_, news)
        self._tool_news.clear()

    def _agents(self) -> Mapping[str, AgentView]:
        if self._shown_agents is not None:
            return self._shown_agents
        calls: dict[str, list[str]] = {id_: [] for id_ in self._heard}
        for id_, tool in self._tools.items():
            if tool.parent is not None:
                calls.setdefault(tool.parent, []).append(id_)
        made: dict[str, AgentView] = {}
        for id_, own in calls.items():
            said = self._heard.get(id_, {False: [], True: []})
            made[id_] = AgentView(
                id=id_,
                parent=self._tools[id_].parent if id_ in self._tools else None,
                calls=tuple(own),
                agents=tuple(call for call in own if call in calls),
                text=_joined(said[False]),
                thoughts=_joined(said[True]),
            )
        self._shown_agents = MappingProxyType(made)
        return self._shown_agents

    def dropped(self, count: int) -> None:
        """Count events that were dropped before they came here."""
        self._state.dropped += count

    def last_message(self) -> str:
        """Return the text of the last message."""
        return _joined(self._messages[-1]) if self._messages else ""

    def _forget_messages(self) -> None:
        """Begin a new message with the next text."""
        self._open = self._open_thought = None
        for named in (self._named, self._named_thoughts, self._named_users):
            named.clear()

    def snapshot(self, error: Exception | None = None) -> RunView:
        """Return the current view.

        Args:
            error: The value of `RunView.error`.
        """
        self._merge_tools()
        messages = _texts(self._messages)
        thoughts = _texts(self._thoughts)
        if self._shown_tools is None:
            self._shown_tools = MappingProxyType(self._tools.copy())
        state = self._state
        session, stalled = state.session, state.stalled
        return RunView(
            agent=session.agent,
            cwd=session.cwd,
            session_id=session.session_id or None,
            model=session.model,
            phase=state.phases[-1].phase if state.phases else "starting",
            phases=tuple(map(_phase_view, state.phases, [*state.phases[1:], None])),
            text="".join(messages),
            messages=messages,
            thoughts="".join(thoughts),
            thought_blocks=thoughts,
            user_messages=_texts(self._users),
            timeline=tuple(self._timeline),
            tools=self._shown_tools,
            agents=self._agents(),
            plan=self._plans.main(),
            plans=MappingProxyType(self._plans.known.copy()),
            plan_changes=self._plans.changes,
            usage=state.usage,
            tokens=state.tokens,
            questions=self._questions.open(),
            answers=tuple(self._questions.answers),
            denied=tuple(self._questions.denied),
            drafts=self._drafts,
            attempts=tuple(state.attempts),
            notices=tuple(state.notices),
            stalled=None if stalled is None or self._heard_at > stalled.at else stalled,
            mode=state.mode,
            commands=state.commands,
            turns=state.turns,
            dropped=state.dropped,
            stop_reason=state.stop_reason,
            background=tuple(self._tools[id_].title for id_ in state.background if id_ in self._tools),
            error=error,
            cut=state.phases[-1].cut if state.phases else None,
        )


_id_of: Final = attrgetter("message_id")


def last_text(events: Sequence[ev.ThoughtEvent]) -> str | None:
    """Return the text of the last message of one turn, as the view would.

    ``None``: only the view knows. The turn has no message, or some have ids and others have not.
    """
    messages = [event for event in events if isinstance(event, ev.Message) and event.text]
    if not messages:
        return None
    ids: list[str | None] = list(dict.fromkeys(map(_id_of, messages)))  # in the order of their beginning
    if None in ids:
        return _last_unnamed(events) if len(ids) == 1 else None
    last = messages if len(ids) == 1 else [event for event in messages if event.message_id == ids[-1]]
    return "".join([event.text for event in last])


def _last_unnamed(events: Sequence[ev.ThoughtEvent]) -> str:
    pieces: list[str] = []
    for event in reversed(events):
        if isinstance(event, ev.Message):
            pieces.append(event.text)
        elif isinstance(event, PARTS) and _is_said(event) and any(pieces):
            break
    return "".join(reversed(pieces))


def _is_said(event: ev.ThoughtEvent) -> bool:
    """Return whether an event is part of the conversation of this run, if its kind is."""
    return not isinstance(event, ev.Steered) or event.outcome in ("injected", "interrupted")


def _phase_view(event: ev.PhaseChanged, next_: ev.PhaseChanged | None) -> PhaseView:
    seconds = event.seconds
    if seconds is None and next_ is not None:
        seconds = next_.at - event.at
    return PhaseView(phase=event.phase, detail=event.detail, at=event.at, seconds=seconds)


def _joined(pieces: list[str]) -> str:
    if len(pieces) != 1:
        pieces[:] = ["".join(pieces)]
    return pieces[0]


def _texts(blocks: Sequence[list[str]]) -> tuple[str, ...]:
    """Return the texts of blocks. Nearly all of them are joined already, and need no call."""
    return tuple([pieces[0] if len(pieces) == 1 else _joined(pieces) for pieces in blocks])


def _pack(pieces: list[str]) -> None:
    """Join the last pieces, and enough others that no character is copied often, however long the text."""
    begin = len(pieces) - PACKED
    packed = "".join(pieces[begin:])
    length = len(packed)
    while begin and (more := len(pieces[begin - 1])) <= 2 * length:
        begin -= 1
        length += more
    pieces[begin:] = ["".join([*pieces[begin:-PACKED], packed])]
