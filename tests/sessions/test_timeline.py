"""`RunView.timeline`: what was said, thought and done, in the order in which it began."""

from __future__ import annotations

from typing import TYPE_CHECKING

from thinkwell import (
    Message,
    PlanUpdate,
    Thought,
    ThoughtEvent,
    ToolDone,
    ToolStart,
    ToolUpdate,
    ViewReducer,
)
from thinkwell import events as ev
from thinkwell.view import RunView, TimelineItem

if TYPE_CHECKING:
    from collections.abc import Iterable


def view(events: Iterable[ThoughtEvent], *, one_by_one: bool = False) -> RunView:
    reducer = ViewReducer()
    if one_by_one:
        for event in events:
            reducer.apply((event,))
            reducer.snapshot()
    else:
        reducer.apply(events)
    return reducer.snapshot()


def told(*events: ThoughtEvent) -> list[tuple[str, str]]:
    """Return the timeline with what it points at, looked at in both ways."""
    shown = view(events)
    assert view(events, one_by_one=True) == shown
    return [(item.kind, words(shown, item)) for item in shown.timeline]


def words(shown: RunView, item: TimelineItem) -> str:
    if item.kind == "turn":
        return str(item.index)
    if item.kind == "tool":
        assert item.id is not None
        return shown.tools[item.id].id
    blocks = {"user": shown.user_messages, "thought": shown.thought_blocks, "message": shown.messages}
    return blocks[item.kind][item.index]


def test_text_and_tools_stand_in_the_order_in_which_they_began() -> None:
    assert told(
        ev.TurnStarted(number=1),
        Thought(text="a"),
        Thought(text="b"),
        Message(text="c"),
        ToolStart(id="t"),
        Message(text="d"),
        ToolUpdate(id="t"),
        Message(text="e"),
        ToolDone(id="t", status="completed"),
        ev.UsageUpdate(used=1, size=2),
        Thought(text="f"),
        ev.TurnStarted(number=2, reminder=True),
        ToolDone(id="unseen", status="failed"),
    ) == [
        ("turn", "1"),
        ("thought", "ab"),
        ("message", "c"),
        ("tool", "t"),
        ("message", "d"),
        ("message", "e"),
        ("thought", "f"),
        ("turn", "2"),
        ("tool", "unseen"),
    ]


def test_thoughts_are_parted_as_messages_are() -> None:
    assert told(Thought(text="a"), PlanUpdate(), Thought(text="b")) == [("thought", "a"), ("thought", "b")]
    assert told(Thought(text="a"), ev.ModeUpdate(mode_id="m"), Thought(text="b")) == [("thought", "ab")]
    assert told(Thought(text="a"), Message(text=""), Thought(text="b")) == [
        ("thought", "a"),
        ("thought", "b"),
    ]
    assert told(
        Thought(text="a", message_id="1"),
        ToolStart(id="t"),
        Thought(text="b", message_id="1"),
        Thought(text="c"),
        Thought(text="d", message_id="1"),
        Thought(text="e"),
    ) == [("thought", "abd"), ("tool", "t"), ("thought", "c"), ("thought", "e")]


def test_a_thought_and_a_message_may_have_one_id() -> None:
    shown = view([Thought(text="a", message_id="1"), Message(text="b", message_id="1")])
    assert shown.timeline == (
        TimelineItem(kind="thought", index=0, id="1"),
        TimelineItem(kind="message", index=0, id="1"),
    )
    assert (shown.thoughts, shown.text) == ("a", "b")


def test_what_the_user_said_is_joined_until_something_else_begins() -> None:
    def user(text: str, message_id: str | None = None) -> ev.UserMessage:
        return ev.UserMessage(text=text, message_id=message_id)

    assert told(user("a"), user("b"), Message(text="c"), user(""), user("d")) == [
        ("user", "ab"),
        ("message", "c"),
        ("user", "d"),
    ]
    assert told(user("a", "1"), user("b"), user("c", "1"), user("d", "2")) == [
        ("user", "ac"),
        ("user", "b"),
        ("user", "d"),
    ]


def test_a_timeline_tells_when_each_part_began() -> None:
    shown = view(
        [
            ev.TurnStarted(number=1, at=0.5),
            Thought(text="a", at=1.0),
            Thought(text="b", at=2.0),
            ToolStart(id="t", at=3.0),
            ev.ToolDone(id="t", status="completed", at=4.0),
            Message(text="", at=5.0),
            Message(text="c", at=6.0),
            ev.UserMessage(text="d", at=7.0),
        ]
    )
    assert [(item.kind, item.at) for item in shown.timeline] == [
        ("turn", 0.5),
        ("thought", 1.0),
        ("tool", 3.0),
        ("message", 6.0),
        ("user", 7.0),
    ]


def test_a_timeline_does_not_change_later() -> None:
    reducer = ViewReducer()
    reducer.apply((Message(text="a"),))
    before = reducer.snapshot()
    reducer.apply((Message(text="b"), ToolStart(id="t")))
    assert before.timeline == (TimelineItem(kind="message"),)
    assert before.messages == ("a",)
