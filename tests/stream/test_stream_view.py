"""`RunView`: what a run comes to, at any moment."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import FrozenInstanceError, fields
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stream.counting import calls_made
from stream.strategies import EVENTS

from thinkwell import (
    Message,
    PlanEntry,
    PlanUpdate,
    ResultInvalid,
    RunView,
    Thought,
    ThoughtEvent,
    ToolDone,
    ToolStart,
    ToolUpdate,
    ToolView,
    ViewReducer,
    event_from_json,
)
from thinkwell import events as ev

if TYPE_CHECKING:
    from collections.abc import Iterable


def view(*events: ThoughtEvent) -> RunView:
    reducer = ViewReducer()
    for event in events:
        reducer.apply((event,))
    return reducer.snapshot()


def says(text: str, message_id: str | None = None) -> Message:
    return Message(text=text, message_id=message_id)


STEPS = (PlanEntry(content="look"), PlanEntry(content="leap"))
DIFF = ev.DiffContent(path="/a", new_text="b")

BOUNDARIES: list[ThoughtEvent] = [
    Thought(text="hm"),
    ToolStart(id="t"),
    ToolUpdate(id="t"),
    ToolDone(id="t", status="completed"),
    PlanUpdate(),
    ev.UserMessage(text="echo"),
]
IN_BETWEEN: list[ThoughtEvent] = [
    ev.UsageUpdate(used=1, size=2),
    ev.ModeUpdate(mode_id="m"),
    ev.CommandsUpdate(),
    ev.ConfigUpdate(),
    ev.SessionInfoUpdate(changes=ev.SessionChanges()),
    ev.QuestionAnswered(id="q", choice=None, by="cancel", why=""),
    ev.PhaseChanged(phase="responding"),
    ev.Notice(severity="info", title="t"),
    ev.Compaction(id="c", raw={}),
    ev.UnknownUpdate(kind="k", raw={}),
    ev.Dropped(count=1),
]


# Text


def test_messages__pieces_without_an_id_are_one() -> None:
    shown = view(says("a"), says("b"), says("c"))
    assert (shown.text, shown.messages) == ("abc", ("abc",))


@pytest.mark.parametrize("event", BOUNDARIES, ids=lambda event: event.type)
def test_messages__other_things_of_the_conversation_part_those_without_an_id(event: ThoughtEvent) -> None:
    shown = view(says("a"), event, says("b"))
    assert (shown.text, shown.messages) == ("ab", ("a", "b"))


@pytest.mark.parametrize("event", IN_BETWEEN, ids=lambda event: event.type)
def test_messages__news_of_the_session_part_none(event: ThoughtEvent) -> None:
    assert view(says("a"), event, says("b")).messages == ("ab",)


def test_messages__a_changed_id_parts_and_the_same_id_joins_across_everything() -> None:
    shown = view(says("a", "1"), ToolStart(id="t"), says("b", "1"), says("c", "2"), says("d", "1"), says("e"))
    assert shown.messages == ("abd", "c", "e")
    assert shown.text == "abdce"


def test_messages__an_id_and_none_are_different_messages() -> None:
    assert view(says("a"), says("b", "1"), says("c"), says("d", "1")).messages == ("a", "bd", "c")


def test_messages__empty_pieces_are_none() -> None:
    image = ev.ImageContent(data="", mime_type="image/png")
    assert view(says(""), Message(content=image), says("", "1")).messages == ()
    assert view(says("a"), ToolStart(id="t"), says("")).messages == ("a",)
    assert view(says("a", "1"), says("", "1"), says("b", "1")).messages == ("ab",)


def test_messages__a_turn_that_starts_begins_a_new_one() -> None:
    events = (says("a"), says("b", "1"), Thought(text="c", message_id="1"), Thought(text="d"))
    reducer = ViewReducer()
    assert reducer.last_message() == ""
    for number in (2, 3):
        reducer.apply((*events, ev.TurnStarted(number=number)))
        assert reducer.last_message() == "b"
    shown = reducer.snapshot()
    assert (shown.messages, shown.thought_blocks) == (("a", "b", "a", "b"), ("c", "d", "c", "d"))
    assert shown.turns == 3


def test_thoughts__are_one_text_and_the_users_words_are_no_message() -> None:
    shown = view(Thought(text="a", message_id="1"), ev.UserMessage(text="x"), Thought(text="b"))
    assert (shown.thoughts, shown.text) == ("ab", "")


# Tools


def test_tools__news_are_merged_and_none_changes_nothing() -> None:
    shown = view(
        ToolStart(id="t", title="Edit", kind="edit", input={"a": 1}, name="edit", at=1, content=(DIFF,)),
        ToolUpdate(id="t", status="in_progress", locations=(ev.Location(path="/a"),), at=2),
        ToolUpdate(id="t"),
    ).tools["t"]
    assert (shown.title, shown.kind, shown.name, shown.status) == ("Edit", "edit", "edit", "in_progress")
    assert (shown.input, shown.content, shown.locations) == ({"a": 1}, (DIFF,), (ev.Location(path="/a"),))
    assert (shown.started_at, shown.ended_at) == (1, None)


def test_tools__what_is_given_replaces_and_nothing_clears() -> None:
    shown = view(
        ToolStart(id="t", title="Edit", content=(DIFF,), locations=(ev.Location(path="/a"),)),
        ToolUpdate(
            id="t",
            title="",
            kind="move",
            input=2,
            output=3,
            content=(),
            locations=(),
            name="n",
            status="failed",
        ),
    ).tools["t"]
    assert (shown.title, shown.kind, shown.input, shown.output) == ("", "move", 2, 3)
    assert (shown.content, shown.locations, shown.name, shown.status) == ((), (), "n", "failed")


def test_tools__the_end_has_the_last_word_and_a_correction_after_it_too() -> None:
    events: list[ThoughtEvent] = [
        ToolStart(id="t", title="Edit", kind="edit", input=1, at=1),
        ToolDone(id="t", status="cancelled", content=(DIFF,), output="out", at=2),
    ]
    done = view(*events).tools["t"]
    assert (done.status, done.content, done.output, done.title) == ("cancelled", (DIFF,), "out", "Edit")
    assert (done.kind, done.input, done.started_at, done.ended_at) == ("edit", 1, 1, 2)
    corrected = view(*events, ToolUpdate(id="t", status="completed", at=3)).tools["t"]
    assert (corrected.status, corrected.content, corrected.ended_at) == ("completed", (DIFF,), 2)


@pytest.mark.parametrize(
    ("event", "status"),
    [(ToolUpdate(id="t", at=3), "pending"), (ToolDone(id="t", at=3, status="failed"), "failed")],
)
def test_tools__one_that_was_never_announced_is_shown(event: ThoughtEvent, status: str) -> None:
    shown = view(event).tools["t"]
    assert (shown.status, shown.started_at, shown.kind) == (status, 3, "other")


def test_tools__announced_again_they_keep_their_place_and_their_time() -> None:
    shown = view(
        ToolStart(id="a", at=1), ToolStart(id="b", at=2), ToolStart(id="a", title="again", at=3)
    ).tools
    assert list(shown) == ["a", "b"]
    assert (shown["a"].title, shown["a"].started_at) == ("again", 1)


def test_tools__an_id_that_is_used_again_shows_the_new_call_in_the_old_place() -> None:
    shown = view(
        ToolStart(id="a", input=1, at=1),
        ToolDone(id="a", status="completed", output=2, content=(DIFF,), at=2),
        ToolStart(id="b", at=3),
        ToolStart(id="a", title="again", at=4),
    )
    again = shown.tools["a"]
    assert [item.id for item in shown.timeline] == ["a", "b"]
    assert (again.title, again.status, again.started_at, again.ended_at) == ("again", "pending", 4, None)
    assert (again.input, again.output, again.content) == (None, None, ())


# The rest


def test_plans__each_id_has_its_own_and_plan_is_the_main_one() -> None:
    other = PlanUpdate(id="x", entries=STEPS[:1])
    assert view(other).plan == STEPS[:1]
    shown = view(other, PlanUpdate(entries=STEPS), PlanUpdate(id="y", markdown="# y"))
    assert shown.plan == STEPS
    assert list(shown.plans) == ["x", "main", "y"]
    assert shown.plans["y"].markdown == "# y"


def test_plans__are_replaced_emptied_and_removed() -> None:
    first = PlanUpdate(id="x", entries=STEPS)
    assert view(first, PlanUpdate(id="x", entries=())).plan == ()
    assert view(first, PlanUpdate(id="y"), PlanUpdate(id="x", entries=STEPS[1:])).plan == STEPS[1:]
    assert view(first, PlanUpdate(id="x", removed=True), PlanUpdate(id="z", removed=True)).plans == {}


def test_usage__the_last_one_counts_and_the_cost_is_kept() -> None:
    cost = ev.Cost(amount=1.5, currency="EUR")
    assert view().usage is None
    assert view(ev.UsageUpdate(used=1, size=9)).usage == ev.UsageUpdate(used=1, size=9)
    costly = ev.UsageUpdate(used=1, size=9, cost=cost)
    assert view(costly, ev.UsageUpdate(used=2, size=9, seq=7)).usage == ev.UsageUpdate(
        used=2, size=9, seq=7, cost=cost
    )
    newer = ev.UsageUpdate(used=3, size=9, cost=ev.Cost(amount=2, currency="EUR"))
    assert view(costly, newer).usage == newer


def test_questions__are_shown_until_they_are_answered() -> None:
    yes = (ev.QuestionOption(id="y", name="Yes", kind="allow_once"),)
    asked = [
        ev.QuestionAsked(id=id_, title=id_, tool_id="t", options=yes, timeout=60, at=2.0) for id_ in "ab"
    ]
    answered = ev.QuestionAnswered(id="a", choice="allow_once", by="policy", why="")
    (open_one,) = view(*asked, answered, answered).questions
    assert (open_one.id, open_one.title, open_one.tool_id, open_one.options) == ("b", "b", "t", yes)
    assert (open_one.asks, open_one.asked_at, open_one.deadline) == ("permission", 2.0, 62.0)
    (form,) = view(ev.QuestionAsked(id="c", title="", asks="form", fields=())).questions
    assert (form.asks, form.deadline) == ("form", None)


def test_state__shows_the_last_of_each() -> None:
    commands = (ev.Command(name="help"),)
    shown = view(
        ev.PhaseChanged(phase="prompted"),
        ev.TurnStarted(number=1),
        ev.TurnEnded(number=1, stop_reason="end_turn"),
        ev.TurnStarted(number=2, reminder=True),
        ev.TurnEnded(number=2, stop_reason="refusal"),
        ev.ModeUpdate(mode_id="plan"),
        ev.CommandsUpdate(commands=commands),
        ev.Dropped(count=2),
        ev.Dropped(count=3),
        ev.PhaseChanged(phase="failed"),
    )
    assert (shown.phase, shown.turns, shown.stop_reason) == ("failed", 2, "refusal")
    assert (shown.mode, shown.commands, shown.dropped) == ("plan", commands, 5)


def test_state__at_the_beginning() -> None:
    assert view() == RunView()


# What a view is


@given(st.lists(EVENTS, max_size=20), st.data())
def test_snapshot__does_not_change_and_taking_it_changes_nothing(
    events: list[ThoughtEvent], data: st.DataObject
) -> None:
    looks = data.draw(st.sets(st.integers(0, 20)))
    looking, blind = ViewReducer(), ViewReducer()
    seen: list[tuple[RunView, str]] = []
    for index, event in enumerate(events):
        looking.apply((event,))
        blind.apply((event,))
        if index in looks:
            seen.append((taken := looking.snapshot(), repr(taken)))
    assert looking.snapshot() == blind.snapshot(None)
    assert [repr(taken) for taken, _ in seen] == [text for _, text in seen]


def test_snapshot__cannot_be_changed() -> None:
    shown: Any = view(ToolStart(id="t"), PlanUpdate())
    with pytest.raises(FrozenInstanceError):
        shown.text = "x"
    with pytest.raises(TypeError):
        shown.tools["u"] = shown.tools["t"]
    with pytest.raises(TypeError):
        del shown.plans["main"]
    with pytest.raises(AttributeError):
        shown.tools["t"].title = "x"


ERRORS = (None, ResultInvalid({"a": 1}, ["a: no"], 2), ValueError("no"))


@given(st.lists(EVENTS, max_size=20), st.sampled_from(ERRORS))
def test_snapshot__travels(events: list[ThoughtEvent], error: Exception | None) -> None:
    reducer = ViewReducer(agent="builtin", cwd="/tmp")
    reducer.apply(events)
    shown = reducer.snapshot(error)
    copies: list[Any] = [pickle.loads(pickle.dumps(shown)), copy.deepcopy(shown)]
    for copied in copies:
        assert copied == shown
        assert copied is not shown
        assert [*copied.tools] == [*shown.tools], "in their order"
        with pytest.raises(TypeError):
            copied.tools["u"] = ToolView(id="u")
    plain = shown.to_json()
    assert json.loads(json.dumps(plain)) == plain
    assert [*plain] == [field.name for field in fields(RunView)]


def test_snapshot__as_json_is_as_deep_as_what_an_agent_may_send() -> None:
    deep = event_from_json(b'{"type":"tool_start","id":"t","input":%s%s}' % (b"[" * 400, b"]" * 400))
    reducer = ViewReducer()
    reducer.apply((deep, says("\ud800")))
    plain = reducer.snapshot().to_json()
    assert plain["text"] == "\ud800"
    assert str(plain["tools"]["t"]["input"]) == "[" * 400 + "]" * 400


def test_snapshot__differs_by_its_error() -> None:
    failed, other = (ViewReducer().snapshot(ValueError(text)) for text in ("no", "never"))
    assert failed == ViewReducer().snapshot(ValueError("no"))
    assert failed not in (other, ViewReducer().snapshot(), ViewReducer().snapshot(TypeError("no")), "no")


def test_snapshot__as_json_says_what_events_say_in_theirs() -> None:
    plan, start = PlanUpdate(entries=STEPS), ToolStart(id="t", input={"a": [1]}, content=(DIFF,))
    reducer = ViewReducer()
    reducer.apply((start, plan))
    plain = reducer.snapshot(ValueError("no")).to_json()
    events = [json.loads(ev.event_to_json(event)) for event in (start, plan)]
    tool = plain["tools"]["t"]
    assert [plain["plans"]["main"], tool["input"], tool["content"]] == [
        events[1],
        events[0]["input"],
        events[0]["content"],
    ]
    assert plain["error"] == {"name": "ValueError", "message": "no"}


def mixed(count: int) -> Iterable[ThoughtEvent]:
    """Return chunks of few messages, with a tool that reports on the way."""
    for number in range(count):
        if number % 10:
            yield says("word", "1")
        else:
            yield ToolUpdate(id=f"t{number % 3}", title=str(number))


@pytest.mark.long
@pytest.mark.parametrize("every", [1, 1000, 10**9])
def test_cost__grows_with_the_events_and_not_with_their_square(every: int) -> None:
    def reduce(count: int) -> None:
        reducer = ViewReducer()
        for number, event in enumerate(mixed(count)):
            reducer.apply((event,))
            if not number % every:
                reducer.snapshot()
        reducer.snapshot()

    few, many = calls_made(lambda: reduce(1000)), calls_made(lambda: reduce(10_000))
    assert many < 10.5 * few


@pytest.mark.long
def test_cost__a_long_unread_run_is_reduced_in_a_call_or_two_per_event() -> None:
    reducer = ViewReducer()
    events = [says("word") for _ in range(20_000)]

    def reduce() -> None:
        for event in events:
            reducer.apply((event,))

    assert calls_made(reduce) < 5 * len(events)
    assert len(reducer.snapshot().text) == 4 * len(events)
