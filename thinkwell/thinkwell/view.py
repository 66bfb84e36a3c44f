"""The state of a run, from which displays draw. `thinkwell.ViewReducer` builds it from events."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

import msgspec
from msgspec import Struct

from thinkwell import events as ev  # noqa: TC001 - types of fields

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from thinkwell._values.forms import FormField

__all__ = (
    "AgentView",
    "AnswerView",
    "PhaseView",
    "QuestionView",
    "RunView",
    "TimelineItem",
    "TokenCounts",
    "ToolView",
)

DraftKind: TypeAlias = Literal["text", "fields", "items", "end"]
"""What drafts a result has: its text so far, its fields, its items, or none before the end."""

NO_TOOLS: Final[Mapping[str, ToolView]] = MappingProxyType({})


class ToolView(Struct, frozen=True, kw_only=True, gc=False):
    """The state of a tool call, merged from all its updates."""

    id: str
    title: str = ""
    name: str | None = None
    """The tool's own name, if the agent reports it."""
    kind: ev.ToolKind = "other"
    status: ev.ToolStatus | ev.FinalStatus = "pending"
    input: ev.JsonValue = None
    output: ev.JsonValue = None
    content: tuple[ev.ToolContent, ...] = ()
    locations: tuple[ev.Location, ...] = ()
    started_at: float = 0.0
    """Seconds from the start of the run."""
    ended_at: float | None = None
    """Seconds from the start of the run; ``None`` while the call is running."""
    parent: str | None = None
    """The id of the sub-agent call that this call is part of, if the agent reports it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionView:
    """An open question of the agent."""

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
    """The verdicts of the handlers asked so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerView:
    """A question of the agent that was answered or withdrawn."""

    id: str
    title: str
    asks: Literal["permission", "form", "url"] = "permission"
    tool_id: str | None = None
    choice: str | None
    """The kind of the chosen option, ``accept`` or ``decline``; ``None`` if it was withdrawn."""
    by: str
    """Who decided; see `thinkwell.events.QuestionAnswered`."""
    why: str
    verdicts: tuple[ev.QuestionVerdict, ...] = ()
    asked_at: float = 0.0
    """Seconds from the start of the run."""
    answered_at: float = 0.0
    """Seconds from the start of the run."""


class TokenCounts(Struct, frozen=True, kw_only=True, gc=False):
    """Tokens used in all turns, as the agent reports them at the end of each.

    ``None`` means not reported. The protocol does not say whether an agent reports the tokens of the turn or
    of the session: in the latter case, some count twice.
    """

    total: int | None = None
    input: int | None = None
    output: int | None = None
    cached_read: int | None = None
    """How many input tokens came from a cache."""
    cached_write: int | None = None
    thought: int | None = None


class PhaseView(Struct, frozen=True, kw_only=True, gc=False):
    """A phase of a run, or of the launch of an agent."""

    phase: ev.Phase
    detail: str = ""
    """Details, such as the package being installed."""
    at: float = 0.0
    """When it began, in seconds from the start of the run; negative for the agent's launch."""
    seconds: float | None = None
    """How long it took; ``None`` if it has not ended, or is the end."""


class TimelineItem(Struct, frozen=True, kw_only=True, gc=False):
    """The position of a part of the conversation. The part itself is in the view."""

    kind: Literal["turn", "user", "thought", "message", "tool"]
    """``turn``: a prompt was sent here. ``user``: the agent repeats what the user said, or you
    steered it."""
    index: int = 0
    """Its index in `RunView.messages`, `RunView.thought_blocks` or `RunView.user_messages`, or the number
    of the turn."""
    id: str | None = None
    """The id of the message, if the agent gives one, or of the tool call."""
    at: float = 0.0
    """When it began, in seconds from the start of the run."""
    steered: bool = False
    """Whether you told the agent this in its turn; see `ThoughtStream.steer`."""


class AgentView(Struct, frozen=True, kw_only=True):
    """A sub-agent: a tool call of the agent, or of another sub-agent, that makes calls of its own."""

    id: str
    """The id of the tool call in `RunView.tools`."""
    parent: str | None = None
    """The id of the sub-agent that it is part of; ``None``: it is the agent's own."""
    calls: tuple[str, ...] = ()
    """The ids of its tool calls, in the order in which they began."""
    agents: tuple[str, ...] = ()
    """Those of them that are sub-agents."""
    text: str = ""
    """All that it has said, if the agent reports it."""
    thoughts: str = ""
    """All that it has thought."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunView:
    """An immutable snapshot of a run.

    You can copy it, and pickle it if its error can be pickled; the copy equals it.
    """

    agent: str = ""
    """The name or command under which you opened the agent."""
    cwd: str = ""
    """The folder in which it works."""
    session_id: str | None = None
    """The agent's id for the session; ``None`` until it is open."""
    model: str | None = None
    """The agent's name for its model, if it reports it."""
    phase: ev.Phase = "starting"
    phases: tuple[PhaseView, ...] = ()
    """All phases in order, with their durations; the last one is `phase`."""
    text: str = ""
    """The text of all messages of the agent."""
    messages: tuple[str, ...] = ()
    """The same, message by message."""
    thoughts: str = ""
    """The text of all thoughts of the agent."""
    thought_blocks: tuple[str, ...] = ()
    """The same, in consecutive blocks."""
    user_messages: tuple[str, ...] = ()
    """The user's messages, as the agent repeats them."""
    timeline: tuple[TimelineItem, ...] = ()
    """Messages, thoughts, tool calls and turns in the order in which they began."""
    tools: Mapping[str, ToolView] = field(default_factory=lambda: NO_TOOLS)
    """Tool calls by id, in the order in which they began. If an agent reuses the id of a call that has ended,
    the new call replaces the old one."""
    agents: Mapping[str, AgentView] = field(default_factory=lambda: MappingProxyType({}))
    """Sub-agents by the ids of their tool calls, in the order in which they were first heard of."""
    plan: tuple[ev.PlanEntry, ...] = ()
    plans: Mapping[str, ev.PlanUpdate] = field(default_factory=lambda: MappingProxyType({}))
    """Plans by id, from agents that keep several. `plan` has the steps of ``main``, or else of the oldest."""
    plan_changes: int = 0
    """How often a plan was replaced by one with other steps."""
    usage: ev.UsageUpdate | None = None
    """Usage of the context window, and the cost; ``None`` if the agent does not report it."""
    tokens: TokenCounts | None = None
    """The tokens of the completed turns; ``None`` if the agent does not report them."""
    questions: tuple[QuestionView, ...] = ()
    """The open questions."""
    answers: tuple[AnswerView, ...] = ()
    """The answered questions, in order."""
    denied: tuple[str, ...] = ()
    """The titles of the agent's denied requests, in order."""
    drafts: DraftKind = "end"
    """What `ThoughtStream.drafts` gives before the end, where the agent shows a result that it writes: the
    ``text`` so far, the ``fields`` of an object, or the ``items`` of a list; ``end``: nothing."""
    attempts: tuple[ev.ResultAttempt, ...] = ()
    """The results that the agent returned, including rejected ones."""
    notices: tuple[ev.Notice, ...] = ()
    stalled: ev.Stalled | None = None
    """Set while the agent is silent for long; see ``stream(idle_timeout=…)``."""
    mode: str | None = None
    commands: tuple[ev.Command, ...] = ()
    turns: int = 0
    """How many prompts were sent."""
    dropped: int = 0
    """How many text events the buffer has dropped. The texts above are complete anyway."""
    stop_reason: str | None = None
    """Why the last turn ended, in the protocol's words; ``None`` before that."""
    background: tuple[str, ...] = ()
    """The agent's work in the background, by the titles of its tool calls; after the end, the work that was
    left then."""
    error: Exception | None = None
    """Why the run failed; ``None`` if it has not."""
    cut: str | None = None
    """Why a completed run ended before its turn did, as the name of an error, such as ``AgentClosed`` if
    you left the agent's block: the result is valid, but the usage may be unknown."""

    def to_json(self) -> dict[str, ev.JsonValue]:
        """Return the run as JSON data: an object with the fields above.

        Events in it leave out fields that have their default, as in `event_to_json`. An error is an object
        with the ``name`` of its class and its ``message``. Secrets are not removed.
        """
        plain: dict[str, ev.JsonValue] = json.loads(json.dumps(msgspec.to_builtins(self, enc_hook=_plain)))
        return plain  # with lists instead of tuples

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RunView) and _compared(self) == _compared(other)

    def __reduce__(self) -> tuple[Callable[[dict[str, Any]], RunView], tuple[dict[str, Any]]]:
        return _restored, (_values(self) | {name: {**getattr(self, name)} for name in _TABLES},)


_TABLES: Final = ("tools", "agents", "plans")


def _values(view: RunView) -> dict[str, Any]:
    return {field.name: getattr(view, field.name) for field in fields(view)}


def _compared(view: RunView) -> dict[str, Any]:
    """Return the values to compare: for an error its class and arguments, as it only equals itself."""
    error = view.error
    return _values(view) | {"error": error and (type(error), error.args)}


def _restored(values: dict[str, Any]) -> RunView:
    proxies: dict[str, Any] = {name: MappingProxyType(values[name]) for name in _TABLES}
    return RunView(**values | proxies)


def _plain(value: object) -> object:
    if isinstance(value, Exception):
        return {"name": type(value).__name__, "message": str(value)}
    return dict(cast("Mapping[str, object]", value))  # msgspec supports everything else in a view
