"""From messages to runs: events, logs, views, results and skills."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date  # noqa: TC003 - a field's type, read at run time
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from fuzz.hostile import LEAVES, bodies, damaged, repeated
from fuzz.target import Target, told
from hypothesis import strategies as st
from stream.strategies import EVENTS

from thinkwell import Buffer
from thinkwell import events as ev
from thinkwell._convert import Mapper
from thinkwell._history import History, history_to_json
from thinkwell._log import RunLog
from thinkwell._output import JsonSchema, OutputInvalid, output_of
from thinkwell._skills.front_matter import FrontMatter, FrontMatterError
from thinkwell.events import event_from_json, event_to_json
from thinkwell_acp import schema as s
from thinkwell_acp.schema import DecodeError

if TYPE_CHECKING:
    from collections.abc import Sequence

# Updates

_UPDATES = st.lists(bodies(s.SessionNotification), min_size=1, max_size=12)
_BUFFERS = st.none() | st.builds(
    Buffer,
    max_events=st.integers(1, 6),
    overflow=st.sampled_from(["coalesce", "drop_oldest", "error"]),
)


def check_mapping(given: tuple[list[bytes], Buffer | None, bool]) -> None:
    """Every update becomes events; they travel as JSON, and the views and the history show them."""
    lines, buffer, cancelled = given
    updates: list[s.SessionNotification] = []
    for line in lines:
        try:
            updates.append(s.decode(s.SessionNotification, line))
        except DecodeError:
            continue
    log, between = RunLog(ev.ALL_TYPES, buffer), RunLog(ev.ALL_TYPES)
    mapper, history = Mapper(log), History(between)
    mapper.await_response()
    mapper.extend(updates)
    if cancelled:
        mapper.cancel_tools()
    Mapper(between).extend(updates)
    _check_log(log)
    history.take(log, replayed=False)
    for replayed in (True, False):
        msgspec.json.decode(history_to_json(history.messages(replayed=replayed)))
    if buffer is None:
        kinds = [notification.update for notification in updates]
        assert len(log.events) >= len(kinds)
        assert log.view() == _without_times(log, updates)


def _check_log(log: RunLog) -> None:
    numbers = [event.seq for event in log.events]
    assert numbers == sorted(set(numbers))
    view = log.view()
    assert view.text == "".join(view.messages)
    for event in log.events:
        assert event_from_json(event_to_json(event)) == event
    for id_, tool in view.tools.items():
        assert tool.id == id_


def _without_times(log: RunLog, updates: Sequence[s.SessionNotification]) -> Any:
    """The view of the same updates, shown after each of them: looking must change nothing."""
    again = RunLog(ev.ALL_TYPES, clock=lambda: 0.0)
    again._started = again.now()
    for event in log.events:
        again.append(event)
        again.view()
    return again.view()


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


_OUTPUTS = tuple(
    output_of(type_)
    for type_ in (
        _Point,
        list[int],
        dict[str, float],
        Literal["yes", "no"],
        _Point | list[_Point],
        JsonSchema(
            {"type": "object", "properties": {"x": {"type": "integer"}}, "additionalProperties": False}
        ),
        JsonSchema({"type": "array", "items": {"anyOf": [{"type": "number"}, {"type": "null"}]}}),
        # With anyOf around the reference, jsonschema describes the whole value again at each of its levels.
        JsonSchema({"type": "array", "items": {"$ref": "#"}}),
        JsonSchema({"type": "string", "pattern": "^(a|b)*c$", "maxLength": 9}),
    )
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


def check_result(given: tuple[Any, bytes]) -> None:
    """What an agent returns is a value of the type, or invalid."""
    output, body = given
    try:
        arguments = s.decode(object, body)
    except DecodeError:
        return
    assert isinstance(arguments, dict)
    for wrapped in (True, False):
        try:
            output.accept(arguments, wrapped=wrapped)
        except OutputInvalid as exc:
            told("".join(exc.errors), where=all(len(error) < 10_000 for error in exc.errors))


# Skills

_MATTER = repeated(
    [
        *(
            "---\n",
            "\n",
            " ",
            "  ",
            "\t",
            "name: ",
            "description: ",
            "metadata:\n",
            "a",
            ":",
            "- ",
            "-",
            "#",
            " #",
        ),
        *(
            "|",
            ">",
            "|2-\n",
            "'",
            '"',
            "\\",
            "\\x",
            "[",
            "]",
            ",",
            "{",
            "}",
            "\r\n",
            "\ufeff",
            "~",
            "null",
            "\0",
        ),
    ]
)


def check_front_matter(text: str) -> None:
    """The top of a skill is read, or the line that cannot be is named."""
    try:
        matter = FrontMatter(f"---\n{text}\n---\nbody")
    except FrontMatterError as exc:
        told(exc.reason, where=1 <= exc.line <= text.count("\n") + 3)
        return
    for key in ("name", "description", "metadata", "allowed-tools"):
        for read in (matter.text, matter.texts, matter.texts_by_name, matter.line):
            try:
                read(key)
            except FrontMatterError as exc:
                told(exc.reason, where=1 <= exc.line <= text.count("\n") + 3)


TARGETS = (
    Target(name="mapping", inputs=st.tuples(_UPDATES, _BUFFERS, st.booleans()), check=check_mapping),
    Target(name="events", inputs=_EVENT_LINES, check=check_event),
    Target(name="results", inputs=_RESULTS, check=check_result),
    Target(name="skills", inputs=_MATTER, check=check_front_matter, weight=100),
)
