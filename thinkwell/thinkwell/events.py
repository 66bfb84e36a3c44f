"""The events of a run, as frozen values.

Six kinds are delivered by default: `Thought`, `Message`, `ToolStart`, `ToolUpdate`, `ToolDone` and
`PlanUpdate`. Ask for the others with ``stream(include=…)``. Every event has a `type` tag, a sequence number
and a time. Narrow them with ``match``, convert them with `event_to_json` and `event_from_json`, or use them
as field types of pydantic models.

Events do not depend on the protocol that delivered them.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, ClassVar, Final, Literal, TypeAlias, get_args

import msgspec
from msgspec import UNSET

from thinkwell._values.content import (
    AudioContent,
    BlockContent,
    Command,
    CompactionChanges,
    ContentBlock,
    Cost,
    DiffContent,
    EmbeddedResource,
    Event,
    FinalStatus,
    ImageContent,
    JsonValue,
    Location,
    PlanEntry,
    QuestionOption,
    ResourceLink,
    SessionChanges,
    TerminalContent,
    TextContent,
    TextEvent,
    TokenUsage,
    ToolContent,
    ToolKind,
    ToolStatus,
    read_block,
)
from thinkwell._values.forms import FormField  # noqa: TC001 - type of a field
from thinkwell._values.session_options import OptionChoice, SessionOption, read_options

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = (
    "ALL_TYPES",
    "DEFAULT_TYPES",
    "AgentCycle",
    "AudioContent",
    "BackgroundWork",
    "BlockContent",
    "Command",
    "CommandsUpdate",
    "Compaction",
    "CompactionChanges",
    "ConfigUpdate",
    "ContentBlock",
    "Cost",
    "DiffContent",
    "Dropped",
    "EmbeddedResource",
    "Event",
    "EventType",
    "FinalStatus",
    "ImageContent",
    "Include",
    "JsonValue",
    "Location",
    "Message",
    "ModeUpdate",
    "Notice",
    "OptionChoice",
    "Phase",
    "PhaseChanged",
    "PlanEntry",
    "PlanUpdate",
    "QuestionAnswered",
    "QuestionAsked",
    "QuestionCompleted",
    "QuestionOption",
    "QuestionVerdict",
    "ReplayEnded",
    "ReplayStarted",
    "Report",
    "ResourceLink",
    "ResultAttempt",
    "SessionChanges",
    "SessionInfoUpdate",
    "SessionOpened",
    "SessionOption",
    "Stalled",
    "Steered",
    "SubagentText",
    "TerminalContent",
    "TextContent",
    "Thought",
    "ThoughtEvent",
    "TokenUsage",
    "ToolContent",
    "ToolDone",
    "ToolKind",
    "ToolStart",
    "ToolStatus",
    "ToolUpdate",
    "ToolsSeen",
    "TryFailed",
    "TurnEnded",
    "TurnStarted",
    "Unhandled",
    "UnknownUpdate",
    "UsageUpdate",
    "UserMessage",
    "event_from_json",
    "event_to_json",
    "included",
)

Phase: TypeAlias = Literal[
    "launching",
    "installing",
    "initializing",
    "starting",
    "authenticating",
    "connecting_tools",
    "tools_ready",
    "prompted",
    "responding",
    "completed",
    "failed",
    "cancelled",
]
"""The phase of a run.

First the agent's own launch, before the run began: ``launching`` (thinkwell looks for its program),
``installing`` (only if it is missing), ``initializing`` (the program runs and reports its capabilities). Then
``starting`` (the run opens its session, or waits for it), ``connecting_tools``, ``tools_ready`` (the agent
has fetched the tools), ``prompted`` (it has the prompt), ``responding`` (it has begun to answer), the end.
``authenticating`` occurs whenever the agent asks for a login."""


class Thought(TextEvent, frozen=True, kw_only=True, tag="thought"):
    """A piece of the agent's reasoning."""

    type: ClassVar[Literal["thought"]] = "thought"


class Message(TextEvent, frozen=True, kw_only=True, tag="message"):
    """A piece of the agent's message text."""

    type: ClassVar[Literal["message"]] = "message"


class SubagentText(TextEvent, frozen=True, kw_only=True, tag="subagent_text"):
    """A piece of what a sub-agent says or thinks. It is no part of the agent's own messages."""

    type: ClassVar[Literal["subagent_text"]] = "subagent_text"

    agent: str
    """The id of the tool call that is the sub-agent."""
    thinks: bool = False
    """Whether it is reasoning."""


class ToolStart(Event, frozen=True, kw_only=True, tag="tool_start"):
    """The agent has begun a tool call, or is about to ask for permission."""

    type: ClassVar[Literal["tool_start"]] = "tool_start"

    id: str
    title: str = ""
    """The title to show. The model may have written it."""
    kind: ToolKind = "other"
    input: JsonValue = None
    """The call's arguments, if the agent shows them."""
    locations: tuple[Location, ...] = ()
    content: tuple[ToolContent, ...] = ()
    status: ToolStatus = "pending"
    name: str | None = None
    """The tool's own name, if the agent reports it."""
    parent: str | None = None
    """The id of the sub-agent call that this call is part of, if the agent reports it."""


class ToolUpdate(Event, frozen=True, kw_only=True, tag="tool_update"):
    """A change to a tool call. ``None`` means unchanged; content and locations replace the earlier ones."""

    type: ClassVar[Literal["tool_update"]] = "tool_update"

    id: str
    status: ToolStatus | None = None
    title: str | None = None
    content: tuple[ToolContent, ...] | None = None
    kind: ToolKind | None = None
    input: JsonValue = None
    output: JsonValue = None
    locations: tuple[Location, ...] | None = None
    name: str | None = None
    parent: str | None = None


class ToolDone(Event, frozen=True, kw_only=True, tag="tool_done"):
    """A tool call has ended."""

    type: ClassVar[Literal["tool_done"]] = "tool_done"

    id: str
    status: FinalStatus
    content: tuple[ToolContent, ...] = ()
    """Everything that the call produced, including diffs that an earlier event has shown."""
    output: JsonValue = None
    """The raw output, if the agent shows it."""
    title: str = ""


class PlanUpdate(Event, frozen=True, kw_only=True, tag="plan"):
    """The agent's complete plan. It replaces the earlier plan with the same `id`."""

    type: ClassVar[Literal["plan"]] = "plan"

    entries: tuple[PlanEntry, ...] = ()
    id: str = "main"
    markdown: str | None = None
    """The plan as a text, if the agent writes it that way."""
    uri: str | None = None
    """The plan as a file, if the agent keeps it that way."""
    removed: bool = False


class UserMessage(TextEvent, frozen=True, kw_only=True, tag="user_message"):
    """A message of the user, as the agent repeats it."""

    type: ClassVar[Literal["user_message"]] = "user_message"


class Steered(Event, frozen=True, kw_only=True, tag="steered"):
    """You told the agent something while it worked: `ThoughtStream.steer`."""

    type: ClassVar[Literal["steered"]] = "steered"

    text: str
    outcome: Literal["injected", "interrupted", "queued", "refused"]
    """The outcome: the agent reads it in its turn, in a new turn of the run, or in a run after this one;
    or it refused it."""
    reason: str = ""
    """Why it was refused."""


class BackgroundWork(Event, frozen=True, kw_only=True, tag="background"):
    """The agent's background work has changed."""

    type: ClassVar[Literal["background"]] = "background"

    tools: tuple[str, ...] = ()
    """The ids of all tool calls that only seem to have ended: their commands continue."""


class AgentCycle(Event, frozen=True, kw_only=True, tag="agent_cycle"):
    """The agent has worked without a prompt. Its text is before this, in the run or after it."""

    type: ClassVar[Literal["agent_cycle"]] = "agent_cycle"

    origin: str
    """The reason, in the agent's words: ``task-notification`` when a command in the background has ended."""


class UsageUpdate(Event, frozen=True, kw_only=True, tag="usage"):
    """Tokens in the context window, as the agent reports them."""

    type: ClassVar[Literal["usage"]] = "usage"

    used: int
    size: int
    cost: Cost | None = None


class ModeUpdate(Event, frozen=True, kw_only=True, tag="mode"):
    """The mode of the session has changed."""

    type: ClassVar[Literal["mode"]] = "mode"

    mode_id: str


class CommandsUpdate(Event, frozen=True, kw_only=True, tag="commands"):
    """All commands that the agent supports."""

    type: ClassVar[Literal["commands"]] = "commands"

    commands: tuple[Command, ...] = ()


class ConfigUpdate(Event, frozen=True, kw_only=True, tag="config"):
    """All options of the session."""

    type: ClassVar[Literal["config"]] = "config"

    raw: tuple[JsonValue, ...] = msgspec.field(default=(), name="options")
    """The options in the protocol's form, including unknown types and ``_meta``."""

    @property
    def options(self) -> tuple[SessionOption, ...]:
        """The options, as `Session.options` has them."""
        return tuple(read_options(self.raw))


class SessionOpened(Event, frozen=True, kw_only=True, tag="session"):
    """The run has a session: a new one, or that of earlier turns."""

    type: ClassVar[Literal["session"]] = "session"

    agent: str
    """The name or command under which you opened the agent."""
    session_id: str
    """The agent's id for the session."""
    cwd: str
    """The folder in which it works."""
    model: str | None = None
    """The agent's name for its current model, if it reports it."""
    mode: str | None = None


class SessionInfoUpdate(Event, frozen=True, kw_only=True, tag="session_info"):
    """Something changed about the session."""

    type: ClassVar[Literal["session_info"]] = "session_info"

    changes: SessionChanges


class QuestionAsked(Event, frozen=True, kw_only=True, tag="question"):
    """The agent asks for permission, for values, or to open a web page."""

    type: ClassVar[Literal["question"]] = "question"

    id: str
    title: str
    asks: Literal["permission", "form", "url"] = "permission"
    tool_id: str | None = None
    options: tuple[QuestionOption, ...] = ()
    """The choices of a permission question."""
    fields: tuple[FormField, ...] = ()
    """The fields of a form."""
    url: str | None = None
    timeout: float | None = None
    """Seconds until it is denied without an answer."""


class QuestionVerdict(Event, frozen=True, kw_only=True, tag="verdict"):
    """A handler has given its verdict on a question, or has failed."""

    type: ClassVar[Literal["verdict"]] = "verdict"

    id: str
    verdict: str | None
    """``allow``, ``deny``, …, or ``None`` to leave it to the next handler."""
    by: str
    why: str


class QuestionAnswered(Event, frozen=True, kw_only=True, tag="answer"):
    """A question was answered."""

    type: ClassVar[Literal["answer"]] = "answer"

    id: str
    choice: str | None
    """The answer to the agent: the kind of the chosen option, ``accept`` or ``decline``; ``None`` if the
    question was cancelled."""
    by: str
    """Who decided: ``policy``, ``remembered``, ``handler``, ``supervisor``, ``human``, ``deadline`` or
    ``cancel``, or the name that you pass to `ThoughtStream.answer`."""
    why: str
    option_id: str | None = None
    """The chosen option of a permission question."""
    filled: tuple[str, ...] = ()
    """The names of the form fields that were filled in. Their values may be secret, and are left out."""


class QuestionCompleted(Event, frozen=True, kw_only=True, tag="question_done"):
    """The agent reports that it is done with the web page it had opened."""

    type: ClassVar[Literal["question_done"]] = "question_done"

    id: str


class ResultAttempt(Event, frozen=True, kw_only=True, tag="result_attempt"):
    """The agent called ``return_result``."""

    type: ClassVar[Literal["result_attempt"]] = "result_attempt"

    accepted: bool
    value: JsonValue = None
    errors: tuple[str, ...] = ()


class PhaseChanged(Event, frozen=True, kw_only=True, tag="phase"):
    """The run has reached another phase.

    The first run of an agent includes the agent's launch, with negative times, since it was over when the run
    began. A served run begins when it is requested, so all its times are from 0 on.
    """

    type: ClassVar[Literal["phase"]] = "phase"

    phase: Phase
    detail: str = ""
    """Details, such as ``npm package @google/gemini-cli@0.61.0``."""
    seconds: float | None = None
    """Its duration, if known, as for the agent's launch; otherwise the time of the next phase shows it."""
    cut: str | None = None
    """Why a completed run ended before its turn did; see `thinkwell.view.RunView.cut`."""


class ToolsSeen(Event, frozen=True, kw_only=True, tag="tools_seen"):
    """The agent has fetched the list of tools."""

    type: ClassVar[Literal["tools_seen"]] = "tools_seen"

    names: tuple[str, ...]
    via: str
    """The transport: ``acp``, ``http`` or ``stdio``."""


class TurnStarted(Event, frozen=True, kw_only=True, tag="turn_start"):
    """A prompt was sent. `reminder`: by thinkwell, because a turn ended without a result."""

    type: ClassVar[Literal["turn_start"]] = "turn_start"

    number: int
    reminder: bool = False


class TurnEnded(Event, frozen=True, kw_only=True, tag="turn_end"):
    """The agent has answered a prompt."""

    type: ClassVar[Literal["turn_end"]] = "turn_end"

    number: int
    stop_reason: str
    usage: TokenUsage | None = None
    """Token counts, if the agent reports them."""


class Notice(Event, frozen=True, kw_only=True, tag="notice"):
    """A remark of the agent that is not part of the conversation."""

    type: ClassVar[Literal["notice"]] = "notice"

    severity: str
    title: str
    description: str | None = None


class Compaction(Event, frozen=True, kw_only=True, tag="compaction"):
    """The agent shortens its context."""

    type: ClassVar[Literal["compaction"]] = "compaction"

    id: str
    raw: dict[str, JsonValue] = msgspec.field(name="changes")
    """The changes in the protocol's form, including ``_meta``."""

    @property
    def changes(self) -> CompactionChanges:
        """What changed."""
        summary: JsonValue = self.raw.get("summary", UNSET)
        return CompactionChanges(
            status=self.raw.get("status", UNSET),
            summary=tuple(map(read_block, summary)) if summary not in (None, UNSET) else summary,
            error=self.raw.get("error", UNSET),
            content=read_block(self.raw["content"]) if "content" in self.raw else UNSET,
        )


class UnknownUpdate(Event, frozen=True, kw_only=True, tag="unknown"):
    """An update of an unknown kind, or a malformed one."""

    type: ClassVar[Literal["unknown"]] = "unknown"

    kind: str
    raw: JsonValue
    error: str | None = None


class Report(Event, frozen=True, kw_only=True, tag="report"):
    """A message of an NDJSON agent in its original form: each of its messages but the last."""

    type: ClassVar[Literal["report"]] = "report"

    kind: str
    """The type of the message, such as ``progress``. Agents invent others."""
    body: dict[str, JsonValue]
    """All of its fields except the type."""
    message_id: JsonValue = None
    """The message's own id, if it has one."""


class Unhandled(Event, frozen=True, kw_only=True, tag="unhandled"):
    """A message that the listener has no handler for; see `thinkwell.listen`."""

    type: ClassVar[Literal["unhandled"]] = "unhandled"

    kind: str
    """The type of the message."""
    body: dict[str, JsonValue]


class TryFailed(Event, frozen=True, kw_only=True, tag="try_failed"):
    """The agent has failed, and the task is given to it again, or to another agent."""

    type: ClassVar[Literal["try_failed"]] = "try_failed"

    agent: str
    """The agent that has failed."""
    error: str
    """Why: the name of the error's class."""
    reason: str
    """Why, in words."""
    next_agent: str
    """The agent that gets the task now."""
    then: Literal["retry", "fallback"]
    """Whether that is the same agent, or the next one of the fallback."""
    delay: float = 0.0
    """Seconds until it does."""


class Stalled(Event, frozen=True, kw_only=True, tag="stalled"):
    """The agent was silent for half of the ``idle_timeout``."""

    type: ClassVar[Literal["stalled"]] = "stalled"

    idle: float
    """Seconds since the last sign of life."""
    limit: float
    """Seconds after which the run is cancelled: its ``idle_timeout``."""


class ReplayStarted(Event, frozen=True, kw_only=True, tag="replay_start"):
    """The agent begins to repeat the history of a loaded session."""

    type: ClassVar[Literal["replay_start"]] = "replay_start"


class ReplayEnded(Event, frozen=True, kw_only=True, tag="replay_end"):
    """The agent has finished repeating the history of a loaded session."""

    type: ClassVar[Literal["replay_end"]] = "replay_end"


class Dropped(Event, frozen=True, kw_only=True, tag="dropped"):
    """Text was dropped here, because the buffer was full."""

    type: ClassVar[Literal["dropped"]] = "dropped"

    count: int
    """How many events were dropped."""


ThoughtEvent: TypeAlias = (
    Thought
    | Message
    | ToolStart
    | ToolUpdate
    | ToolDone
    | PlanUpdate
    | UserMessage
    | Steered
    | BackgroundWork
    | AgentCycle
    | SubagentText
    | UsageUpdate
    | ModeUpdate
    | CommandsUpdate
    | ConfigUpdate
    | SessionOpened
    | SessionInfoUpdate
    | QuestionAsked
    | QuestionVerdict
    | QuestionAnswered
    | QuestionCompleted
    | ResultAttempt
    | PhaseChanged
    | ToolsSeen
    | TurnStarted
    | TurnEnded
    | Notice
    | Compaction
    | UnknownUpdate
    | Report
    | Unhandled
    | TryFailed
    | Stalled
    | ReplayStarted
    | ReplayEnded
    | Dropped
)
"""Any event."""

EventType: TypeAlias = Literal[
    "thought",
    "message",
    "tool_start",
    "tool_update",
    "tool_done",
    "plan",
    "user_message",
    "steered",
    "background",
    "agent_cycle",
    "subagent_text",
    "usage",
    "mode",
    "commands",
    "config",
    "session",
    "session_info",
    "question",
    "verdict",
    "answer",
    "question_done",
    "result_attempt",
    "phase",
    "tools_seen",
    "turn_start",
    "turn_end",
    "notice",
    "compaction",
    "unknown",
    "report",
    "unhandled",
    "try_failed",
    "stalled",
    "replay_start",
    "replay_end",
    "dropped",
]
"""The `type` tag of an event."""

Include: TypeAlias = "Literal['default', 'all'] | Collection[EventType]"
"""Which kinds of events to keep."""

ALL_TYPES: Final[frozenset[str]] = frozenset(get_args(EventType))
DEFAULT_TYPES: Final[frozenset[str]] = frozenset(
    {"thought", "message", "tool_start", "tool_update", "tool_done", "plan"}
)


def included(include: Include) -> frozenset[str]:
    """Return the tags that `include` selects.

    Raises:
        ValueError: It names an unknown kind of event.
    """
    if include == "default":
        return DEFAULT_TYPES
    if include == "all":
        return ALL_TYPES
    chosen = frozenset([include] if isinstance(include, str) else include)
    unknown = chosen - ALL_TYPES
    if unknown:
        from difflib import get_close_matches

        near = get_close_matches(min(unknown), ALL_TYPES, 1)
        meant = f"; do you mean {near[0]!r}?" if near else "."
        raise ValueError(
            f"include= names {sorted(unknown)}{meant} The kinds of events are {sorted(ALL_TYPES)}"
        )
    return chosen


@cache
def _decoder() -> msgspec.json.Decoder[ThoughtEvent]:
    return msgspec.json.Decoder(ThoughtEvent)


def event_from_json(data: bytes | str) -> ThoughtEvent:
    """Return the event from the output of `event_to_json`.

    Raises:
        msgspec.ValidationError: The text is not an event.
    """
    try:
        return _decoder().decode(data)
    except msgspec.ValidationError:
        raise
    except (ValueError, RecursionError) as exc:  # not JSON, not UTF-8, nested too deep
        raise msgspec.ValidationError(str(exc)) from exc


def event_to_json(event: ThoughtEvent) -> bytes:
    """Return an event as a JSON object, without fields that have their default."""
    return msgspec.json.encode(event)
