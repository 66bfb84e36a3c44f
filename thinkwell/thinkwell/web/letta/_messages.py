"""The messages for Letta's clients, and their frames, as `letta-client` validates them.

They have the form of Letta's API, version 1, like the types of ``letta-client``: an id, a date and a
``message_type`` are required, arguments of a tool are JSON in a string, and unknown fields are accepted.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

StopReasonType: TypeAlias = Literal[
    "end_turn",
    "error",
    "llm_api_error",
    "max_steps",
    "max_tokens_exceeded",
    "cancelled",
    "requires_approval",
]
"""Why a run has ended: those of Letta's values that occur here."""


class _Message(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="message_type"):
    id: str
    """The same for all pieces of a message."""
    date: str
    """ISO 8601, with the time zone."""
    run_id: str | None = None
    seq_id: int | None = None
    """Its number within the run; ``None`` in lists."""
    otid: str | None = None
    """A second id; for a message of the user, the client's id."""
    step_id: str | None = None
    """The model output that it belongs to, up to the results of its tools: all its messages have the same."""


class UserMessage(_Message, frozen=True, kw_only=True, tag="user_message"):
    """A message of the user. In lists only."""

    content: str


class SystemMessage(_Message, frozen=True, kw_only=True, tag="system_message"):
    """A message of the user's program. In lists only."""

    content: str


class ReasoningMessage(_Message, frozen=True, kw_only=True, tag="reasoning_message"):
    """A thought of the agent."""

    reasoning: str
    source: Literal["reasoner_model"]


class AssistantMessage(_Message, frozen=True, kw_only=True, tag="assistant_message"):
    """A message of the agent."""

    content: str


class ToolCall(Struct, frozen=True, kw_only=True):
    """A tool call, or a piece of one, which may lack name and arguments."""

    name: str | None
    arguments: str | None
    """A JSON object."""
    tool_call_id: str


class _CallMessage(_Message, frozen=True, kw_only=True):
    tool_call: ToolCall
    tool_calls: tuple[ToolCall, ...] | ToolCall
    """The call in a list; if a message comes in pieces, the piece itself."""


class ToolCallMessage(_CallMessage, frozen=True, kw_only=True, tag="tool_call_message"):
    """A call of a tool."""


class ApprovalRequest(_CallMessage, frozen=True, kw_only=True, tag="approval_request_message"):
    """A call of a tool that waits for approval."""


class ToolReturn(Struct, frozen=True, kw_only=True, tag_field="type", tag="tool"):
    """The result of a tool."""

    tool_call_id: str
    status: Literal["success", "error"]
    tool_return: str


class ToolReturnMessage(_Message, frozen=True, kw_only=True, tag="tool_return_message"):
    """The result of a tool."""

    tool_call_id: str
    status: Literal["success", "error"]
    tool_return: str
    tool_returns: tuple[ToolReturn, ...]


class ApprovalGiven(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="approval"):
    """A decision about a call."""

    tool_call_id: str
    approve: bool
    reason: str | None = None


class ApprovalResponse(_Message, frozen=True, kw_only=True, tag="approval_response_message"):
    """The user's decisions about calls. In lists only."""

    approval_request_id: str
    approve: bool
    reason: str | None = None
    approvals: tuple[ApprovalGiven, ...] = ()


class Ping(_Message, frozen=True, kw_only=True, tag="ping"):
    """A sign of life."""


class StopReason(Struct, frozen=True, tag_field="message_type", tag="stop_reason"):
    """Why the run has ended. If it is missing, the stream was cut off."""

    stop_reason: StopReasonType


class UsageStatistics(Struct, frozen=True, kw_only=True, tag_field="message_type", tag="usage_statistics"):
    """The usage of the run, as far as the agent reports it."""

    completion_tokens: int = 0
    prompt_tokens: int = 0
    total_tokens: int = 0
    step_count: int = 0
    run_ids: tuple[str, ...] = ()
    cached_input_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    context_tokens: int | None = None


class ErrorMessage(Struct, frozen=True, kw_only=True, tag_field="message_type", tag="error_message"):
    """Why the run has failed."""

    error_type: str
    message: str
    detail: str
    run_id: str


Message: TypeAlias = (
    UserMessage
    | SystemMessage
    | ReasoningMessage
    | AssistantMessage
    | ToolCallMessage
    | ToolReturnMessage
    | ApprovalRequest
    | ApprovalResponse
)
"""A message of a conversation."""

Frame: TypeAlias = Message | Ping | StopReason | UsageStatistics | ErrorMessage
"""A frame of a stream."""

MESSAGE_TYPES: Final = frozenset(
    {
        "system_message",
        "user_message",
        "assistant_message",
        "reasoning_message",
        "hidden_reasoning_message",
        "tool_call_message",
        "tool_return_message",
        "approval_request_message",
        "approval_response_message",
        "summary_message",
        "event_message",
    }
)
"""The types that clients can filter by (Letta API, ``MessageType``). Some never occur."""

_encode: Final = msgspec.json.Encoder().encode


def tag_of(message: Message) -> str:
    """Return the type of a message."""
    return str(message.__struct_config__.tag)


def frame_as_sse(frame: Frame) -> bytes:
    """Encode a frame.

    Only errors have an ``event:`` line: the clients drop all other named events. An ``id:`` or a comment
    would end the Python client's stream.
    """
    name = b"event: error\n" if isinstance(frame, ErrorMessage) else b""
    return b"%sdata: %s\n\n" % (name, _encode(frame))
