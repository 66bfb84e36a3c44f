"""A run as it stands: the reduction of its events from which displays draw.

Each event costs a bounded amount of work, and none is done before somebody looks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from thinkwell import events as ev

if TYPE_CHECKING:
    from collections.abc import Mapping

_EMPTY: Mapping[str, ToolView] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolView:
    """A tool call as it stands: everything that was told of it, merged."""

    id: str
    title: str = ""
    kind: ev.ToolKind = "other"
    status: ev.ToolStatus | ev.FinalStatus = "pending"
    input: ev.JsonValue = None
    output: ev.JsonValue = None
    content: tuple[ev.ToolContent, ...] = ()
    locations: tuple[ev.Location, ...] = ()
    started_at: float = 0.0
    """Seconds from the start of the run."""
    ended_at: float | None = None
    """Seconds from the start of the run; ``None`` while the call goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionView:
    """An open question of the agent's."""

    id: str
    title: str
    options: tuple[str, ...] = ()
    tool_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """A run at one moment. It does not change; look again for news."""

    phase: ev.Phase = "starting"
    text: str = ""
    """Everything that the agent has said."""
    messages: tuple[str, ...] = ()
    """The same, message by message."""
    thoughts: str = ""
    """Everything that the agent has thought aloud."""
    tools: Mapping[str, ToolView] = field(default_factory=lambda: _EMPTY)
    """Tool calls by id, in the order in which they began."""
    plan: tuple[ev.PlanEntry, ...] = ()
    plans: Mapping[str, ev.PlanUpdate] = field(default_factory=lambda: MappingProxyType({}))
    """Plans by id, from agents that keep several."""
    usage: ev.UsageUpdate | None = None
    questions: tuple[QuestionView, ...] = ()
    """What waits for an answer."""
    mode: str | None = None
    commands: tuple[ev.Command, ...] = ()
    turns: int = 0
    """How many prompts were sent."""
    dropped: int = 0
    """How many text events the buffer has dropped. The texts above are whole all the same."""
    stop_reason: str | None = None
    """Why the last turn ended, in the protocol's words; ``None`` before that."""
    error: Exception | None = None
    """Why the run failed; ``None`` while it has not."""


class ViewReducer:
    """Takes events one by one; `snapshot` shows what they come to."""

    def __init__(self) -> None:
        self._phase: ev.Phase = "starting"
        self._messages: list[list[str]] = []
        self._message_key: str | None = None
        self._in_message = False
        self._thoughts: list[str] = []
        self._tools: dict[str, ToolView] = {}
        self._plans: dict[str, ev.PlanUpdate] = {}
        self._usage: ev.UsageUpdate | None = None
        self._questions: dict[str, QuestionView] = {}
        self._mode: str | None = None
        self._commands: tuple[ev.Command, ...] = ()
        self._turns = 0
        self._dropped = 0
        self._stop_reason: str | None = None

    def apply(self, event: ev.ThoughtEvent) -> None:
        """Take the next event."""
        match event:
            case ev.Message():
                self._message(event)
                return  # what follows ends a message without an id
            case ev.Thought():
                self._thoughts.append(event.text)
            case ev.ToolStart() | ev.ToolUpdate() | ev.ToolDone():
                self._tool(event)
            case ev.PlanUpdate():
                self._plans.pop(event.id, None)
                if not event.removed:
                    self._plans[event.id] = event
            case ev.UsageUpdate():
                known = self._usage.cost if self._usage else None
                self._usage = event if event.cost else ev.UsageUpdate(
                    seq=event.seq, at=event.at, used=event.used, size=event.size, cost=known
                )
            case ev.ModeUpdate():
                self._mode = event.mode_id
            case ev.CommandsUpdate():
                self._commands = event.commands
            case ev.QuestionAsked():
                self._questions[event.id] = QuestionView(
                    id=event.id, title=event.title, options=event.options, tool_id=event.tool_id
                )
            case ev.QuestionAnswered():
                self._questions.pop(event.id, None)
            case ev.PhaseChanged():
                self._phase = event.phase
            case ev.TurnStarted():
                self._turns = event.number
            case ev.TurnEnded():
                self._stop_reason = event.stop_reason
            case ev.Dropped():  # pragma: no cover - stands for events that were reduced before they were dropped
                pass
            case _:
                pass
        self._in_message = self._in_message and self._message_key is not None

    def _message(self, event: ev.Message) -> None:
        if not self._in_message or event.message_id != self._message_key:
            self._messages.append([])
            self._message_key = event.message_id
            self._in_message = True
        self._messages[-1].append(event.text)

    def _tool(self, event: ev.ToolStart | ev.ToolUpdate | ev.ToolDone) -> None:
        old = self._tools.get(event.id) or ToolView(id=event.id, started_at=event.at)
        match event:
            case ev.ToolStart():
                new = ToolView(
                    id=event.id,
                    title=event.title,
                    kind=event.kind,
                    status=event.status,
                    input=event.input,
                    content=event.content,
                    locations=event.locations,
                    started_at=old.started_at,
                )
            case ev.ToolUpdate():
                new = ToolView(
                    id=event.id,
                    title=old.title if event.title is None else event.title,
                    kind=event.kind or old.kind,
                    status=event.status or old.status,
                    input=old.input if event.input is None else event.input,
                    output=old.output if event.output is None else event.output,
                    content=old.content if event.content is None else event.content,
                    locations=old.locations if event.locations is None else event.locations,
                    started_at=old.started_at,
                    ended_at=old.ended_at,
                )
            case ev.ToolDone():
                new = ToolView(
                    id=event.id,
                    title=event.title or old.title,
                    kind=old.kind,
                    status=event.status,
                    input=old.input,
                    output=event.output,
                    content=event.content,
                    locations=old.locations,
                    started_at=old.started_at,
                    ended_at=event.at,
                )
        self._tools[event.id] = new

    def dropped(self, count: int) -> None:
        """Count events that the buffer has dropped."""
        self._dropped += count

    def last_message(self) -> str:
        """Return the text of the last message."""
        return self._join_messages()[-1] if self._messages else ""

    def forget_message(self) -> None:
        """Begin a new message with the next text: a turn has begun."""
        self._in_message = False

    def _join_messages(self) -> list[str]:
        for pieces in self._messages:
            if len(pieces) > 1:
                pieces[:] = ["".join(pieces)]
        return [pieces[0] for pieces in self._messages]

    def snapshot(self, error: Exception | None) -> RunView:
        """Return the run as it stands."""
        messages = tuple(self._join_messages())
        if len(self._thoughts) > 1:
            self._thoughts = ["".join(self._thoughts)]
        main = self._plans.get("main") or next(iter(self._plans.values()), None)
        return RunView(
            phase=self._phase,
            text="".join(messages),
            messages=messages,
            thoughts="".join(self._thoughts),
            tools=MappingProxyType(dict(self._tools)),
            plan=main.entries if main else (),
            plans=MappingProxyType(dict(self._plans)),
            usage=self._usage,
            questions=tuple(self._questions.values()),
            mode=self._mode,
            commands=self._commands,
            turns=self._turns,
            dropped=self._dropped,
            stop_reason=self._stop_reason,
            error=error,
        )
