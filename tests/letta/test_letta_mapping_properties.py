"""Whatever a run tells: each frame is one that clients take, and pieces make the same messages as wholes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from letta_stage import hello, letta_served

from thinkwell import events as ev
from thinkwell.questions import FormField
from thinkwell.web import RunEnded, ShownError

if TYPE_CHECKING:
    from letta_stage import LettaStage, Streamed

texts = st.text(max_size=4)
names = st.sampled_from(["t1", "t2", "t3"])
inputs = st.sampled_from([None, {}, {"path": "a"}, [1], "x", 0])
message_ids = st.sampled_from([None, None, "m1", "m2"])
contents = st.lists(
    st.one_of(
        st.builds(ev.BlockContent, content=st.builds(ev.TextContent, text=texts)),
        st.builds(ev.DiffContent, path=texts, new_text=texts, old_text=st.none() | texts),
    ),
    max_size=2,
).map(tuple)
questions = st.builds(
    ev.QuestionAsked,
    id=st.sampled_from(["q1", "q2"]),
    title=texts,
    asks=st.sampled_from(["permission", "form", "url"]),
    tool_id=st.none() | names,
    fields=st.sampled_from(
        [
            (),
            (
                FormField(name="front_end_result", type="string"),
                FormField(name="front_end_error", type="string"),
            ),
        ]
    ),
    timeout=st.sampled_from([None, 300.0]),
)
events = st.one_of(
    st.builds(ev.Message, text=texts, message_id=message_ids),
    st.builds(ev.Thought, text=texts, message_id=message_ids),
    st.builds(ev.ToolStart, id=names, title=texts, name=st.none() | texts, input=inputs),
    st.builds(ev.ToolUpdate, id=names, title=st.none() | texts, input=inputs),
    st.builds(
        ev.ToolDone,
        id=names,
        status=st.sampled_from(["completed", "failed", "cancelled"]),
        content=contents,
        output=inputs,
    ),
    st.builds(ev.PlanUpdate, markdown=st.none() | texts, removed=st.booleans()),
    questions,
    st.builds(
        ev.QuestionAnswered,
        id=st.sampled_from(["q1", "q2"]),
        choice=st.sampled_from(["allow_once", "accept", None]),
        by=st.just("human"),
        why=texts,
    ),
    st.builds(ev.UsageUpdate, used=st.integers(0, 9), size=st.just(9)),
    st.builds(ev.ReplayStarted),
    st.builds(ev.ReplayEnded),
)
ends = st.builds(
    RunEnded,
    seq=st.just(0),
    at=st.just(9.0),
    status=st.sampled_from(["completed", "failed", "cancelled", "interrupted"]),
    stop_reason=st.sampled_from([None, "end_turn", "max_tokens", "refusal", "new"]),
    error=st.none() | st.just(ShownError(name="AgentReported", message="no")),
)


async def read(
    stage: LettaStage, log: list[ev.ThoughtEvent], end: RunEnded, *, tokens: bool, after: int = 0
) -> Streamed:
    """A part of a run that no question cuts, as it is streamed."""
    run = await stage.keep(log, end, tokens=tokens)
    streamed = await stage.read(f"/v1/runs/{run}{f'-{after}' if after else ''}/stream", {})
    assert streamed.done
    return streamed


def own(id_: str) -> str:
    """The id of a message without that of its run."""
    return id_.partition("-")[2].partition("-")[2]


def joined(frames: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Put pieces together as clients do: what is not there or null adds nothing."""
    found: dict[str, dict[str, Any]] = {}
    for frame in frames:
        if "id" not in frame:
            continue
        known = found.setdefault(
            own(frame["id"]), {"type": frame["message_type"], "text": "", "name": "", "arguments": ""}
        )
        assert known["type"] == frame["message_type"]
        known["text"] += frame.get("content") or frame.get("reasoning") or frame.get("tool_return") or ""
        call: dict[str, Any] = frame.get("tool_call") or {}
        known["name"] += call.get("name") or ""
        known["arguments"] += call.get("arguments") or ""
        known["step"] = own(frame["step_id"])
    return found


logs = st.lists(events, max_size=12)


async def check(log: list[ev.ThoughtEvent], end: RunEnded, after: int) -> None:
    async with letta_served(hello) as stage:
        whole = (await read(stage, log, end, tokens=False)).frames
        pieces = (await read(stage, log, end, tokens=True)).frames
        part = (await read(stage, log, end, tokens=True, after=after)).frames
    for frames in (whole, pieces):
        content = [frame for frame in frames if "seq_id" in frame]
        assert [frame["seq_id"] for frame in content] == list(range(1, len(content) + 1))
        assert len([frame for frame in frames if frame["message_type"] == "stop_reason"]) == 1
        for frame in content:
            call = frame.get("tool_call")
            if call is not None and call["arguments"] is not None:
                assert isinstance(json.loads(call["arguments"] or "{}"), dict)
    ids = [own(frame["id"]) for frame in whole if "id" in frame]
    assert len(ids) == len(set(ids))
    assert _without_late_names(joined(pieces)) == _without_late_names(joined(whole))
    # A part of it has what comes behind its beginning, and nothing else.
    rest = [own(frame["id"]) for frame in part if "id" in frame]
    assert rest == [own(frame["id"]) for frame in pieces if "id" in frame][len(pieces) - len(part) :]


@settings(max_examples=20)
@given(logs, ends, st.integers(0, 12))
async def test_frames(log: list[ev.ThoughtEvent], end: RunEnded, after: int) -> None:
    await check(log, end, after)


@pytest.mark.long
@settings(max_examples=200)
@given(logs, ends, st.integers(0, 12))
async def test_many_frames(log: list[ev.ThoughtEvent], end: RunEnded, after: int) -> None:
    await check(log, end, after)


def _without_late_names(messages: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Leave out what calls are named as: a piece has to say it before it is known for good."""
    return {id_: {**body, "name": bool(body["name"])} for id_, body in messages.items()}


async def test_the_same_run_gives_the_same_frames() -> None:
    log: list[ev.ThoughtEvent] = [
        ev.Thought(text="a"),
        ev.Message(text="b"),
        ev.ToolUpdate(id="t1", title="c"),
        ev.PlanUpdate(markdown="d"),
        ev.QuestionAsked(id="q1", title="e", timeout=300.0),
    ]
    async with letta_served(hello) as stage:
        for tokens in (False, True):
            run = await stage.keep(log, tokens=tokens)
            first = await stage.read(f"/v1/runs/{run}/stream", {})
            assert await stage.read(f"/v1/runs/{run}/stream", {}) == first


async def test_a_failure_without_a_word() -> None:
    async with letta_served(hello) as stage:
        streamed = await read(stage, [], RunEnded(seq=1, at=0.0, status="failed"), tokens=False)
    assert streamed.error is not None
    assert streamed.error["error_type"] == "run_failed"


@pytest.mark.parametrize("name", ["AgentReported", "Overloaded", "LoginExpired", "AgentExited"])
async def test_what_an_agent_reports_of_its_model_service_is_an_error_of_that(name: str) -> None:
    ended = RunEnded(seq=1, at=0.0, status="failed", error=ShownError(name=name, message="no"))
    async with letta_served(hello) as stage:
        streamed = await read(stage, [], ended, tokens=False)
    assert streamed.stop_reason == ("error" if name == "AgentExited" else "llm_api_error")
