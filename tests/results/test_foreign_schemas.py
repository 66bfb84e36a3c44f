"""Schemas of strangers: nothing that they say takes a program long."""

from __future__ import annotations

import time
from typing import Any, cast

import pytest
from results.taking import taken
from scripted import Turn, scripted
from web_stage import served

from thinkwell import JsonSchema, ResultInvalid
from thinkwell import events as ev
from thinkwell.web import RequestInvalid
from thinkwell_acp import RpcError


@pytest.fixture
def anyio_backend() -> str:
    """Schemas know of no loop."""
    return "asyncio"


LONG = 10.0
"""Seconds that nothing here takes; without bounds most would take minutes, or for ever."""


async def flaws(schema: dict[str, Any], value: object) -> tuple[str, ...]:
    """What does not fit, as a server finds it that was sent the schema."""

    async def returns(turn: Turn) -> None:
        await turn.returns(**arguments_of(schema, value))

    async def gives_up(_: Turn) -> None:
        raise RpcError(-32603, "once is enough")

    async with served(returns, gives_up) as stage:
        record = await stage.start(output=schema)
        log = await stage.ended(record.id)
    attempts = [event for event in log if isinstance(event, ev.ResultAttempt)]
    return attempts[0].errors


PLAIN = {"type": ["array", "boolean", "null", "number", "string"]}
"""No object: else ``{"result": …}`` fits as it is."""


def arguments_of(schema: dict[str, Any], value: object) -> dict[str, Any]:
    """The result as its tool wants it."""
    return cast("dict[str, Any]", value) if schema.get("type") == "object" and value else {"result": value}


SAME: list[tuple[dict[str, Any], object, object]] = [
    ({"type": "string", "pattern": "^[a-z]{2,64}$"}, "abc", "ABC"),
    ({"pattern": "b+"}, 5, "aac"),
    ({"type": "array", "uniqueItems": True}, [1, True, "1", [1], {"a": 1}, None], [1, 2, 1.0]),
    (
        {"uniqueItems": True},
        [{"a": 1, "b": [2]}, {"a": 1, "b": [3]}],
        [{"a": 1, "b": 2}, {"b": 2, "a": 1}],
    ),
    ({"uniqueItems": True}, [0, False, [0], [False]], [[True], [True]]),
    ({"uniqueItems": True}, "aa", [[], []]),
    ({"uniqueItems": False}, [1, 1], None),
    ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "integer"}}}, 5, "5"),
    ({"anyOf": [{"type": "null"}, {"$ref": "#/anyOf/0"}]}, None, 5),
    ({"$schema": "http://json-schema.org/draft-07/schema#", "pattern": "^a"}, "a", "b"),
    ({"type": "object", "required": ["a"], "additionalProperties": False}, None, {"b": 1}),
]


@pytest.mark.parametrize(("schema", "good", "bad"), SAME)
async def test_they_mean_what_they_mean_elsewhere(schema: dict[str, Any], good: object, bad: object) -> None:
    schema = {**PLAIN, **schema}
    for value in (good, bad):
        try:
            await taken(JsonSchema(schema), arguments_of(schema, value))
            expected: tuple[str, ...] = ()
        except ResultInvalid as exc:
            expected = exc.errors
        assert await flaws(schema, value) == expected


def doubling(steps: int) -> dict[str, Any]:
    """A schema that takes twice the time with each step."""
    steps_of = {f"s{n}": {"anyOf": [{"$ref": f"#/$defs/s{n + 1}"}] * 2} for n in range(steps)}
    return {"$defs": {**steps_of, f"s{steps}": False}, "$ref": "#/$defs/s0"}


@pytest.mark.parametrize(
    ("schema", "value", "flaw"),
    [
        ({**PLAIN, "pattern": "^(a+)+$"}, "a" * 100_000 + "!", "$: "),
        ({**PLAIN, "uniqueItems": True}, [{"a": str(n)} for n in range(8_000)], ""),
        pytest.param(doubling(60), 1, "it takes too long to check it", marks=pytest.mark.long),
        pytest.param(
            {"unevaluatedProperties": False, **doubling(60)},
            {"a": 1},
            "it takes too long to check it",
            marks=pytest.mark.long,
        ),
        ({"$ref": "#"}, 1, "refers to itself without end"),
    ],
    ids=["pattern", "unique", "doubling", "unevaluated", "endless"],
)
async def test_any_schema_takes_bounded_time(schema: dict[str, Any], value: object, flaw: str) -> None:
    began = time.perf_counter()
    found = await flaws(schema, value)
    assert time.perf_counter() - began < LONG
    assert bool(found) is bool(flaw)
    assert flaw in "".join(found)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"items": {"pattern": "(?=a)b"}}, r"the pattern '\(\?=a\)b' cannot be matched in linear time"),
    (
        {"items": [{"pattern": r"(a)\1"}], "$schema": "http://json-schema.org/draft-07/schema#"},
        "linear time",
    ),
    ({"pattern": "(a{1000}){1000}"}, "linear time"),
    ({"pattern": "a" * 2000}, "linear time"),
    ({"anyOf": [{"patternProperties": {"^(a+)+$": {}}}]}, "patternProperties cannot be used here"),
    (
        {"items": {"$schema": "http://json-schema.org/draft-07/schema#", "pattern": "a"}},
        "can only be used at the root",
    ),
]


@pytest.mark.parametrize(("schema", "why"), REFUSED)
async def test_what_could_take_long_is_refused_at_once(schema: dict[str, Any], why: str) -> None:
    async with served() as stage:
        with pytest.raises(RequestInvalid, match=why):
            await stage.start(output=schema)
    async with scripted() as agent:
        agent.think(JsonSchema(schema))  # a program may trust itself


async def test_properties_may_be_called_so() -> None:
    names = {"pattern": {"type": "string"}, "patternProperties": {"const": 1}, "$schema": {"type": "string"}}
    schema = {"type": "object", "properties": {"x": {"properties": {"pattern": names["pattern"]}}}}
    assert await flaws(schema, {"x": {"pattern": "("}}) == ()
    assert await flaws({"properties": {"$schema": names["$schema"]}}, {"$schema": "x"}) == ()
