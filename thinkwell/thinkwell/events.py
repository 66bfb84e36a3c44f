"""What a run tells while it goes on: one frozen value for each thing that happened.

Six kinds are delivered by default: `Thought`, `Message`, `ToolStart`, `ToolUpdate`, `ToolDone` and `PlanUpdate`. The rest
is opt-in, by ``stream(include=…)``. Every event has a `type` tag, a sequence number and a time; ``match`` narrows them,
`event_to_json` and `event_from_json` take them through JSON, and they are valid field types of pydantic models.

Nothing here knows the protocol that an event came by.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeAlias, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import force_setattr

if TYPE_CHECKING:
    from collections.abc import Collection

    from typing_extensions import Self

JsonValue: TypeAlias = Any
"""A JSON value: ``None``, ``bool``, ``int``, ``float``, ``str``, a list or a dict with string keys."""

ToolKind: TypeAlias = Literal[
    "read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"
]
"""What sort of thing a tool does (ACP, Tool Calls)."""

ToolStatus: TypeAlias = Literal["pending", "in_progress", "completed", "failed"]
"""How far the agent says a tool call is (ACP, Tool Calls)."""

FinalStatus: TypeAlias = Literal["completed", "failed", "cancelled"]
"""How a tool call ended. ``cancelled`` is said by the client, for calls that a cancelled turn left open."""

Phase: TypeAlias = Literal["starting", "connecting_tools", "prompted", "responding", "completed", "failed", "cancelled"]
"""Where a run is."""


# Content


class _Block(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True, tag_field="type"):
    annotations: JsonValue = None
    """Hints of the agent's about audience and priority, as it sent them."""


class TextContent(_Block, frozen=True, tag="text"):
    """Text."""

    text: str


class ImageContent(_Block, frozen=True, tag="image"):
    """An image; `data` is base64."""

    data: str
    mime_type: str
    uri: str | None = None


class AudioContent(_Block, frozen=True, tag="audio"):
    """Sound; `data` is base64."""

    data: str
    mime_type: str


class ResourceLink(_Block, frozen=True, tag="resource_link"):
    """A reference to something that the agent can read."""

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None


class EmbeddedResource(_Block, frozen=True, tag="resource"):
    """The contents of a resource: `text`, or base64 in `blob`."""

    uri: str
    text: str | None = None
    blob: str | None = None
    mime_type: str | None = None


ContentBlock: TypeAlias = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource


class BlockContent(Struct, frozen=True, kw_only=True, gc=False, tag_field="type", tag="content"):
    """A content block that a tool produced."""

    content: ContentBlock


class DiffContent(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True, tag_field="type", tag="diff"):
    """A change to a file. `old_text` is ``None`` for a new file."""

    path: str
    new_text: str
    old_text: str | None = None


class TerminalContent(Struct, frozen=True, kw_only=True, gc=False, tag_field="type", tag="terminal"):
    """The output of a terminal of the client's."""

    terminal_id: str


ToolContent: TypeAlias = BlockContent | DiffContent | TerminalContent


class Location(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A place in a file that a tool works on. `line` counts from 1."""

    path: str
    line: int | None = None


class PlanEntry(Struct, frozen=True, kw_only=True, gc=False):
    """A step of a plan."""

    content: str
    priority: Literal["high", "medium", "low"] = "medium"
    status: Literal["pending", "in_progress", "completed"] = "pending"


class Cost(Struct, frozen=True, kw_only=True, gc=False):
    """What a session has cost so far, as the agent reports it."""

    amount: float
    currency: str


# Events


class Event(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True, tag_field="type"):
    """What all events have."""

    seq: int = 0
    """Number in the log of the run: 1, 2, 3 and so on. 0: not in a log."""

    at: float = 0.0
    """Seconds from the start of the run to when the event was read, by the client's clock."""

    type: ClassVar[str]
    """The tag of this kind of event."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: object) -> Any:
        """Let pydantic models hold events: as they are, or from their JSON form."""
        from pydantic_core import core_schema  # noqa: PLC0415 - pydantic is loaded by those who use it

        return core_schema.no_info_plain_validator_function(
            cls._validated, serialization=core_schema.plain_serializer_function_ser_schema(_to_builtins)
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: object, handler: object) -> dict[str, Any]:
        """Describe an event by its tag."""
        return {"type": "object", "properties": {"type": {"const": cls.type}}, "required": ["type"]}

    @classmethod
    def _validated(cls, value: object) -> Self:
        return value if isinstance(value, cls) else msgspec.convert(value, cls)


_NO_CONTENT: Final = TextContent(text="")


class _Text(Event, frozen=True):
    text: str = ""
    """The text; empty where the content is something else."""

    content: ContentBlock = _NO_CONTENT
    """The content as a block: the text again, or an image, sound, or resource."""

    message_id: str | None = None
    """Chunks with the same id belong to one message. Opaque; ``None`` from agents that give none."""

    def __post_init__(self) -> None:
        if self.content is _NO_CONTENT:
            force_setattr(self, "content", TextContent(text=self.text))
        elif not self.text and isinstance(self.content, TextContent):
            force_setattr(self, "text", self.content.text)


class Thought(_Text, frozen=True, tag="thought"):
    """A piece of the agent's reasoning."""

    type: ClassVar[Literal["thought"]] = "thought"


class Message(_Text, frozen=True, tag="message"):
    """A piece of what the agent says."""

    type: ClassVar[Literal["message"]] = "message"


class ToolStart(Event, frozen=True, tag="tool_start"):
    """The agent has begun a tool call, or is about to ask whether it may."""

    type: ClassVar[Literal["tool_start"]] = "tool_start"

    id: str
    title: str = ""
    """What to show. The model may have written it."""
    kind: ToolKind = "other"
    input: JsonValue = None
    """The call's arguments, where the agent shows them."""
    locations: tuple[Location, ...] = ()
    content: tuple[ToolContent, ...] = ()
    status: ToolStatus = "pending"
    name: str | None = None
    """The tool's own name, from agents that give it."""


class ToolUpdate(Event, frozen=True, tag="tool_update"):
    """News of a tool call. ``None`` means unchanged; content and locations replace what was there."""

    type: ClassVar[Literal["tool_update"]] = "tool_update"

    id: str
    status: ToolStatus | None = None
    title: str | None = None
    content: tuple[ToolContent, ...] | None = None
    kind: ToolKind | None = None
    input: JsonValue = None
    output: JsonValue = None
    locations: tuple[Location, ...] | None = None


class ToolDone(Event, frozen=True, tag="tool_done"):
    """A tool call has ended."""

    type: ClassVar[Literal["tool_done"]] = "tool_done"

    id: str
    status: FinalStatus
    content: tuple[ToolContent, ...] = ()
    """Everything that the call produced, diffs too, though an earlier event may have shown it."""
    output: JsonValue = None
    """The raw output, where the agent shows it."""
    title: str = ""


class PlanUpdate(Event, frozen=True, tag="plan"):
    """The agent's plan, whole: it replaces the plan of the same `id` before."""

    type: ClassVar[Literal["plan"]] = "plan"

    entries: tuple[PlanEntry, ...] = ()
    id: str = "main"
    markdown: str | None = None
    """The plan as a text, from agents that write it so."""
    uri: str | None = None
    """The plan as a file, from agents that keep it so."""
    removed: bool = False


class UserMessage(_Text, frozen=True, tag="user_message"):
    """What the user said, as the agent repeats it."""

    type: ClassVar[Literal["user_message"]] = "user_message"


class UsageUpdate(Event, frozen=True, tag="usage"):
    """Tokens in the context window, as the agent reports them."""

    type: ClassVar[Literal["usage"]] = "usage"

    used: int
    size: int
    cost: Cost | None = None


class ModeUpdate(Event, frozen=True, tag="mode"):
    """The session is in another mode."""

    type: ClassVar[Literal["mode"]] = "mode"

    mode_id: str


class Command(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A command that can be prompted as ``/name``."""

    name: str
    description: str = ""
    hint: str | None = None


class CommandsUpdate(Event, frozen=True, tag="commands"):
    """The commands that the agent knows, all of them."""

    type: ClassVar[Literal["commands"]] = "commands"

    commands: tuple[Command, ...] = ()


class ConfigUpdate(Event, frozen=True, tag="config"):
    """The session's options, all of them, in the protocol's form."""

    type: ClassVar[Literal["config"]] = "config"

    options: tuple[JsonValue, ...] = ()


class SessionInfoUpdate(Event, frozen=True, tag="session_info"):
    """What changed about the session, as the agent sent it; a key with ``None`` was cleared."""

    type: ClassVar[Literal["session_info"]] = "session_info"

    changes: dict[str, JsonValue]


class QuestionAsked(Event, frozen=True, tag="question"):
    """The agent asks whether it may do something."""

    type: ClassVar[Literal["question"]] = "question"

    id: str
    title: str
    tool_id: str | None = None
    options: tuple[str, ...] = ()
    """The names of the choices."""


class QuestionAnswered(Event, frozen=True, tag="answer"):
    """A question was answered."""

    type: ClassVar[Literal["answer"]] = "answer"

    id: str
    choice: str | None
    """The kind of the chosen option, or ``None``: cancelled."""
    by: str
    """Who decided: ``policy``, ``handler`` or ``cancel``."""
    why: str


class ResultAttempt(Event, frozen=True, tag="result_attempt"):
    """The agent called ``return_result``."""

    type: ClassVar[Literal["result_attempt"]] = "result_attempt"

    accepted: bool
    value: JsonValue = None
    errors: tuple[str, ...] = ()


class PhaseChanged(Event, frozen=True, tag="phase"):
    """The run has come to another phase."""

    type: ClassVar[Literal["phase"]] = "phase"

    phase: Phase


class ToolsSeen(Event, frozen=True, tag="tools_seen"):
    """The agent has fetched the list of our tools."""

    type: ClassVar[Literal["tools_seen"]] = "tools_seen"

    names: tuple[str, ...]
    via: str
    """The way: ``acp``, ``http`` or ``stdio``."""


class TurnStarted(Event, frozen=True, tag="turn_start"):
    """A prompt was sent. `reminder`: it is ours, because a turn ended without a result."""

    type: ClassVar[Literal["turn_start"]] = "turn_start"

    number: int
    reminder: bool = False


class TurnEnded(Event, frozen=True, tag="turn_end"):
    """The agent has answered a prompt."""

    type: ClassVar[Literal["turn_end"]] = "turn_end"

    number: int
    stop_reason: str
    usage: JsonValue = None
    """Token counts, where the agent gives them, in the protocol's form."""


class Notice(Event, frozen=True, tag="notice"):
    """A remark of the agent's that is not part of the conversation."""

    type: ClassVar[Literal["notice"]] = "notice"

    severity: str
    title: str
    description: str | None = None


class Compaction(Event, frozen=True, tag="compaction"):
    """The agent shortens its context, in the protocol's form."""

    type: ClassVar[Literal["compaction"]] = "compaction"

    id: str
    changes: dict[str, JsonValue]


class UnknownUpdate(Event, frozen=True, tag="unknown"):
    """An update that this version does not know, or a known one that is broken."""

    type: ClassVar[Literal["unknown"]] = "unknown"

    kind: str
    raw: JsonValue
    error: str | None = None


class Dropped(Event, frozen=True, tag="dropped"):
    """Text was dropped here, because the buffer was full."""

    type: ClassVar[Literal["dropped"]] = "dropped"

    count: int
    """How many events."""


ThoughtEvent: TypeAlias = (
    Thought
    | Message
    | ToolStart
    | ToolUpdate
    | ToolDone
    | PlanUpdate
    | UserMessage
    | UsageUpdate
    | ModeUpdate
    | CommandsUpdate
    | ConfigUpdate
    | SessionInfoUpdate
    | QuestionAsked
    | QuestionAnswered
    | ResultAttempt
    | PhaseChanged
    | ToolsSeen
    | TurnStarted
    | TurnEnded
    | Notice
    | Compaction
    | UnknownUpdate
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
    "usage",
    "mode",
    "commands",
    "config",
    "session_info",
    "question",
    "answer",
    "result_attempt",
    "phase",
    "tools_seen",
    "turn_start",
    "turn_end",
    "notice",
    "compaction",
    "unknown",
    "dropped",
]
"""The tag of a kind of event."""

Include: TypeAlias = "Literal['default', 'all'] | Collection[EventType]"
"""Which kinds of events to keep."""

ALL_TYPES: Final[frozenset[str]] = frozenset(get_args(EventType))
DEFAULT_TYPES: Final[frozenset[str]] = frozenset(
    {"thought", "message", "tool_start", "tool_update", "tool_done", "plan"}
)


def included(include: Include) -> frozenset[str]:
    """Return the tags that `include` means.

    Raises:
        ValueError: It names a kind of event that does not exist.
    """
    if include == "default":
        return DEFAULT_TYPES
    if include == "all":
        return ALL_TYPES
    chosen = frozenset([include] if isinstance(include, str) else include)
    unknown = chosen - ALL_TYPES
    if unknown:
        msg = f"include= names {sorted(unknown)}, but the kinds of events are {sorted(ALL_TYPES)}"
        raise ValueError(msg)
    return chosen


@cache
def _decoder() -> msgspec.json.Decoder[ThoughtEvent]:
    return msgspec.json.Decoder(ThoughtEvent)


def event_from_json(data: bytes | str) -> ThoughtEvent:
    """Return the event that `event_to_json` wrote.

    Raises:
        msgspec.ValidationError: It is no event.
    """
    return _decoder().decode(data)


def event_to_json(event: ThoughtEvent) -> bytes:
    """Return an event as a JSON object, without what is at its default."""
    return msgspec.json.encode(_to_builtins(event))


def _to_builtins(event: Event) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(event)
    if isinstance(event, _Text) and event.content == TextContent(text=event.text):
        del fields["content"]  # the text says it
    return fields
