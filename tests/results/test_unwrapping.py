"""What models wrap around a result is taken off when, and only when, the value is valid after it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, TypeAdapter
from pydantic_core import to_jsonable_python

from thinkwell import JsonSchema
from thinkwell._json_schema import Declared, declared, is_object
from thinkwell._output import ENVELOPES, OutputInvalid, output_of


class Optional(BaseModel):
    """Valid without any key, so that an envelope around it would be valid, and empty."""

    a: int = 0
    b: str = ""


class Enveloped(BaseModel):
    """Has a field with the name of an envelope."""

    result: int


class Needed(BaseModel):
    a: int


class Nested(BaseModel):
    data: Needed


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")


class Forbidding(BaseModel):
    model_config = ConfigDict(extra="forbid")
    a: int = 0


@dataclass
class Plain:
    items: list[int]


ADAPTERS: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "optional": (Optional, st.builds(Optional, a=st.integers(), b=st.text())),
    "enveloped": (Enveloped, st.builds(Enveloped, result=st.integers())),
    "nested": (Nested, st.builds(Nested, data=st.builds(Needed, a=st.integers()))),
    "dataclass": (Plain, st.builds(Plain, items=st.lists(st.integers()))),
    "forbidding": (Forbidding, st.builds(Forbidding, a=st.integers())),
    "list": (list[Optional], st.lists(st.builds(Optional, a=st.integers()))),
    "int": (int, st.integers()),
    "union": (int | list[str], st.integers() | st.lists(st.text())),
    "none": (TypeAdapter(None | list[int]), st.none() | st.lists(st.integers())),
    "float": (float, st.floats(allow_nan=False, allow_infinity=False)),
}
LAYERS = st.lists(st.sampled_from([*sorted(ENVELOPES), "string"]), max_size=7)


def wrapped_in(value: Any, layers: list[str]) -> Any:
    for layer in layers:
        value = json.dumps(value) if layer == "string" else {layer: value}
    return value


@pytest.mark.parametrize("name", ADAPTERS)
@given(data=st.data(), layers=LAYERS, in_session=st.booleans())
def test_any_value_in_any_stack_of_envelopes_is_accepted(
    name: str, data: st.DataObject, layers: list[str], in_session: bool
) -> None:
    type_, values = ADAPTERS[name]
    value = data.draw(values)
    output = output_of(type_)
    sent = wrapped_in(to_jsonable_python(value), layers)
    wrapped = output.wrapped or in_session
    arguments: dict[str, Any] = sent if not wrapped and is_object(sent) else {"result": sent}
    assert output.accept(arguments, wrapped=wrapped) == value


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(sorted(ENVELOPES)) | st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=6,
)
OBJECTS = st.dictionaries(st.sampled_from(sorted(ENVELOPES)) | st.text(max_size=3), JSON, max_size=2)


@given(value=OBJECTS)
def test_a_valid_value_that_looks_like_an_envelope_is_left_alone(value: dict[str, Any]) -> None:
    anything: TypeAdapter[Any] = TypeAdapter(Any)
    for type_ in (dict[str, Any], Open, JsonSchema({"type": "object"}), anything):
        output = output_of(type_)
        accepted = output.accept({"result": value} if output.wrapped else value, wrapped=output.wrapped)
        assert (accepted.model_extra if isinstance(accepted, Open) else accepted) == value


@given(value=JSON)
def test_json_of_a_wrapped_schema_is_left_alone(value: Any) -> None:
    assert output_of(JsonSchema({})).accept({"result": value}, wrapped=True) == value
    assert output_of(JsonSchema({})).accept({"result": {"result": value}}, wrapped=True) == {"result": value}


@given(text=st.text() | JSON.map(json.dumps))
def test_text_that_is_json_stays_text_where_text_is_wanted(text: str) -> None:
    text_or_nothing: TypeAdapter[str | None] = TypeAdapter(str | None)
    output = output_of(text_or_nothing)
    assert output.accept({"result": text}, wrapped=True) == text


def test_a_field_of_that_name_is_no_envelope() -> None:
    output = output_of(Enveloped)
    assert output.accept({"result": 4}, wrapped=False) == Enveloped(result=4)
    # A session of many types asks for {"result": …}; who forgets that has sent a valid value all the same.
    assert output.accept({"result": 4}, wrapped=True) == Enveloped(result=4)
    assert output.accept({"result": {"result": 4}}, wrapped=True) == Enveloped(result=4)


def test_the_name_of_the_type_is_an_envelope() -> None:
    assert output_of(Optional).accept({"Optional": {"a": 1}}, wrapped=False) == Optional(a=1)


@pytest.mark.parametrize("extra", ["wait_for_previous", "security_risk"])
def test_what_agents_add_is_stripped_where_the_type_does_not_know_it(extra: str) -> None:
    added = {extra: True}
    assert output_of(Forbidding).accept({"a": 1, **added}, wrapped=False) == Forbidding(a=1)
    assert output_of(int).accept({"result": 1, **added}, wrapped=True) == 1
    closed = JsonSchema({"type": "object", "properties": {"a": {}}})
    assert output_of(closed).accept({"a": 1, **added}, wrapped=False) == {"a": 1}
    closed = JsonSchema({"type": "object", "additionalProperties": False})
    assert output_of(closed).accept(added, wrapped=False) == {}
    knowing = JsonSchema({"type": "object", "properties": {extra: {"type": "boolean"}}})
    assert output_of(knowing).accept(added, wrapped=False) == added
    assert output_of(dict[str, bool]).accept(added, wrapped=False) == added


def test_an_unknown_key_is_not_dropped_where_the_type_forbids_it() -> None:
    with pytest.raises(OutputInvalid, match="mistake"):
        output_of(Forbidding).accept({"a": 1, "mistake": 2}, wrapped=False)


@pytest.mark.parametrize(
    ("type_", "arguments", "wrapped", "line"),
    [
        (Optional, {"result": {"a": "x"}}, False, "a: Input should be a valid integer"),
        (Optional, {"result": {"a": "x"}}, True, "a: Input should be a valid integer"),
        (list[int], {"result": '["x"]'}, True, "0: Input should be a valid integer"),
        (int, {"result": "four"}, True, "the value: Input should be a valid integer"),
        (int, {}, True, "the value: Input should be a valid integer"),
        (Nested, {"data": {"a": []}}, False, "data.a: Input should be a valid integer"),
        (
            JsonSchema({"type": "array", "items": {"type": "null"}}),
            {"result": [1]},
            True,
            "$[0]: 1 is not of type",
        ),
    ],
)
def test_the_error_is_that_of_the_likeliest_reading(
    type_: object, arguments: dict[str, Any], wrapped: bool, line: str
) -> None:
    with pytest.raises(OutputInvalid) as caught:
        output_of(type_).accept(arguments, wrapped=wrapped)
    assert caught.value.errors[0].startswith(line)


def test_a_value_that_is_nested_too_deep_is_invalid_and_no_more() -> None:
    deep: Any = "x"
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(OutputInvalid):
        output_of(list[int]).accept({"result": deep}, wrapped=True)
    with pytest.raises(OutputInvalid):
        output_of(list[int]).accept({"result": "[" * 100_000}, wrapped=True)


KEYS: list[tuple[dict[str, Any], set[str], bool]] = [
    ({"type": "object", "properties": {"a": {}}}, {"a"}, False),
    ({"type": "object"}, set(), True),
    ({"type": ["object", "null"]}, set(), True),
    ({"type": "object", "additionalProperties": False}, set(), False),
    ({"type": "object", "properties": {"a": {}}, "additionalProperties": {"type": "null"}}, {"a"}, True),
    ({"type": "object", "properties": {"a": {}}, "patternProperties": {"x": {}}}, {"a"}, True),
    (
        {"anyOf": [{"type": "null"}, {"properties": {"a": {}}}, {"properties": {"b": {}}}]},
        {"a", "b"},
        False,
    ),
    ({"allOf": [True]}, set(), True),
    ({"allOf": [False]}, set(), False),
    ({"enum": [1]}, set(), False),
    ({}, set(), True),
    ({"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"x": {"$ref": "#"}}}}}, {"x"}, False),
    (
        {"oneOf": [{"$ref": "#"}, {"$ref": "other.json"}, {"$ref": "#/oneOf/9"}, {"$ref": "#/x/y"}]},
        set(),
        False,
    ),
]


@pytest.mark.parametrize(("schema", "names", "is_open"), KEYS)
def test_what_a_schema_says_of_keys(schema: dict[str, Any], names: set[str], is_open: bool) -> None:
    assert declared(schema) == Declared(frozenset(names), is_open)
