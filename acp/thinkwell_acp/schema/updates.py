"""The agent's reports while it works: the variants of `session/update`."""

from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias, get_args

from msgspec import field

from thinkwell_acp.schema._base import (
    UNSET,
    Alias,
    Catch,
    Extensible,
    JsonObject,
    JsonValue,
    Lenient,
    Model,
    OfSession,
    Opaque,
    UInt,
    UnsetType,
    tag_of,
)
from thinkwell_acp.schema.config import SessionConfigOption, SessionModeId
from thinkwell_acp.schema.content import ContentBlock
from thinkwell_acp.schema.plan import PlanEntry, PlanId, PlanUpdateContent
from thinkwell_acp.schema.tools import ToolCallFields, ToolCallPatch

__all__ = (
    "AgentMessageChunk",
    "AgentPlanUpdate",
    "AgentThoughtChunk",
    "AvailableCommand",
    "AvailableCommandInput",
    "AvailableCommandsUpdate",
    "CompactionId",
    "CompactionStatus",
    "CompactionSummaryChunk",
    "CompactionUpdate",
    "ConfigOptionUpdate",
    "ContentChunk",
    "Cost",
    "CurrentModeUpdate",
    "InvalidUpdate",
    "KnownUpdate",
    "MessageId",
    "NoticeSeverity",
    "NoticeUpdate",
    "PlanRemoved",
    "PlanUpdate",
    "SessionInfoUpdate",
    "SessionNotification",
    "SessionUpdate",
    "ToolCallProgress",
    "ToolCallStart",
    "UnknownUpdate",
    "UnstructuredCommandInput",
    "UsageUpdate",
    "UserMessageChunk",
)

MessageId: TypeAlias = str
"""The id of a message: chunks with the same id belong together."""

CompactionId: TypeAlias = str
"""The id of a compaction within its session."""

CompactionStatus: TypeAlias = Literal["in_progress", "completed", "failed", "cancelled"] | str
"""The status of a compaction; other values may come."""

NoticeSeverity: TypeAlias = Literal["info", "warning", "error"] | str
"""The severity of a notice; other values may come."""


class ContentChunk(Extensible, frozen=True, kw_only=True):
    """A piece of a message: one content block, to be appended."""

    content: ContentBlock
    message_id: MessageId | None = None


class UserMessageChunk(
    ContentChunk, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="user_message_chunk"
):
    """A piece of the user's text, from a replay or as an echo."""


class AgentMessageChunk(
    ContentChunk, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="agent_message_chunk"
):
    """A piece of the agent's answer."""


class AgentThoughtChunk(
    ContentChunk, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="agent_thought_chunk"
):
    """A piece of the agent's thinking."""


class ToolCallStart(ToolCallFields, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="tool_call"):
    """A complete tool call."""


class ToolCallProgress(
    ToolCallPatch, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="tool_call_update"
):
    """A change to a tool call."""


class AgentPlanUpdate(Extensible, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="plan"):
    """The complete plan: it replaces the one before."""

    entries: Lenient[tuple[PlanEntry, ...]]


class PlanUpdate(Extensible, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="plan_update"):
    """One of several plans, complete (unstable)."""

    plan: PlanUpdateContent


class PlanRemoved(Extensible, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="plan_removed"):
    """One of several plans is dropped (unstable)."""

    plan_id: PlanId


class UnstructuredCommandInput(Extensible, frozen=True, kw_only=True):
    """A command takes free text."""

    hint: str


AvailableCommandInput: TypeAlias = UnstructuredCommandInput
"""The input of a command."""


class AvailableCommand(Extensible, frozen=True, kw_only=True):
    """A command that can be prompted as `/name`. The name has no slash."""

    name: str
    description: str
    input: AvailableCommandInput | None = None


class AvailableCommandsUpdate(
    Extensible, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="available_commands_update"
):
    """All commands: they replace the ones before."""

    available_commands: Lenient[tuple[AvailableCommand, ...]]


class CurrentModeUpdate(
    Extensible, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="current_mode_update"
):
    """The session is in another mode. Some agents write the id as `modeId`."""

    current_mode_id: Annotated[SessionModeId, Alias("modeId")]


class ConfigOptionUpdate(
    Extensible, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="config_option_update"
):
    """All config options: they replace the ones before."""

    config_options: Lenient[tuple[SessionConfigOption, ...]]


class SessionInfoUpdate(
    Model, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="session_info_update"
):
    """A change to a session's entry in a list: `UNSET` leaves a field unchanged, `None` clears it."""

    title: str | UnsetType | None = UNSET
    updated_at: str | UnsetType | None = UNSET
    meta: JsonObject | UnsetType | None = field(default=UNSET, name="_meta")


class Cost(Extensible, frozen=True, kw_only=True):
    """The cost of the session so far.

    Attributes:
        currency: ISO 4217.
    """

    amount: float
    currency: str


class UsageUpdate(Extensible, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="usage_update"):
    """How much of the context window is used, in tokens."""

    used: UInt
    size: UInt
    cost: Cost | None = None


class NoticeUpdate(Extensible, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="notice"):
    """A message for the user now, which is not part of the history (unstable)."""

    severity: NoticeSeverity
    title: str
    description: str | None = None


class CompactionUpdate(Model, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="compaction_update"):
    """A change to a compaction of the history (unstable): `UNSET` leaves a field, `None` clears it."""

    compaction_id: CompactionId
    status: CompactionStatus
    summary: tuple[ContentBlock, ...] | UnsetType | None = UNSET
    error: str | UnsetType | None = UNSET
    meta: JsonObject | UnsetType | None = field(default=UNSET, name="_meta")


class CompactionSummaryChunk(
    Extensible, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="compaction_summary_chunk"
):
    """A piece of the summary that a compaction makes, to be appended (unstable)."""

    compaction_id: CompactionId
    content: ContentBlock


class UnknownUpdate(Opaque):
    """An update of an unknown kind.

    Attributes:
        raw: the update, with its `sessionUpdate`.
    """

    __slots__ = ()
    __match_args__ = ("raw",)
    raw: JsonObject


class InvalidUpdate(Opaque):
    """An update that cannot be read although its kind is known, or that has no kind.

    Attributes:
        kind: its `sessionUpdate`; empty if that is not a text.
        raw: the update as it came; `None` if there was none.
        error: the problem.
    """

    __slots__ = ("error", "kind")
    __match_args__ = ("kind", "raw", "error")
    kind: str
    error: str

    def __init__(self, kind: str, raw: JsonValue, error: str) -> None:
        super().__init__(raw)
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "error", error)

    def _fields(self) -> tuple[object, ...]:
        return self.kind, self.raw, self.error


KnownUpdate: TypeAlias = (
    UserMessageChunk
    | AgentMessageChunk
    | AgentThoughtChunk
    | ToolCallStart
    | ToolCallProgress
    | AgentPlanUpdate
    | PlanUpdate
    | PlanRemoved
    | AvailableCommandsUpdate
    | CurrentModeUpdate
    | ConfigOptionUpdate
    | SessionInfoUpdate
    | UsageUpdate
    | NoticeUpdate
    | CompactionUpdate
    | CompactionSummaryChunk
)
"""An update that was read, distinguished by `sessionUpdate`."""

KINDS: Final = frozenset(variant.__struct_config__.tag for variant in get_args(KnownUpdate))


def _unreadable(raw: JsonValue, error: str) -> UnknownUpdate | InvalidUpdate:
    kind = tag_of(raw, "sessionUpdate")
    if kind is None:
        return InvalidUpdate("", raw, error)
    return InvalidUpdate(kind, raw, error) if kind in KINDS else UnknownUpdate(raw)


if TYPE_CHECKING:
    SessionUpdate: TypeAlias = KnownUpdate | UnknownUpdate | InvalidUpdate
else:
    SessionUpdate = KnownUpdate


class SessionNotification(OfSession, frozen=True, kw_only=True):
    """Parameters of `session/update`. An unreadable update does not fail the notification."""

    update: Annotated[SessionUpdate, Catch(_unreadable)]
