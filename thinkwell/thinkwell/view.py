"""A run as it stands: the values from which displays draw. `thinkwell.ViewReducer` makes them of events."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, cast

import msgspec
from msgspec import Struct

from thinkwell import events as ev  # noqa: TC001 - types of fields

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from thinkwell._values.forms import FormField

__all__ = (
    "AnswerView",
    "PhaseView",
    "QuestionView",
    "RunView",
    "TimelineItem",
    "TokenCounts",
    "ToolView",
)

NO_TOOLS: Final[Mapping[str, ToolView]] = MappingProxyType({})


class ToolView(Struct, frozen=True, kw_only=True, gc=False):
    """A tool call as it stands: everything that was told of it, merged."""

    id: str
    title: str = ""
    name: str | None = None
    """The tool's own name, from agents that give it."""
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
    parent: str | None = None
    """The id of the call of a sub-agent that this one is part of, from agents that tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionView:
    """An open question of the agent's."""

    id: str
    title: str
    asks: Literal["permission", "form", "url"] = "permission"
    options: tuple[ev.QuestionOption, ...] = ()
    fields: tuple[FormField, ...] = ()
    url: str | None = None
    tool_id: str | None = None
    asked_at: float = 0.0
    """Seconds from the start of the run."""
    deadline: float | None = None
    """When it will be denied, in seconds from the start of the run."""
    verdicts: tuple[ev.QuestionVerdict, ...] = ()
    """What those who were asked before have said of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerView:
    """A question of the agent's that was answered, or withdrawn."""

    id: str
    title: str
    asks: Literal["permission", "form", "url"] = "permission"
    tool_id: str | None = None
    choice: str | None
    """The kind of the chosen option, ``accept`` or ``decline``; ``None``: it was withdrawn."""
    by: str
    """Who decided; see `thinkwell.events.QuestionAnswered`."""
    why: str
    verdicts: tuple[ev.QuestionVerdict, ...] = ()
    asked_at: float = 0.0
    """Seconds from the start of the run."""
    answered_at: float = 0.0
    """Seconds from the start of the run."""


class TokenCounts(Struct, frozen=True, kw_only=True, gc=False):
    """Tokens that were used, as the agent reports them at the end of its turns, all turns together.

    ``None`` is what it does not report. The protocol leaves open whether they are those of the turn or
    of the session: of an agent that reports the latter, some count twice.
    """

    total: int | None = None
    input: int | None = None
    output: int | None = None
    cached_read: int | None = None
    """How many of those that were read came from a cache."""
    cached_write: int | None = None
    thought: int | None = None


class PhaseView(Struct, frozen=True, kw_only=True, gc=False):
    """A phase of a run, or of the launch of an agent."""

    phase: ev.Phase
    detail: str = ""
    """What it is about, such as the package that is installed."""
    at: float = 0.0
    """When it began, in seconds from the start of the run; below zero: before that, as the agent's launch."""
    seconds: float | None = None
    """How long it took; ``None`` where it goes on, or is the end."""


class TimelineItem(Struct, frozen=True, kw_only=True, gc=False):
    """Where a part of the conversation stands in its order. The part itself is in the view."""

    kind: Literal["turn", "user", "thought", "message", "tool"]
    """``turn``: a prompt was sent here. ``user``: the agent repeats what the user said."""
    index: int = 0
    """Which of `RunView.messages`, `RunView.thought_blocks` or `RunView.user_messages` it is, or the number
    of the turn."""
    id: str | None = None
    """The id of the message, where the agent gives one, or of the tool call."""
    at: float = 0.0
    """When it began, in seconds from the start of the run."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunView:
    """A run at one moment. It does not change; look again for news.

    It can be pickled, where its error can be, and copied; the copy equals it.
    """

    agent: str = ""
    """What the agent was asked for as."""
    cwd: str = ""
    """The folder in which it works."""
    session_id: str | None = None
    """The agent's name for the session; ``None`` until it is open."""
    model: str | None = None
    """The model, as the agent calls it, where it tells."""
    phase: ev.Phase = "starting"
    phases: tuple[PhaseView, ...] = ()
    """Where it was before, in order, and how long; the last one is `phase`."""
    text: str = ""
    """Everything that the agent has said."""
    messages: tuple[str, ...] = ()
    """The same, message by message."""
    thoughts: str = ""
    """Everything that the agent has thought aloud."""
    thought_blocks: tuple[str, ...] = ()
    """The same, in the pieces that stand together."""
    user_messages: tuple[str, ...] = ()
    """What the user said, as the agent repeats it."""
    timeline: tuple[TimelineItem, ...] = ()
    """Messages, thoughts, tool calls and turns in the order in which they began."""
    tools: Mapping[str, ToolView] = field(default_factory=lambda: NO_TOOLS)
    """Tool calls by id, in the order in which they began. Where an agent uses the id of a call that has ended
    again, the new call stands in the place of the old one."""
    plan: tuple[ev.PlanEntry, ...] = ()
    plans: Mapping[str, ev.PlanUpdate] = field(default_factory=lambda: MappingProxyType({}))
    """Plans by id, from agents that keep several. `plan` has the steps of ``main``, or else of the oldest."""
    plan_changes: int = 0
    """How often a plan was replaced by one with other steps."""
    usage: ev.UsageUpdate | None = None
    """What fills the context window, and the cost; ``None`` where the agent does not report it."""
    tokens: TokenCounts | None = None
    """The tokens of the turns that are over; ``None`` where the agent does not report them."""
    questions: tuple[QuestionView, ...] = ()
    """What waits for an answer."""
    answers: tuple[AnswerView, ...] = ()
    """What was answered, in order."""
    denied: tuple[str, ...] = ()
    """The titles of what the agent has asked for and was denied, in order."""
    attempts: tuple[ev.ResultAttempt, ...] = ()
    """The results that the agent gave, those that were refused among them."""
    notices: tuple[ev.Notice, ...] = ()
    stalled: ev.Stalled | None = None
    """Set while nothing was heard of the agent for long; see ``stream(idle_timeout=…)``."""
    mode: str | None = None
    commands: tuple[ev.Command, ...] = ()
    turns: int = 0
    """How many prompts were sent."""
    dropped: int = 0
    """How many text events the buffer has dropped. The texts above are whole all the same."""
    stop_reason: str | None = None
    """Why the last turn ended, in the protocol's words; ``None`` before that."""
    background: tuple[str, ...] = ()
    """What the agent goes on with in the background, by the titles of its tool calls; after the end, what
    it went on with then."""
    error: Exception | None = None
    """Why the run failed; ``None`` while it has not."""
    cut: str | None = None
    """Why a completed run ended before its turn did, as the name of an error, such as ``AgentClosed`` where
    the agent's block was left: its result is valid, and what it has used may be unknown."""

    def to_json(self) -> dict[str, ev.JsonValue]:
        """Return the run as data that JSON can hold: an object with the fields above.

        Parts that are events leave out what is at its default, as in `event_to_json`. An error is an object
        with the ``name`` of its class and its ``message``. Secrets are not taken out.
        """
        plain: dict[str, ev.JsonValue] = json.loads(json.dumps(msgspec.to_builtins(self, enc_hook=_plain)))
        return plain  # with lists for tuples

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RunView) and _compared(self) == _compared(other)

    def __reduce__(self) -> tuple[Callable[[dict[str, Any]], RunView], tuple[dict[str, Any]]]:
        return _restored, (_values(self) | {"tools": {**self.tools}, "plans": {**self.plans}},)


def _values(view: RunView) -> dict[str, Any]:
    return {field.name: getattr(view, field.name) for field in fields(view)}


def _compared(view: RunView) -> dict[str, Any]:
    """Return what is compared: of an error its class and arguments, since each is equal to itself alone."""
    error = view.error
    return _values(view) | {"error": error and (type(error), error.args)}


def _restored(values: dict[str, Any]) -> RunView:
    proxies: dict[str, Any] = {name: MappingProxyType(values[name]) for name in ("tools", "plans")}
    return RunView(**values | proxies)


def _plain(value: object) -> object:
    if isinstance(value, Exception):
        return {"name": type(value).__name__, "message": str(value)}
    return dict(cast("Mapping[str, object]", value))  # nothing else in a view is unknown to msgspec
