"""Tool calls: the agent's actions, as it reports them."""

from typing import Annotated, Literal, TypeAlias, get_args

from thinkwell_acp.schema._base import Adapt, Extensible, JsonValue, UInt, tag_of
from thinkwell_acp.schema.content import ContentBlock

__all__ = (
    "Content",
    "Diff",
    "Terminal",
    "ToolCall",
    "ToolCallContent",
    "ToolCallFields",
    "ToolCallId",
    "ToolCallLocation",
    "ToolCallPatch",
    "ToolCallStatus",
    "ToolCallUpdate",
    "ToolKind",
)

ToolCallId: TypeAlias = str
"""The id of a tool call within its session."""

ToolKind: TypeAlias = Literal[
    "read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"
]
"""The kind of a tool; an unknown kind is read as `other`."""

ToolCallStatus: TypeAlias = Literal["pending", "in_progress", "completed", "failed"]
"""The status of a tool call."""

_KINDS = frozenset(get_args(ToolKind))
_BLOCK_TYPES = frozenset(("text", "image", "audio", "resource_link", "resource"))


def _known_kind(raw: JsonValue) -> JsonValue:
    return "other" if isinstance(raw, str) and raw not in _KINDS else raw


def _wrap_block(raw: JsonValue) -> JsonValue:
    """Wrap a bare content block, which some agents (and an example in the protocol's pages) write here."""
    return {"type": "content", "content": raw} if tag_of(raw, "type") in _BLOCK_TYPES else raw


class Content(Extensible, frozen=True, kw_only=True, tag_field="type", tag="content"):
    """A content block that a tool call produced."""

    content: ContentBlock


class Diff(Extensible, frozen=True, kw_only=True, tag_field="type", tag="diff"):
    """A change of one file.

    Attributes:
        path: absolute.
        old_text: `None` for a new file.
    """

    path: str
    new_text: str
    old_text: str | None = None


class Terminal(Extensible, frozen=True, kw_only=True, tag_field="type", tag="terminal"):
    """The output of a terminal that the client created with `terminal/create`."""

    terminal_id: str


ToolCallContent: TypeAlias = Content | Diff | Terminal
"""The content of a tool call, distinguished by `type`."""

_Contents: TypeAlias = tuple[Annotated[ToolCallContent, Adapt(_wrap_block)], ...]
_Kind: TypeAlias = Annotated[ToolKind, Adapt(_known_kind)]


class ToolCallLocation(Extensible, frozen=True, kw_only=True):
    """A file that a tool call works on.

    Attributes:
        path: absolute.
        line: counted from 1.
    """

    path: str
    line: UInt | None = None


class ToolCallFields(Extensible, frozen=True, kw_only=True):
    """The fields of a complete tool call."""

    tool_call_id: ToolCallId
    title: str
    name: str | None = None
    kind: _Kind = "other"
    status: ToolCallStatus = "pending"
    content: _Contents = ()
    locations: tuple[ToolCallLocation, ...] = ()
    raw_input: JsonValue = None
    raw_output: JsonValue = None


class ToolCallPatch(Extensible, frozen=True, kw_only=True):
    """The fields of a change to a tool call: `None` leaves a field unchanged, an array replaces the array."""

    tool_call_id: ToolCallId
    title: str | None = None
    name: str | None = None
    kind: _Kind | None = None
    status: ToolCallStatus | None = None
    content: _Contents | None = None
    locations: tuple[ToolCallLocation, ...] | None = None
    raw_input: JsonValue = None
    raw_output: JsonValue = None


class ToolCall(ToolCallFields, frozen=True, kw_only=True):
    """A tool call outside `session/update`."""


class ToolCallUpdate(ToolCallPatch, frozen=True, kw_only=True):
    """A change to a tool call outside `session/update`, as in a permission request."""
