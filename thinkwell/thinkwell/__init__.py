"""Typed streams of what a coding agent thinks, says, does and plans.

::

    async with open_agent() as agent:
        stream = agent.think(Review).text("Review this module:").quote(source).stream()
        async for event in stream:
            ...
        review = await stream.result
"""

from __future__ import annotations

from thinkwell._core.agent.agent_handle import Agent, open_agent
from thinkwell._core.agent.opening import Opening
from thinkwell._core.agent.runs import AgentStatistics, RunStatistics
from thinkwell._core.agent.session_handle import Session
from thinkwell._core.agent.terminal_login import login
from thinkwell._core.log.budget import Budget, Spent
from thinkwell._core.log.reducer import ViewReducer
from thinkwell._core.log.run_log import Buffer
from thinkwell._core.log.stream import ThoughtResult, ThoughtStream
from thinkwell._core.schema.output import JsonSchema
from thinkwell._core.session.history import HistoryMessage, HistoryTool, history_to_json
from thinkwell._core.session.state import SessionInfo, SessionMode, SessionUsage
from thinkwell._core.task.builder import Explanation, ThinkBuilder
from thinkwell._recording._replay import replay
from thinkwell._version import VERSION as __version__  # noqa: N811 - the usual name
from thinkwell.errors import (
    AgentClosed,
    AgentError,
    AgentExited,
    AgentNotFound,
    AgentReported,
    AgentStartFailed,
    AnswerInvalid,
    AnswerUnreadable,
    AuthMethod,
    BudgetExceeded,
    BufferOverflow,
    CapabilityMissing,
    LoginFailed,
    LoginRequired,
    McpServerError,
    MessageInvalid,
    PolicyError,
    ProfileError,
    QuestionNotOpen,
    QuestionsStopped,
    RecordedFailure,
    RecordingCut,
    RecordingError,
    RegistryError,
    ResultError,
    ResultInvalid,
    ResultMissing,
    ResultRefused,
    SessionClosed,
    SessionIdReused,
    SessionInUse,
    SessionNotOpened,
    SessionOpenTimeout,
    SessionUnusable,
    SkillError,
    ThinkwellError,
    ThoughtCancelled,
    ThoughtTimeout,
    ToolError,
    ToolsNotSeen,
    WrongEventLoop,
)
from thinkwell.events import (
    Message,
    OptionChoice,
    PlanEntry,
    PlanUpdate,
    SessionOption,
    Thought,
    ThoughtEvent,
    ToolDone,
    ToolStart,
    ToolUpdate,
    event_from_json,
    event_to_json,
)
from thinkwell.mcp_servers import McpHttp, McpServer, McpSse, McpStdio, load_mcp_servers
from thinkwell.permissions import Decision, PermissionMode, PermissionPolicy, Rule
from thinkwell.questions import (
    Answer,
    ChooseOption,
    FormField,
    FormQuestion,
    PermissionQuestion,
    Question,
    QuestionHandler,
    Reply,
    StopRun,
    UrlQuestion,
    wait_for_answer,
)
from thinkwell.skills import Skill, load_skill
from thinkwell.supervision import Supervisor, supervise
from thinkwell.tools import Tool, ToolContext, tool
from thinkwell.view import AnswerView, PhaseView, QuestionView, RunView, TimelineItem, TokenCounts, ToolView
from thinkwell.workspace import Workspace

__all__ = (
    "Agent",
    "AgentClosed",
    "AgentError",
    "AgentExited",
    "AgentNotFound",
    "AgentReported",
    "AgentStartFailed",
    "AgentStatistics",
    "Answer",
    "AnswerInvalid",
    "AnswerUnreadable",
    "AnswerView",
    "AuthMethod",
    "Budget",
    "BudgetExceeded",
    "Buffer",
    "BufferOverflow",
    "CapabilityMissing",
    "ChooseOption",
    "Decision",
    "Explanation",
    "FormField",
    "FormQuestion",
    "HistoryMessage",
    "HistoryTool",
    "JsonSchema",
    "LoginFailed",
    "LoginRequired",
    "McpHttp",
    "McpServer",
    "McpServerError",
    "McpSse",
    "McpStdio",
    "Message",
    "MessageInvalid",
    "Opening",
    "OptionChoice",
    "PermissionMode",
    "PermissionPolicy",
    "PermissionQuestion",
    "PhaseView",
    "PlanEntry",
    "PlanUpdate",
    "PolicyError",
    "ProfileError",
    "Question",
    "QuestionHandler",
    "QuestionNotOpen",
    "QuestionView",
    "QuestionsStopped",
    "RecordedFailure",
    "RecordingCut",
    "RecordingError",
    "RegistryError",
    "Reply",
    "ResultError",
    "ResultInvalid",
    "ResultMissing",
    "ResultRefused",
    "Rule",
    "RunStatistics",
    "RunView",
    "Session",
    "SessionClosed",
    "SessionIdReused",
    "SessionInUse",
    "SessionInfo",
    "SessionMode",
    "SessionNotOpened",
    "SessionOpenTimeout",
    "SessionOption",
    "SessionUnusable",
    "SessionUsage",
    "Skill",
    "SkillError",
    "Spent",
    "StopRun",
    "Supervisor",
    "ThinkBuilder",
    "ThinkwellError",
    "Thought",
    "ThoughtCancelled",
    "ThoughtEvent",
    "ThoughtResult",
    "ThoughtStream",
    "ThoughtTimeout",
    "TimelineItem",
    "TokenCounts",
    "Tool",
    "ToolContext",
    "ToolDone",
    "ToolError",
    "ToolStart",
    "ToolUpdate",
    "ToolView",
    "ToolsNotSeen",
    "UrlQuestion",
    "ViewReducer",
    "Workspace",
    "WrongEventLoop",
    "__version__",
    "event_from_json",
    "event_to_json",
    "history_to_json",
    "load_mcp_servers",
    "load_skill",
    "login",
    "open_agent",
    "replay",
    "supervise",
    "tool",
    "wait_for_answer",
)
