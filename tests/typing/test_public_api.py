"""The public names: frozen, complete, and nothing beside them."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, get_args, get_overloads

import pytest

import thinkwell
import thinkwell_acp
import thinkwell_acp.mcp
from thinkwell import events

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAMS = (
    "thinkwell.agents.program",
    "thinkwell.doctor.program",
    "thinkwell_acp.mcp.guard",
    "thinkwell_acp.mcp.shim",
)

THINKWELL = """
    Agent AgentClosed AgentError AgentExited AgentNotFound AgentReported AgentStartFailed AgentStatistics
    AgentView Answer AnswerInvalid AnswerUnreadable AnswerView AuthMethod AuthStatus Budget
    BudgetExceeded Buffer BufferOverflow CapabilityMissing ChooseOption ContextFull Decision Draft
    Explanation FormField FormQuestion HistoryMessage HistoryTool Injected JsonSchema LoginExpired
    LoginFailed LoginRequired McpHttp McpServer McpServerError McpSse McpStdio Message MessageInvalid
    ModelNotFound ModelNotOffered Opening OptionChoice Outcome Outcomes Overloaded PermissionMode
    PermissionPolicy PermissionQuestion PhaseView PlanEntry PlanUpdate PolicyError ProfileError Provider
    Question QuestionHandler QuestionNotOpen QuestionView QuestionsStopped Queued QuotaExhausted
    RecordedFailure RecordingCut RecordingError Refused RegistryError Reply ResultError ResultInvalid
    ResultMissing ResultRefused ResultStoreError Retry Rule RunEnded RunOptions RunStatistics RunView
    Session SessionClosed SessionIdReused SessionInUse SessionInfo SessionMode SessionNotOpened
    SessionOpenTimeout SessionOption SessionUnusable SessionUsage Skill SkillError Spent
    SteeringUnsupported StopRun Supervisor ThinkBuilder ThinkwellError Thought ThoughtCancelled
    ThoughtEvent ThoughtResult ThoughtStream ThoughtTimeout TimelineItem TokenCounts Tool ToolContext
    ToolDone ToolError ToolStart ToolUpdate ToolView ToolsNotSeen UrlQuestion ViewReducer Workspace
    WrongEventLoop __version__ event_from_json event_to_json history_to_json load_mcp_servers load_skill
    login open_agent replay supervise think tool wait_for_answer
"""
THINKWELL_ACP = """
    AcpError AgentHandler AgentSide CapabilityMissing Client ClientHandler ConnectionBroken ConnectionClosed
    ConnectionEnded DecodeError FrameTooLong MemoryTransport ProcessExited ProgramNotFound ProgramNotStarted
    RpcError StdioTransport Transport VersionMismatch connect memory_transport_pair own_stdio serve_agent
    stdio_transport
"""
CHANNELS = """
    AgentResponded AskingChannel CapableChannel Channel ChannelCapabilities ChannelChoice ChannelCounts
    ChannelQuestion ConfiguredChannel ConversationBusy CountingChannel Delivery DeliveryError DeliveryFailed
    DeliveryMetrics DeliverySettings DeliveryStatus DraftingChannel HtmlChannel MessageRouter
    NotifyingChannel OutcomeChannel RouterClosed RouterEvent StoppingChannel StreamingChannel
    TerminalChannel ThinkingChannel TypingChannel UserMessageReceived deliver
"""
TELEGRAM = """
    BotCommand BotUser CallbackQuery Chat ChatAddress ForceReply IncomingMessage InlineButton InlineKeyboard
    Message MessageGenerationStopped Messages Person RepliedMessage Sender TelegramAnswerInvalid TelegramApi
    TelegramChannel TelegramConflict TelegramError TelegramForbidden TelegramNetworkError TelegramRefused
    TelegramServerError TelegramThrottled TelegramUnauthorized Update serve
"""
TRIALS = """
    AgentSummary Candidate ChangeStat Changes ChangesConflict Check CheckError Command DirtyTree Estimate
    Forecast Input Judge NonePassed OpenWorktree Pace PlanError PlanFile Ready Report Repository Spent
    Status StoreError Table Trial Verdict WorkerFailed Worktree WorktreeError pass_at_k read_plan
    run_check serve_worker trials
"""
MCP = """
    AcpToolHost CallContext CallTool HttpLimits HttpToolHost McpError ShimToolHost ToolOutput ToolServer
    ToolSpec
"""


def public_modules() -> Iterator[str]:
    for package in (thinkwell, thinkwell_acp):
        yield package.__name__
        for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            parts = info.name.split(".")
            if not any(part.startswith("_") for part in parts) and not info.name.startswith(PROGRAMS):
                yield info.name


@cache
def modules() -> dict[str, ModuleType]:
    """Import all of them."""
    return {name: importlib.import_module(name) for name in public_modules()}


def test_the_names_of_the_packages_are_frozen() -> None:
    for module, names in {
        "thinkwell": THINKWELL,
        "thinkwell.builtin": "BuiltinAgent",
        "thinkwell.channels": CHANNELS,
        "thinkwell.channels.telegram": TELEGRAM,
        "thinkwell.trials": TRIALS,
        "thinkwell_acp": THINKWELL_ACP,
        "thinkwell_acp.mcp": MCP,
    }.items():
        assert modules()[module].__all__ == tuple(names.split()), module


def test_every_public_module_says_what_is_public() -> None:
    for name, module in modules().items():
        assert type(vars(module).get("__all__")) is tuple, name
        names: tuple[str, ...] = vars(module)["__all__"]
        assert len(set(names)) == len(names), name
        for public in names:
            assert hasattr(module, public), (name, public)


def test_nothing_public_is_left_out() -> None:
    for name, module in modules().items():
        for attribute, value in vars(module).items():
            if attribute.startswith("_") or attribute in module.__all__:
                continue
            if hasattr(module, "__path__"):
                known = isinstance(value, ModuleType) or attribute in ("annotations", "TYPE_CHECKING")
                assert known, (name, attribute)
            elif inspect.isclass(value) or inspect.isfunction(value):
                assert value.__module__ != name, (name, attribute)


def test_a_name_that_does_not_exist() -> None:
    with pytest.raises(AttributeError, match="Nothing"):
        _ = thinkwell_acp.mcp.Nothing


def signatures() -> Iterator[tuple[str, Any]]:
    """Every public function and method of the product with its annotations."""
    for name, module in modules().items():
        if not name.startswith("thinkwell."):
            continue
        for public in module.__all__:
            value = getattr(module, public)
            if inspect.isfunction(value):
                yield f"{name}.{public}", value
    for public in thinkwell.__all__:
        value = getattr(thinkwell, public)
        if inspect.isfunction(value):
            yield public, value
        elif inspect.isclass(value):
            for attribute, member in vars(value).items():
                function = member.fget if isinstance(member, property) else member
                if not attribute.startswith("_") and inspect.isfunction(function):
                    yield f"{public}.{attribute}", function


def test_no_any_in_public_signatures() -> None:
    found = dict(signatures())
    assert len(found) > 100
    for name, function in found.items():
        # An implementation behind overloads is not what type checkers see.
        for seen in get_overloads(function) or [inspect.unwrap(function)]:
            for parameter, annotation in seen.__annotations__.items():
                assert isinstance(annotation, str), name
                words = annotation.replace("[", " ").replace("]", " ").replace(",", " ").split()
                assert "Any" not in words, (name, parameter, annotation)


def test_json_is_the_one_name_for_any() -> None:
    assert events.JsonValue is Any
    assert get_args(thinkwell.PermissionMode) == ("deny", "ask", "allow")
