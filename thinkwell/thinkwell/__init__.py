"""Typed streams of what a coding agent thinks, says, does and plans.

::

    async with open_agent() as agent:
        stream = agent.think(Review).text("Review this module:").quote(source).stream()
        async for event in stream:
            ...
        review = await stream.result
"""

from __future__ import annotations

from thinkwell._agent import Agent, open_agent
from thinkwell._builder import Explanation, ThinkBuilder
from thinkwell._log import Buffer
from thinkwell._output import JsonSchema
from thinkwell._session import Session
from thinkwell._stream import ThoughtResult, ThoughtStream
from thinkwell._version import VERSION as __version__  # noqa: N811 - the usual name
from thinkwell.errors import (
    AgentClosed,
    AgentError,
    AgentExited,
    AgentNotFound,
    AgentReported,
    AgentStartFailed,
    AnswerUnreadable,
    BufferOverflow,
    CapabilityMissing,
    LoginRequired,
    ResultError,
    ResultInvalid,
    ResultMissing,
    ResultRefused,
    SessionUnusable,
    ThinkwellError,
    ThoughtCancelled,
    ThoughtTimeout,
    ToolError,
    ToolsNotSeen,
)
from thinkwell.events import (
    Message,
    PlanEntry,
    PlanUpdate,
    Thought,
    ThoughtEvent,
    ToolDone,
    ToolStart,
    ToolUpdate,
    event_from_json,
    event_to_json,
)
from thinkwell.permissions import PermissionMode
from thinkwell.questions import PermissionQuestion, QuestionHandler
from thinkwell.tools import Tool, ToolContext, tool
from thinkwell.view import RunView, ToolView

__all__ = (
    "Agent",
    "AgentClosed",
    "AgentError",
    "AgentExited",
    "AgentNotFound",
    "AgentReported",
    "AgentStartFailed",
    "AnswerUnreadable",
    "Buffer",
    "BufferOverflow",
    "CapabilityMissing",
    "Explanation",
    "JsonSchema",
    "LoginRequired",
    "Message",
    "PermissionMode",
    "PermissionQuestion",
    "PlanEntry",
    "PlanUpdate",
    "QuestionHandler",
    "ResultError",
    "ResultInvalid",
    "ResultMissing",
    "ResultRefused",
    "RunView",
    "Session",
    "SessionUnusable",
    "ThinkBuilder",
    "ThinkwellError",
    "Thought",
    "ThoughtCancelled",
    "ThoughtEvent",
    "ThoughtResult",
    "ThoughtStream",
    "ThoughtTimeout",
    "Tool",
    "ToolContext",
    "ToolDone",
    "ToolError",
    "ToolStart",
    "ToolUpdate",
    "ToolView",
    "ToolsNotSeen",
    "__version__",
    "event_from_json",
    "event_to_json",
    "open_agent",
    "tool",
)
