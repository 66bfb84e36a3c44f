"""What must hold between the wire and the events, on wires that are written by hand."""
# Private: pure functions from a wire to what is wrong with it; `simulate` shows only that something is.

from __future__ import annotations

import json
from typing import Any, Literal

import pytest

from thinkwell import AgentExited
from thinkwell import events as ev
from thinkwell.testing import Fault, Passed
from thinkwell.testing._invariants import Wire, answers_missing, order_broken, shown, told

Json = dict[str, Any]


def chunk(text: str) -> Json:
    return {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}


def wire(*messages: tuple[str, Any]) -> Wire:
    """Return a wire; each message takes a second."""
    passed: list[Passed] = []
    for at, (what, value) in enumerate(messages, 1):
        way: Literal["in", "out"] = "in"
        message: Json
        match what:
            case "prompt":
                way = "out"
                params: Json = {"sessionId": "s", "prompt": [{"type": "text", "text": value}]}
                message = {"id": value, "method": "session/prompt", "params": params}
            case "end":
                message = {"id": value, "result": {"stopReason": "end_turn"}}
            case "cancel":
                way = "out"
                message = {"method": "session/cancel", "params": {"sessionId": value}}
            case "update":
                params = {"sessionId": "s", "update": chunk(value)}
                message = {"method": "session/update", "params": params}
            case "ask":
                message = {"id": value, "method": "session/request_permission", "params": {}}
            case _:
                way = "out"
                message = {"id": value, "result": {}}
        passed.append(Passed(at=at, way=way, line=json.dumps(message).encode()))
    return Wire(passed)


def broken(
    of: Wire,
    mark: str,
    said: str,
    *,
    alone: bool = False,
    error: Exception | None = None,
    ended_at: float = 100,
) -> str | None:
    """Return what is wrong with a run that said these words."""
    tokens = [("message", text) for text in said.split()]
    others = [prompt.text for prompt in of.prompts if mark not in prompt.text and prompt.text != "reminder"]
    prompts = of.prompts_of("s", mark, others)
    return order_broken(of, prompts, tokens, alone=alone, error=error, ended_at=ended_at)


TWO = (
    ("update", "early"),
    ("prompt", "one"),
    ("update", "a"),
    ("end", "one"),
    ("update", "late"),
    ("prompt", "two"),
    ("update", "b"),
    ("end", "two"),
    ("update", "later"),
)


@pytest.mark.parametrize(
    ("mark", "said"),
    [("one", "a"), ("one", "early a"), ("two", "b"), ("two", "late b")],
)
def test_a_run_has_what_came_in_its_turn(mark: str, said: str) -> None:
    assert broken(wire(*TWO), mark, said) is None


@pytest.mark.parametrize(
    ("mark", "said"),
    [
        ("one", ""),
        ("one", "a late"),
        ("one", "early"),
        ("two", "a late b"),
        ("two", "late"),
        ("two", "b later"),
    ],
)
def test_anything_else_is_wrong(mark: str, said: str) -> None:
    assert "the agent told" in (broken(wire(*TWO), mark, said) or "")


def test_a_session_of_its_own_gives_a_run_what_came_early_too() -> None:
    alone = wire(*TWO[:4])
    assert broken(alone, "one", "early a", alone=True) is None
    assert broken(alone, "one", "a", alone=True) is not None


def test_a_reminder_is_of_the_same_run() -> None:
    reminded = wire(*TWO[:5], ("prompt", "reminder"), ("update", "c"), ("end", "reminder"), *TWO[5:])
    assert broken(reminded, "one", "a late c") is None
    assert broken(reminded, "one", "a") is not None
    assert broken(reminded, "two", "b") is None


def test_a_run_that_was_given_up_need_not_have_all() -> None:
    calm = (("update", "x"),) * 10
    late = wire(*TWO[:3], ("cancel", "s"), *calm, ("end", "one"))
    assert broken(late, "one", "a") is None
    assert broken(late, "one", "x") is not None
    soon = wire(*TWO[:3], ("cancel", "s"), ("update", "x"), ("end", "one"))
    assert broken(soon, "one", "a") is not None
    assert broken(soon, "one", "a x") is None
    assert broken(wire(*TWO), "one", "", ended_at=2) is None, "it was over before its answer"


def test_a_run_whose_agent_has_gone_has_all_that_came() -> None:
    cut = wire(*TWO[:3])
    gone = AgentExited(1)
    assert broken(cut, "one", "a", error=gone) is None
    assert broken(cut, "one", "", error=gone) is not None
    assert broken(cut, "one", "") is None


def test_a_run_behind_one_that_has_not_ended_begins_there() -> None:
    both = wire(("prompt", "one"), ("update", "a"), ("prompt", "two"), ("update", "b"), ("end", "two"))
    assert broken(both, "two", "b") is None


def test_cancellations_and_prompts_of_other_sessions_do_not_count() -> None:
    seen = wire(*TWO[:3], ("cancel", "s"), ("cancel", "s"), ("cancel", "other"), ("end", "one"))
    assert [prompt.cancelled_at for prompt in seen.prompts] == [4]
    assert seen.prompts_of("other", None, ()) == []


def test_nothing_can_be_said_of_a_run_without_a_prompt() -> None:
    assert broken(wire(), "one", "x") is None


def test_prompts_that_were_never_taken_make_the_end_uncertain() -> None:
    seen = wire(*TWO)
    seen.stuck = True
    assert broken(seen, "one", "a late") is None
    assert Wire([Passed(at=0, way="out", fault=Fault.STUCK)]).stuck


@pytest.mark.parametrize(
    ("answers", "until", "grace", "wrong"),
    [
        ((1,), 10.0, 0.0, 0),
        ((), 10.0, 0.0, 1),
        ((), None, 0.0, 0),
        ((), 10.0, 20.0, 0),
        ((), 1.0, 0.0, 0),
        ((1, 1), 10.0, 0.0, 1),
        ((1, 1), None, 0.0, 1),
    ],
)
def test_requests_are_answered_once(
    answers: tuple[int, ...], until: float | None, grace: float, wrong: int
) -> None:
    asked = wire(("ask", 1), *(("answer", id_) for id_ in answers))
    assert len(answers_missing(asked, until=until, grace=grace)) == wrong


def test_a_request_that_came_twice_may_be_answered_twice() -> None:
    assert answers_missing(wire(("ask", 1), ("ask", 1), ("answer", 1), ("answer", 1)), until=10) == []


def test_what_is_no_message_is_passed_over() -> None:
    lines = [
        b"",
        b"no",
        b"[1]",
        b'{"x": 1}',
        b"\xff",
        b'{"method": "session/cancel", "params": {"sessionId": "s"}}',
    ]
    assert Wire([Passed(at=0, way="out", line=line) for line in lines]).prompts == []


@pytest.mark.parametrize(
    ("update", "event"),
    [
        (chunk("x"), ev.Message(seq=1, at=0, text="x")),
        ({**chunk("x"), "sessionUpdate": "agent_thought_chunk"}, ev.Thought(seq=1, at=0, text="x")),
        (
            {"sessionUpdate": "plan", "entries": [{"content": "x"}, {"content": "y"}]},
            ev.PlanUpdate(seq=1, at=0, entries=(ev.PlanEntry(content="x"), ev.PlanEntry(content="y"))),
        ),
        (
            {"sessionUpdate": "tool_call", "toolCallId": "1", "title": "x"},
            ev.ToolStart(seq=1, at=0, id="1", title="x"),
        ),
        (
            {"sessionUpdate": "odd", "token": "x"},
            ev.UnknownUpdate(seq=1, at=0, kind="odd", raw={"sessionUpdate": "odd", "token": "x"}),
        ),
    ],
)
def test_updates_and_their_events_are_known_by_the_same(update: Json, event: ev.ThoughtEvent) -> None:
    assert [told(update)] == shown([event])


def test_some_updates_and_events_are_not_looked_at() -> None:
    image = ev.ImageContent(data="", mime_type="image/png")
    assert told({"sessionUpdate": "agent_message_chunk", "content": {"type": "image"}}) is None
    assert told({"sessionUpdate": "tool_call_update", "toolCallId": "1"}) is None
    assert shown([ev.Message(seq=1, at=0, content=image), ev.ToolUpdate(seq=2, at=0, id="1")]) == []


def test_the_end_of_a_call_repeats_its_title() -> None:
    started = ev.ToolStart(seq=1, at=0, id="1", title="x")
    done = ev.ToolDone(seq=2, at=0, id="1", status="completed", title="x")
    assert len(shown([started, done])) == 1
