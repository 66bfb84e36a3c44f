"""The public names of `thinkwell`."""

# ruff: noqa: F405 - errors among them

from __future__ import annotations

from thinkwell._core.agent.account import AuthStatus, Provider
from thinkwell._core.agent.agent_handle import Agent
from thinkwell._core.agent.open_agent import open_agent
from thinkwell._core.agent.opening import Opening
from thinkwell._core.agent.outcomes import Outcome, Outcomes, RunOptions
from thinkwell._core.agent.runs import AgentStatistics, RunStatistics
from thinkwell._core.agent.session_handle import Session
from thinkwell._core.agent.terminal_login import login
from thinkwell._core.log.budget import Budget, Spent
from thinkwell._core.log.drafts import Draft
from thinkwell._core.log.reducer import ViewReducer
from thinkwell._core.log.run_log import Buffer
from thinkwell._core.log.stream import Injected, Queued, Refused, ThoughtResult, ThoughtStream
from thinkwell._core.schema.output import JsonSchema
from thinkwell._core.session.history import HistoryMessage, HistoryTool, history_to_json
from thinkwell._core.session.state import SessionInfo, SessionMode, SessionUsage
from thinkwell._core.task.builder import Explanation, ThinkBuilder
from thinkwell._core.task.retry import Retry
from thinkwell._core.task.think import think
from thinkwell._recording._replay import replay
from thinkwell._version import VERSION as __version__  # noqa: N811 - the usual name
from thinkwell.errors import *  # noqa: F403 - all of them are public here, too
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
from thinkwell.view import (
    AgentView,
    AnswerView,
    PhaseView,
    QuestionView,
    RunView,
    TimelineItem,
    TokenCounts,
    ToolView,
)
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
    "AgentView",
    "Answer",
    "AnswerInvalid",
    "AnswerUnreadable",
    "AnswerView",
    "AuthMethod",
    "AuthStatus",
    "Budget",
    "BudgetExceeded",
    "Buffer",
    "BufferOverflow",
    "CapabilityMissing",
    "ChooseOption",
    "ContextFull",
    "Decision",
    "Draft",
    "Explanation",
    "FormField",
    "FormQuestion",
    "HistoryMessage",
    "HistoryTool",
    "Injected",
    "JsonSchema",
    "LoginExpired",
    "LoginFailed",
    "LoginRequired",
    "McpHttp",
    "McpServer",
    "McpServerError",
    "McpSse",
    "McpStdio",
    "Message",
    "MessageInvalid",
    "ModelNotFound",
    "ModelNotOffered",
    "Opening",
    "OptionChoice",
    "Outcome",
    "Outcomes",
    "Overloaded",
    "PermissionMode",
    "PermissionPolicy",
    "PermissionQuestion",
    "PhaseView",
    "PlanEntry",
    "PlanUpdate",
    "PolicyError",
    "ProfileError",
    "Provider",
    "Question",
    "QuestionHandler",
    "QuestionNotOpen",
    "QuestionView",
    "QuestionsStopped",
    "Queued",
    "QuotaExhausted",
    "RecordedFailure",
    "RecordingCut",
    "RecordingError",
    "Refused",
    "RegistryError",
    "Reply",
    "ResultError",
    "ResultInvalid",
    "ResultMissing",
    "ResultRefused",
    "ResultStoreError",
    "Retry",
    "Rule",
    "RunEnded",
    "RunOptions",
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
    "SteeringUnsupported",
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
    "think",
    "tool",
    "wait_for_answer",
)
