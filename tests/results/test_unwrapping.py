"""What models wrap around a result is taken off when, and only when, the value is valid after it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, cast

import pytest
from drawing import drawn
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, TypeAdapter
from pydantic_core import to_jsonable_python
from results.taking import results, taken

from thinkwell import JsonSchema, ResultInvalid


@pytest.fixture
def anyio_backend() -> str:
    """Schemas know of no loop."""
    return "asyncio"


ENVELOPES = (
    *("result", "value", "output", "data", "response", "answer"),
    *("arguments", "args", "input", "parameters", "return_result"),
)
"""Keys under which models were seen to wrap what they return."""

WRAPPED = ("list", "int", "union", "none", "float")
"""Those whose schema is not that of an object."""


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
LAYERS = st.lists(st.sampled_from([*ENVELOPES, "string"]), max_size=7)


def wrapped_in(value: Any, layers: list[str]) -> Any:
    for layer in layers:
        value = json.dumps(value) if layer == "string" else {layer: value}
    return value


@pytest.mark.parametrize("name", ADAPTERS)
@pytest.mark.draws
async def test_any_value_in_any_stack_of_envelopes_is_accepted(name: str) -> None:
    type_, values = ADAPTERS[name]
    async with results() as take:
        for value, layers, in_session in drawn(st.tuples(values, LAYERS, st.booleans()), 100):
            sent = wrapped_in(to_jsonable_python(value), layers)
            wrapped = name in WRAPPED or in_session
            arguments: dict[str, Any] = {"result": sent}
            if not wrapped and isinstance(sent, dict):
                arguments = cast("dict[str, Any]", sent)
            assert await take(type_, arguments, in_session=in_session) == value


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(ENVELOPES) | st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=6,
)
OBJECTS = st.dictionaries(st.sampled_from(ENVELOPES) | st.text(max_size=3), JSON, max_size=2)


@pytest.mark.draws
async def test_a_valid_value_that_looks_like_an_envelope_is_left_alone() -> None:
    anything: TypeAdapter[Any] = TypeAdapter(Any)
    async with results() as take:
        for value in drawn(OBJECTS, 40):
            assert await take(dict[str, Any], value) == value
            assert (await take(Open, value)).model_extra == value
            assert await take(JsonSchema({"type": "object"}), value) == value
            assert await take(anything, {"result": value}) == value


@pytest.mark.draws
async def test_json_of_a_wrapped_schema_is_left_alone() -> None:
    async with results() as take:
        for value in drawn(JSON, 40):
            assert await take(JsonSchema({}), {"result": value}) == value
            assert await take(JsonSchema({}), {"result": {"result": value}}) == {"result": value}


@pytest.mark.draws
async def test_text_that_is_json_stays_text_where_text_is_wanted() -> None:
    text_or_nothing: TypeAdapter[str | None] = TypeAdapter(str | None)
    async with results() as take:
        for text in drawn(st.text() | JSON.map(json.dumps), 100):
            assert await take(text_or_nothing, {"result": text}) == text


async def test_a_field_of_that_name_is_no_envelope() -> None:
    async with results() as take:
        assert await take(Enveloped, {"result": 4}) == Enveloped(result=4)
        # A session of many types asks for {"result": …}; one that forgets it has sent a valid value.
        assert await take(Enveloped, {"result": 4}, in_session=True) == Enveloped(result=4)
        assert await take(Enveloped, {"result": {"result": 4}}, in_session=True) == Enveloped(result=4)


async def test_the_name_of_the_type_is_an_envelope() -> None:
    assert await taken(Optional, {"Optional": {"a": 1}}) == Optional(a=1)


@pytest.mark.parametrize("extra", ["wait_for_previous", "security_risk"])
async def test_what_agents_add_is_stripped_where_the_type_does_not_know_it(extra: str) -> None:
    added = {extra: True}
    async with results() as take:
        assert await take(Forbidding, {"a": 1, **added}) == Forbidding(a=1)
        assert await take(int, {"result": 1, **added}) == 1
        closed = JsonSchema({"type": "object", "properties": {"a": {}}})
        assert await take(closed, {"a": 1, **added}) == {"a": 1}
        closed = JsonSchema({"type": "object", "additionalProperties": False})
        assert await take(closed, added) == {}
        knowing = JsonSchema({"type": "object", "properties": {extra: {"type": "boolean"}}})
        assert await take(knowing, added) == added
        assert await take(dict[str, bool], added) == added


async def test_an_unknown_key_is_not_dropped_where_the_type_forbids_it() -> None:
    with pytest.raises(ResultInvalid, match="mistake"):
        await taken(Forbidding, {"a": 1, "mistake": 2})


@pytest.mark.parametrize(
    ("type_", "arguments", "in_session", "line"),
    [
        (Optional, {"result": {"a": "x"}}, False, "a: Input should be a valid integer"),
        (Optional, {"result": {"a": "x"}}, True, "a: Input should be a valid integer"),
        (list[int], {"result": '["x"]'}, False, "0: Input should be a valid integer"),
        (int, {"result": "four"}, False, "the value: Input should be a valid integer"),
        (int, {}, False, "the value: Input should be a valid integer"),
        (Nested, {"data": {"a": []}}, False, "data.a: Input should be a valid integer"),
        (
            JsonSchema({"type": "array", "items": {"type": "null"}}),
            {"result": [1]},
            False,
            "$[0]: 1 is not of type",
        ),
    ],
)
async def test_the_error_is_that_of_the_likeliest_reading(
    type_: object, arguments: dict[str, Any], in_session: bool, line: str
) -> None:
    with pytest.raises(ResultInvalid) as caught:
        await taken(type_, arguments, in_session=in_session)
    assert caught.value.errors[0].startswith(line)


async def test_a_value_that_is_nested_too_deep_is_invalid_and_no_more() -> None:
    deep: Any = "x"
    for _ in range(300):
        deep = [deep]
    async with results() as take:
        for value in (deep, "[" * 100_000):
            with pytest.raises(ResultInvalid):
                await take(list[int], {"result": value})


async def test_the_agent_is_told_of_fifty_errors_at_most() -> None:
    with pytest.raises(ResultInvalid) as caught:
        await taken(list[int], {"result": ["x"] * 1100})
    assert len(caught.value.errors) == 50
    assert caught.value.errors[-1] == "… and 1,051 more"
    with pytest.raises(ResultInvalid) as caught:
        await taken(list[int], {"result": ["x"] * 50})
    assert caught.value.errors[-1].startswith("49: ")
