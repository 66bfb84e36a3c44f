"""Events are values: frozen, told apart, and the same after every way out of the process and back."""

from __future__ import annotations

import copy
import json
import pickle
from typing import TYPE_CHECKING, cast, get_args

import msgspec
import pydantic
import pytest
from hypothesis import given, settings
from stream.strategies import EVENTS, KINDS, structs

from thinkwell import Message, PlanUpdate, Thought, ToolDone, event_from_json, event_to_json
from thinkwell.events import (
    ALL_TYPES,
    DEFAULT_TYPES,
    EventType,
    ImageContent,
    Include,
    TextContent,
    ThoughtEvent,
    included,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection


class Report(pydantic.BaseModel):
    last: ThoughtEvent
    messages: list[Message] = []


@pytest.mark.parametrize("kind", KINDS)
def test_json__an_event_is_the_same_after_it(kind: type[ThoughtEvent]) -> None:
    @settings(max_examples=20)
    @given(structs(kind))
    def check(event: ThoughtEvent) -> None:
        line = event_to_json(event)
        assert b"\n" not in line
        assert json.loads(line)["type"] == kind.type
        back = event_from_json(line)
        assert back == event
        assert type(back) is kind
        assert event_from_json(line.decode()) == event

    check()


@given(EVENTS)
def test_pydantic__an_event_is_a_field_as_it_is_and_as_json(event: ThoughtEvent) -> None:
    report = Report(last=event)
    assert report.last is event
    assert Report.model_validate_json(report.model_dump_json()) == report
    assert Report.model_validate(report.model_dump()) == report


@given(EVENTS)
def test_pickle_and_copy__an_event_is_the_same_after_them(event: ThoughtEvent) -> None:
    assert pickle.loads(pickle.dumps(event)) == event
    assert copy.copy(event) == event
    assert copy.deepcopy(event) == event


def test_json__what_is_at_its_default_is_left_out() -> None:
    assert event_to_json(Message(text="Hi", seq=3, at=0.5)) == (
        b'{"type":"message","seq":3,"at":0.5,"text":"Hi"}'
    )


@pytest.mark.parametrize(
    "line", ["", "[]", "{}", '{"type":"nothing"}', '{"type":"tool_done","id":"t","status":"maybe"}']
)
def test_json__what_is_no_event_is_refused(line: str) -> None:
    with pytest.raises(msgspec.DecodeError):
        event_from_json(line)


def test_pydantic__what_is_no_event_is_an_error_of_that_field() -> None:
    with pytest.raises(pydantic.ValidationError) as caught:
        Report.model_validate({"last": {"type": "message"}, "messages": [{"type": "thought"}]})
    assert {error["loc"][:2] for error in caught.value.errors()} == {("messages", 0)}


@pytest.mark.parametrize("mode", ["validation", "serialization"])
def test_pydantic__the_schema_tells_events_by_their_type(mode: pydantic.json_schema.JsonSchemaMode) -> None:
    schema = Report.model_json_schema(mode=mode)
    assert schema["properties"]["messages"]["items"]["properties"] == {"type": {"const": "message"}}
    assert len(schema["properties"]["last"]["anyOf"]) == len(KINDS)


def test_text__content_says_the_same() -> None:
    assert Message(text="Hi").content == TextContent(text="Hi")
    assert Thought(content=TextContent(text="Hm")).text == "Hm"
    assert Thought() == Thought(text="", content=TextContent(text=""))
    image = ImageContent(data="aGk=", mime_type="image/png")
    assert (Message(content=image).text, Message(content=image).content) == ("", image)
    assert "text='Hi', content=TextContent(annotations=None, text='Hi')" in repr(Message(text="Hi"))


def test_events_are_frozen_and_made_by_keywords_only() -> None:
    event = Message(text="Hi")
    with pytest.raises(AttributeError):
        setattr(event, "text", "Bye")  # noqa: B010 - type checkers know better
    with pytest.raises(AttributeError):
        delattr(event, "text")
    make = cast("Callable[..., object]", Message)
    with pytest.raises(TypeError):
        make("Hi")
    with pytest.raises(AttributeError):
        setattr(event, "other", 1)  # noqa: B010 - there is no such field


def test_every_kind_has_a_type_of_its_own() -> None:
    assert sorted(kind.type for kind in KINDS) == sorted(get_args(EventType))
    assert frozenset(kind.type for kind in KINDS) == ALL_TYPES
    for kind in KINDS:
        assert kind.__struct_config__.tag == kind.type


def test_default_six__as_the_design_names_them() -> None:
    names = {kind.__name__ for kind in KINDS if kind.type in DEFAULT_TYPES}
    assert names == {"Thought", "Message", "ToolStart", "ToolUpdate", "ToolDone", "PlanUpdate"}


def test_equality__is_by_value() -> None:
    assert ToolDone(id="t", status="failed") == ToolDone(id="t", status="failed")
    assert ToolDone(id="t", status="failed") != ToolDone(id="t", status="completed")
    assert len({PlanUpdate(), PlanUpdate(), PlanUpdate(removed=True)}) == 2


@pytest.mark.parametrize(
    ("include", "types"),
    [
        ("default", DEFAULT_TYPES),
        ("all", ALL_TYPES),
        ("usage", {"usage"}),
        (frozenset[EventType](), frozenset[str]()),
        ({"thought", "plan", "usage"}, {"thought", "plan", "usage"}),
        (["message", "message"], {"message"}),
    ],
)
def test_include__names_kinds(include: Include, types: Collection[str]) -> None:
    assert included(include) == frozenset(types)


@pytest.mark.parametrize("include", ["messages", {"thought", "thougt"}])
def test_include__a_wrong_name_is_refused_with_the_right_ones(include: Include) -> None:
    with pytest.raises(ValueError, match=r"include= names \['(messages|thougt)'\].*'message'.*'thought'"):
        included(include)
