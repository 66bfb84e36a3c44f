"""Whatever a run tells: each frame is one that clients take, and pieces make the same messages as wholes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from letta_client.types.agents.letta_streaming_response import LettaStreamingResponse
from pydantic import TypeAdapter

from thinkwell import events as ev
from thinkwell.journal import Entry, RunRecord
from thinkwell.questions import FormField
from thinkwell.web._records import RunEnded, ShownError
from thinkwell.web.letta._messages import ErrorMessage
from thinkwell.web.letta._segments import Options, Segment, SegmentReader

if TYPE_CHECKING:
    from thinkwell.web.letta._messages import Frame

FRAME = TypeAdapter[Any](LettaStreamingResponse)

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
FRONT_END_CALL = (
    FormField(name="front_end_result", type="string"),
    FormField(name="front_end_error", type="string"),
)
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
        by=st.just("letta"),
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


def read(log: list[ev.ThoughtEvent], end: RunEnded, *, tokens: bool, after: int = 0) -> list[Frame]:
    """The frames of a part of a run that no question cuts."""
    record = RunRecord(id="run-ab12", agent="a", created=1_000_000.0)
    reader = SegmentReader(Segment(run=record.id, after=after), record, Options(tokens=tokens))
    frames: list[Frame] = [*reader.begin(0.0)]
    for seq, event in enumerate([*log, end], 1):
        numbered = msgspec.structs.replace(event, seq=seq)
        data = msgspec.json.encode(numbered) if isinstance(numbered, RunEnded) else ev.event_to_json(numbered)
        more, question = reader.take(Entry(seq, data))
        assert question is None or isinstance(event, ev.QuestionAsked)
        frames += more
    assert reader.over
    return frames


def as_json(frame: Frame) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(msgspec.json.encode(frame))
    FRAME.validate_python(body)
    return body


def joined(frames: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Put pieces together as clients do: what is not there or null adds nothing."""
    found: dict[str, dict[str, Any]] = {}
    for frame in frames:
        if "id" not in frame:
            continue
        known = found.setdefault(
            frame["id"], {"type": frame["message_type"], "text": "", "name": "", "arguments": ""}
        )
        assert known["type"] == frame["message_type"]
        known["text"] += frame.get("content") or frame.get("reasoning") or frame.get("tool_return") or ""
        call: dict[str, Any] = frame.get("tool_call") or {}
        known["name"] += call.get("name") or ""
        known["arguments"] += call.get("arguments") or ""
        known["step"] = frame["step_id"]
    return found


@settings(deadline=None, database=None)
@given(st.lists(events, max_size=12), ends, st.integers(0, 12))
def test_frames(log: list[ev.ThoughtEvent], end: RunEnded, after: int) -> None:
    whole = [as_json(frame) for frame in read(log, end, tokens=False)]
    pieces = [as_json(frame) for frame in read(log, end, tokens=True)]
    for frames in (whole, pieces):
        content = [frame for frame in frames if "seq_id" in frame]
        assert [frame["seq_id"] for frame in content] == list(range(1, len(content) + 1))
        assert [frame["message_type"] for frame in frames if frame["message_type"] == "stop_reason"] == [
            "stop_reason"
        ]
        for frame in content:
            call = frame.get("tool_call")
            if call is not None and call["arguments"] is not None:
                assert isinstance(json.loads(call["arguments"] or "{}"), dict)
    ids = [frame["id"] for frame in whole if "id" in frame]
    assert len(ids) == len(set(ids))
    assert _without_late_names(joined(pieces)) == _without_late_names(joined(whole))
    # A part of it has what comes behind its beginning, and nothing else.
    part = [as_json(frame) for frame in read(log, end, tokens=True, after=after)]
    rest = [frame for frame in part if "id" in frame]
    behind = [frame for frame in pieces if "id" in frame][len(pieces) - len(part) :]
    assert [frame["id"] for frame in rest] == [frame["id"] for frame in behind]


def _without_late_names(messages: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Leave out what calls are named as: a piece has to say it before it is known for good."""
    return {id_: {**body, "name": bool(body["name"])} for id_, body in messages.items()}


@settings(deadline=None, database=None)
@given(st.lists(events, max_size=6), ends)
def test_the_same_log_gives_the_same_frames(log: list[ev.ThoughtEvent], end: RunEnded) -> None:
    for tokens in (False, True):
        assert read(log, end, tokens=tokens) == read(log, end, tokens=tokens)


def test_a_failure_without_a_word() -> None:
    end = RunEnded(seq=1, at=0.0, status="failed")
    error = read([], end, tokens=False)[-1]
    assert isinstance(error, ErrorMessage)
    assert error.error_type == "run_failed"
