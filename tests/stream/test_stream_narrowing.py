"""Type checkers know an event by its class and by its `type`. What is asserted statically is run as well."""

from __future__ import annotations

from typing import Literal, assert_never, assert_type

from thinkwell import Message, PlanUpdate, Thought, ThoughtEvent, ToolDone, ToolStart, ToolUpdate
from thinkwell import events as ev


def describe(event: ThoughtEvent) -> str:  # noqa: C901 - a case for each kind
    """Narrow by class, and leave nothing out."""
    match event:
        case Thought() | Message():
            assert_type(event, Thought | Message)
            return assert_type(event.text, str)
        case ToolStart(id=id_, kind=kind):
            assert_type(kind, ev.ToolKind)
            return id_
        case ToolUpdate():
            assert_type(event.status, ev.ToolStatus | None)
            assert_type(event.content, tuple[ev.ToolContent, ...] | None)
            return event.id
        case ToolDone():
            assert_type(event.status, Literal["completed", "failed", "cancelled"])
            return event.status
        case PlanUpdate(entries=entries):
            assert_type(entries, tuple[ev.PlanEntry, ...])
            return ", ".join(entry.content for entry in entries)
        case ev.UsageUpdate(cost=cost):
            assert_type(cost, ev.Cost | None)
            return ""
        case (
            ev.UserMessage()
            | ev.Steered()
            | ev.BackgroundWork()
            | ev.AgentCycle()
            | ev.SubagentText()
            | ev.ModeUpdate()
            | ev.CommandsUpdate()
            | ev.ConfigUpdate()
            | ev.TryFailed()
        ):
            return ""
        case ev.SessionInfoUpdate() | ev.QuestionAsked() | ev.QuestionAnswered() | ev.ResultAttempt():
            return ""
        case ev.PhaseChanged() | ev.ToolsSeen() | ev.TurnStarted() | ev.TurnEnded() | ev.Notice():
            return ""
        case ev.QuestionVerdict() | ev.QuestionCompleted() | ev.Stalled() | ev.SessionOpened():
            return ""
        case ev.Report(kind=kind) | ev.Unhandled(kind=kind):
            return assert_type(kind, str)
        case ev.Compaction() | ev.UnknownUpdate() | ev.Dropped() | ev.ReplayStarted() | ev.ReplayEnded():
            return ""
        case _:
            assert_never(event)


def tag(event: ThoughtEvent) -> str | None:
    """Narrow by `type`."""
    if event.type == "thought":
        return assert_type(event, Thought).text
    if event.type == "tool_done":
        return assert_type(event, ToolDone).status
    return None


def path(content: ev.ToolContent) -> str:
    match content:
        case ev.DiffContent():
            return content.path
        case ev.TerminalContent():
            return content.terminal_id
        case ev.BlockContent(content=block):
            assert_type(block, ev.ContentBlock)
            return ""
        case _:
            assert_never(content)


def test_match__by_class() -> None:
    assert describe(Message(text="Hi")) == "Hi"
    assert describe(ToolStart(id="t")) == "t"
    assert describe(ToolDone(id="t", status="failed")) == "failed"
    assert (
        describe(PlanUpdate(entries=(ev.PlanEntry(content="one"), ev.PlanEntry(content="two")))) == "one, two"
    )
    assert describe(ev.Dropped(count=1)) == ""


def test_if__by_type() -> None:
    assert tag(Thought(text="Hm")) == "Hm"
    assert tag(ToolDone(id="t", status="failed")) == "failed"
    assert tag(PlanUpdate()) is None


def test_match__content() -> None:
    assert path(ev.DiffContent(path="/a", new_text="")) == "/a"
    assert path(ev.TerminalContent(terminal_id="x")) == "x"
    assert path(ev.BlockContent(content=ev.TextContent(text=""))) == ""
