"""From messages to runs: events, logs, views, results and skills."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import date  # noqa: TC003 - a field's type, read at run time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import anyio
import msgspec
from fuzz.hostile import LEAVES, LONG_RUN, bodies, damaged, repeated
from fuzz.talking import SESSION, Talk, talk
from fuzz.target import Target, on_both, told
from hypothesis import strategies as st
from stream.strategies import EVENTS

from thinkwell import Buffer, JsonSchema, SkillError, ThoughtEvent, history_to_json, load_skill, open_agent
from thinkwell.events import event_from_json, event_to_json
from thinkwell.testing import ScriptedAgent, script
from thinkwell_acp import schema as s
from thinkwell_acp.schema import DecodeError

if TYPE_CHECKING:
    from thinkwell import RunView, ThoughtStream

T = TypeVar("T", bound=ThoughtEvent)

# Updates

_UPDATES = st.lists(bodies(s.SessionNotification), min_size=1, max_size=12)
_BUFFERS = st.none() | st.builds(
    Buffer,
    max_events=st.integers(1, 6),
    overflow=st.sampled_from(["coalesce", "drop_oldest", "error"]),
)


async def check_mapping(given: tuple[list[bytes], Buffer | None, bool]) -> None:
    """Every update becomes events; they travel as JSON, and the views and the history show them."""
    lines, buffer, cancelled = given
    updates: list[bytes] = []
    for line in lines:
        try:
            notification = s.decode(s.SessionNotification, line)
        except DecodeError:
            continue
        params = s.encode(msgspec.structs.replace(notification, session_id=SESSION))
        updates.append(b'{"jsonrpc":"2.0","method":"session/update","params":%b}' % params)

    async def cancel(stream: ThoughtStream[str]) -> None:
        if cancelled:
            await anyio.sleep(20)  # the agent is waited for no more, and all updates are there
            stream.cancel()

    async def look(stream: ThoughtStream[str]) -> None:
        """See each state, which must change nothing."""
        await cancel(stream)
        async for _ in stream:
            assert stream.view is not None

    waits_for, replayed = (["nothing"], updates) if cancelled else ([], [])
    talked = await talk(*updates, waits_for=waits_for, buffer=buffer, look=look, replayed=replayed)
    _check_events(talked)
    msgspec.json.decode(history_to_json(talked.history))
    if buffer is None:
        assert len(talked.events) >= len(updates)
        again = await talk(*updates, waits_for=waits_for, look=cancel, replayed=replayed)
        assert _without_times(again.view) == _without_times(talked.view)


def _check_events(talked: Talk) -> None:
    numbers = [event.seq for event in talked.events]
    assert numbers == sorted(set(numbers))
    assert talked.view.text == "".join(talked.view.messages)
    for event in talked.events:
        assert event_from_json(event_to_json(event)) == event
    for id_, tool in talked.view.tools.items():
        assert tool.id == id_


def _without_times(view: RunView) -> RunView:
    """The same view without what differs by when it happened."""
    return replace(
        view,
        phases=(),
        error=None,  # which is another each time
        timeline=tuple(msgspec.structs.replace(item, at=0.0) for item in view.timeline),
        tools={
            id_: msgspec.structs.replace(tool, started_at=0.0, ended_at=None)
            for id_, tool in view.tools.items()
        },
        plans={id_: _untimed(plan) for id_, plan in view.plans.items()},
        usage=view.usage and _untimed(view.usage),
        notices=tuple(map(_untimed, view.notices)),
    )


def _untimed(event: T) -> T:
    return msgspec.structs.replace(event, at=0.0, seq=0)


# Events


def check_event(line: bytes) -> None:
    """A line is an event, or it is not, and that is said in one way."""
    try:
        event = event_from_json(line)
    except msgspec.ValidationError:
        return
    assert event_from_json(event_to_json(event)) == event


def _unknown(raw: Any) -> bytes:
    return b'{"type":"unknown","kind":"k","raw":%b}' % msgspec.json.encode(raw)


_EVENT_LINES = damaged(EVENTS.map(event_to_json)) | LEAVES.map(_unknown)


# Results


@dataclass
class _Point:
    x: int
    when: date | None = None


_OUTPUTS = (
    _Point,
    list[int],
    dict[str, float],
    Literal["yes", "no"],
    _Point | list[_Point],
    JsonSchema({"type": "object", "properties": {"x": {"type": "integer"}}, "additionalProperties": False}),
    JsonSchema({"type": "array", "items": {"anyOf": [{"type": "number"}, {"type": "null"}]}}),
    # With anyOf around the reference, jsonschema describes the whole value again at each of its levels.
    JsonSchema({"type": "array", "items": {"$ref": "#"}}),
    JsonSchema({"type": "string", "pattern": "^(a|b)*c$", "maxLength": 9}),
)
_RESULT_KEYS = st.sampled_from(["result", "value", "x", "when", "arguments", "return_result"])
_QUOTED = st.recursive(
    st.sampled_from(
        ['"', "{", "[1]", '{"x": 1}', "NaN", "1e999", "9" * 5000, "[" * 2000, '"\\ud800"', "[[[1]]]"]
    )
    | repeated(["[", "]", "1,", '{"x":', '"', "a"])
    | LEAVES,
    lambda inner: st.dictionaries(_RESULT_KEYS, inner, max_size=2) | st.lists(inner, max_size=3),
    max_leaves=5,
)
_RESULTS = st.tuples(
    st.sampled_from(_OUTPUTS), st.dictionaries(_RESULT_KEYS, _QUOTED, max_size=2).map(msgspec.json.encode)
)


async def check_result(given: tuple[type[Any], bytes]) -> None:
    """What an agent returns is a value of the type, or it is told in few words what is wrong."""
    output, body = given
    try:
        arguments: Any = s.decode(object, body)
        returned = script.calls("return_result", arguments, expect_error=None)
    except (DecodeError, ValueError):  # no JSON, or nothing that this agent can say
        return
    played = ScriptedAgent(returned, complete=False)
    async with played.connect() as transport, open_agent(transport=transport) as agent:
        stream = agent.think(output).text("Go").stream()
        await stream.wait()
    (answer,) = played.sent.results
    told(answer.text, where=len(answer.text) < 30_000)
    assert answer.is_error == (stream.result.exception() is not None)


# Skills

_MATTER = repeated(
    [
        *("---\n", "\n", " ", "  ", "\t", "name: ", "description: ", "metadata:\n"),
        *("allowed-tools: ", "a", ":", "- ", "-", "#", " #"),
        *("|", ">", "|2-\n", "'", '"', "\\", "\\x", "[", "]", ",", "{", "}", "\r\n", "\ufeff", "~"),
        *("null", "\0"),
    ]
)


def check_skill(given: tuple[str, bool]) -> None:
    """The top of a skill is read, or the line that cannot be is named."""
    text, named = given
    if named:
        text = f"name: a\ndescription: b\n{text}"
    with TemporaryDirectory() as folder:
        Path(folder, "SKILL.md").write_bytes(f"---\n{text}\n---\nbody".encode("utf-8", "surrogatepass"))
        try:
            load_skill(folder)
        except SkillError as exc:
            place = re.match(r"line (\d+): .", exc.reason)
            told(exc.reason, where=place is not None and 1 <= int(place[1]) <= text.count("\n") + 3)


TARGETS = (
    Target(
        name="mapping",
        inputs=st.tuples(_UPDATES, _BUFFERS, st.booleans()),
        check=on_both(check_mapping),
        weight=60 if LONG_RUN else 25,
    ),
    Target(name="events", inputs=_EVENT_LINES, check=check_event),
    Target(name="results", inputs=_RESULTS, check=on_both(check_result), weight=60 if LONG_RUN else 25),
    Target(name="skills", inputs=st.tuples(_MATTER, st.booleans()), check=check_skill, weight=100),
)
