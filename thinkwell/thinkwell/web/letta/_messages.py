"""What Letta's clients read: messages, and the frames around them, as `letta-client` validates them.

The shapes are those of Letta's API, version 1, as the types of ``letta-client`` have them: an id, a date and
a ``message_type`` are required, arguments of a tool are JSON in a string, and unknown fields are accepted.
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
"""Why a run has ended: those of Letta's words that can be meant here."""


class _Message(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="message_type"):
    id: str
    """All pieces of a message have the same."""
    date: str
    """ISO 8601, with the time zone."""
    run_id: str | None = None
    seq_id: int | None = None
    """Number within the run; ``None`` in lists."""
    otid: str | None = None
    """Another name for the message; that of a user's message is the client's."""
    step_id: str | None = None
    """Of what the model says at once, up to what the tools return: all messages have the same."""


class UserMessage(_Message, frozen=True, kw_only=True, tag="user_message"):
    """What the user has said. In lists only."""

    content: str


class SystemMessage(_Message, frozen=True, kw_only=True, tag="system_message"):
    """What the user's program has said beside the user. In lists only."""

    content: str


class ReasoningMessage(_Message, frozen=True, kw_only=True, tag="reasoning_message"):
    """What the agent thinks aloud."""

    reasoning: str
    source: Literal["reasoner_model"]


class AssistantMessage(_Message, frozen=True, kw_only=True, tag="assistant_message"):
    """What the agent says."""

    content: str


class ToolCall(Struct, frozen=True, kw_only=True):
    """A call of a tool, or a piece of one: then name and arguments may be there or not."""

    name: str | None
    arguments: str | None
    """A JSON object."""
    tool_call_id: str


class _CallMessage(_Message, frozen=True, kw_only=True):
    tool_call: ToolCall
    tool_calls: tuple[ToolCall, ...] | ToolCall
    """The same, in a list; where a message comes in pieces, the piece itself."""


class ToolCallMessage(_CallMessage, frozen=True, kw_only=True, tag="tool_call_message"):
    """The agent calls a tool."""


class ApprovalRequest(_CallMessage, frozen=True, kw_only=True, tag="approval_request_message"):
    """The agent wants to call a tool, and waits for what is said to that."""


class ToolReturn(Struct, frozen=True, kw_only=True, tag_field="type", tag="tool"):
    """What a tool has returned."""

    tool_call_id: str
    status: Literal["success", "error"]
    tool_return: str


class ToolReturnMessage(_Message, frozen=True, kw_only=True, tag="tool_return_message"):
    """What a tool has returned."""

    tool_call_id: str
    status: Literal["success", "error"]
    tool_return: str
    tool_returns: tuple[ToolReturn, ...]


class ApprovalGiven(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="approval"):
    """What was said to a call."""

    tool_call_id: str
    approve: bool
    reason: str | None = None


class ApprovalResponse(_Message, frozen=True, kw_only=True, tag="approval_response_message"):
    """What the user has said to a call. In lists only."""

    approval_request_id: str
    approve: bool
    reason: str | None = None
    approvals: tuple[ApprovalGiven, ...] = ()


class Ping(_Message, frozen=True, kw_only=True, tag="ping"):
    """A sign of life."""


class StopReason(Struct, frozen=True, tag_field="message_type", tag="stop_reason"):
    """Why the run has ended. Where it is missing, a stream was cut off."""

    stop_reason: StopReasonType


class UsageStatistics(Struct, frozen=True, kw_only=True, tag_field="message_type", tag="usage_statistics"):
    """What the run has used, as far as the agent tells."""

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
"""What a conversation consists of."""

Frame: TypeAlias = Message | Ping | StopReason | UsageStatistics | ErrorMessage
"""What a stream consists of."""

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
"""What clients may ask for alone (Letta API, ``MessageType``). Some of it never comes."""

_encode: Final = msgspec.json.Encoder().encode


def frame_as_sse(frame: Frame) -> bytes:
    """Return a frame as it is sent.

    Nothing but errors has an ``event:`` line: the clients drop every other event that has a name. An ``id:``
    or a comment would end the one in Python.
    """
    name = b"event: error\n" if isinstance(frame, ErrorMessage) else b""
    return b"%sdata: %s\n\n" % (name, _encode(frame))
