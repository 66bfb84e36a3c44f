"""Every kind of output type, from the schema that the agent sees to the value that the program gets."""

from __future__ import annotations

import enum
from collections.abc import Callable  # noqa: TC003 - read at run time
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NamedTuple, NotRequired, TypeVar, cast
from uuid import UUID

import pytest
from jsonschema.validators import validator_for
from pydantic import BaseModel, ConfigDict, Field, RootModel, TypeAdapter
from results.taking import taken
from typing_extensions import TypedDict

from thinkwell import JsonSchema, ResultInvalid, ThinkBuilder
from thinkwell.events import JsonValue  # noqa: TC001 - read at run time
from thinkwell.testing import ScriptedAgent, ScriptedTurn, script

T = TypeVar("T")


class Point(BaseModel):
    x: int
    y: int = 0


class Line(BaseModel):
    start: Point
    end: Point
    label: str | None = None


class Tree(BaseModel):
    name: str
    children: list[Tree] = []


class Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    when: date
    id: UUID
    pair: tuple[int, str]


class Box(BaseModel, Generic[T]):
    content: T


class Everything(BaseModel):
    a: int = 1
    b: str | None = None
    made: object = Field(default_factory=object, exclude=True)


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    name: str


@dataclass
class Person:
    name: str
    tags: list[str] = field(default_factory=list)


class Movie(TypedDict):
    title: str
    year: NotRequired[int]


class Pair(NamedTuple):
    left: int
    right: str


class Numbers(RootModel[list[int]]):
    pass


UUID_TEXT = "12345678-1234-5678-1234-567812345678"
LOCAL_REFERENCES = JsonSchema(
    {
        "$ref": "#/definitions/node",
        "definitions": {
            "node": {
                "type": "object",
                "properties": {"next": {"anyOf": [{"type": "null"}, {"$ref": "#/definitions/node"}]}},
                "required": ["next"],
            }
        },
    }
)
ROOT_RECURSION = JsonSchema({"anyOf": [{"type": "integer"}, {"type": "array", "items": {"$ref": "#"}}]})

CASES: dict[str, tuple[object, dict[str, Any], object]] = {
    "model": (Point, {"x": 1}, Point(x=1)),
    "nested": (Line, {"start": {"x": 1}, "end": {"x": 2}}, Line(start=Point(x=1), end=Point(x=2))),
    "recursive": (
        Tree,
        {"result": {"name": "a", "children": [{"name": "b", "children": []}]}},
        Tree(name="a", children=[Tree(name="b")]),
    ),
    "strict": (
        Strict,
        {"when": "2026-01-02", "id": UUID_TEXT, "pair": [1, "a"]},
        Strict(when=date(2026, 1, 2), id=UUID(UUID_TEXT), pair=(1, "a")),
    ),
    "generic": (Box[Point], {"content": {"x": 3}}, Box[Point](content=Point(x=3))),
    "defaults": (Person, {"name": "Ada"}, Person("Ada")),
    "typed dict": (Movie, {"title": "M"}, {"title": "M"}),
    "named tuple": (Pair, {"result": [1, "a"]}, Pair(1, "a")),
    "root model": (Numbers, {"result": [1, 2]}, Numbers([1, 2])),
    "enum": (Colour, {"result": "red"}, Colour.RED),
    "list": (list[Point], {"result": [{"x": 1}]}, [Point(x=1)]),
    "tuple": (tuple[int, ...], {"result": [1, 2]}, (1, 2)),
    "dict": (dict[str, int], {"one": 1}, {"one": 1}),
    "literal": (Literal["yes", "no"], {"result": "yes"}, "yes"),
    "int": (int, {"result": 4}, 4),
    "float": (float, {"result": 4.5}, 4.5),
    "bool": (bool, {"result": False}, False),
    "none or int": (TypeAdapter(int | None), {"result": None}, None),
    "union": (Point | Person, {"result": {"name": "Ada"}}, Person("Ada")),
    "discriminated": (
        TypeAdapter(Annotated[Cat | Dog, Field(discriminator="kind")]),
        {"result": {"kind": "dog", "name": "Rex"}},
        Dog(kind="dog", name="Rex"),
    ),
    "adapter": (
        TypeAdapter(list[Movie]),
        {"result": [{"title": "M", "year": 1931}]},
        [{"title": "M", "year": 1931}],
    ),
    "constrained text": (Annotated[str, Field(min_length=2)], {"result": "ab"}, "ab"),
    "anything": (Any, {"result": [1, {"a": None}]}, [1, {"a": None}]),
    "schema": (JsonSchema({"type": "integer", "minimum": 3}), {"result": 3}, 3),
    "object schema": (JsonSchema({"type": "object", "required": ["a"]}), {"a": 1, "b": 2}, {"a": 1, "b": 2}),
    "plain schema": ({"type": "array", "items": {"type": "null"}}, {"result": [None]}, [None]),
    "local references": (LOCAL_REFERENCES, {"result": {"next": {"next": None}}}, {"next": {"next": None}}),
    "root recursion": (ROOT_RECURSION, {"result": [1, [2, [3]]]}, [1, [2, [3]]]),
}


@pytest.mark.parametrize("case", CASES)
async def test_a_value_of_the_type_comes_back_as_the_type_says(case: str) -> None:
    type_, arguments, expected = CASES[case]
    schemas: list[dict[str, Any]] = []

    async def returns(turn: ScriptedTurn) -> None:
        (tool,) = turn.tools
        schemas.append(tool.schema)
        answer = await turn.call("return_result", arguments)
        assert not answer.is_error, answer

    async with ScriptedAgent(script.does(returns)).open() as agent:
        builder: ThinkBuilder[Any] = agent.think(cast("type[Any]", type_))
        result = await builder.text("Go").run()
    assert result == expected
    assert type(result) is type(expected)
    (schema,) = schemas
    assert schema["type"] == "object"
    validator = validator_for(schema)(schema)
    assert validator.is_valid(arguments)
    assert not validator.is_valid([])


@pytest.mark.parametrize("case", CASES)
async def test_a_session_of_many_types_takes_it_under_result(case: str) -> None:
    type_, arguments, expected = CASES[case]
    value = arguments["result"] if arguments.keys() == {"result"} else arguments

    async with (
        ScriptedAgent(script.calls("return_result", {"result": value})).open() as agent,
        agent.session() as session,
    ):
        assert await session.think(cast("type[Any]", type_)).text("Go").run() == expected


@pytest.mark.parametrize("output", [None, str])
async def test_text_is_the_last_message(output: type[str] | None) -> None:
    told = script.says("First", message_id="1").says("Sec", message_id="2").says("ond", message_id="2")
    async with ScriptedAgent(told).open() as agent:
        stream = agent.think(output).text("Go").stream()
        assert await stream.result == "Second"
        await stream.wait()
        assert stream.view.text == "FirstSecond"
        assert agent.think(output).text("Go").explain().tools == ()


async def test_a_default_without_a_json_form_is_left_out_of_the_schema() -> None:
    async with ScriptedAgent(script.calls("return_result", {"a": 2})).open() as agent:
        result = await agent.think(Everything).text("Go").run()
    assert (result.a, result.b) == (2, None)


class Checked(BaseModel):
    word: str

    def model_post_init(self, context: object, /) -> None:
        if self.word == "bad":
            raise LookupError("no such word")


async def test_what_a_validator_raises_is_told_to_the_agent_and_counts() -> None:
    played = ScriptedAgent(script.returns({"word": "bad"}, expect_error="no such word"))
    async with played.open() as agent:
        stream = agent.think(Checked).text("Go").stream(retries=0)
        with pytest.raises(ResultInvalid) as caught:
            await stream.result
        await stream.wait()
    assert caught.value.errors == ("LookupError: no such word",)


# Refused at once


class NoSchema:
    pass


class Unfinished(BaseModel):
    other: Missing  # type: ignore[name-defined]  # noqa: F821  # pyright: ignore[reportUndefinedVariable]


class WithCallable(BaseModel):
    hook: Callable[[], int]


def function(x: int) -> int:
    return x


WRONG: tuple[object, ...] = (
    5,
    "Point",
    NoSchema,
    NoSchema(),
    Unfinished,
    WithCallable,
    function,
    [],
    JsonSchema({"type": "intger"}),
    JsonSchema({"$ref": "#/$defs/missing"}),
    JsonSchema({"$dynamicRef": "#missing"}),
    JsonSchema({"$defs": {"own": {"$id": "own", "$ref": "#/nowhere/here"}}}),
    JsonSchema({"type": "array", "items": [{"$ref": "#/items/1"}], "prefixItems": []}),
)


@pytest.mark.parametrize("wrong", WRONG)
async def test_a_wrong_type_is_refused_at_once_with_what_to_give_instead(wrong: Any) -> None:
    async with ScriptedAgent(script).open() as agent:
        with pytest.raises(TypeError, match=r"^think\(") as caught:
            agent.think(wrong)
        assert "JsonSchema" in str(caught.value) or "JSON Schema" in str(caught.value)


async def test_the_message_names_the_line_of_the_class_and_the_field() -> None:
    async with ScriptedAgent(script).open() as agent:
        with pytest.raises(TypeError, match="Missing") as caught:
            agent.think(Unfinished)
        line = Path(__file__).read_text("utf-8").split("class Unfinished")[0].count("\n") + 1
        assert f"{__file__}:{line}" in str(caught.value)


async def test_a_reference_that_leads_somewhere_is_fine() -> None:
    schema = JsonSchema(
        {
            "$id": "https://example.com/root",
            "type": "array",
            "prefixItems": [{"type": "integer"}, {"$ref": "#/prefixItems/0"}],
            "items": {"$ref": "#/$defs/a~1b%20c"},
            "$defs": {
                "a/b c": {"type": "string"},
                "own": {"$id": "own", "$ref": "#", "enum": [{"$ref": "#/x"}]},
            },
        }
    )
    played = ScriptedAgent(script.returns([1, 2, "x"]))
    async with played.open() as agent:
        assert await agent.think(schema).text("Go").run() == [1, 2, "x"]
    assert played.sent.tools[0].schema["properties"]["result"]["prefixItems"][1] == {
        "$ref": "#/properties/result/prefixItems/0"
    }


@pytest.mark.parametrize("where", ["https://example.com/schema.json", "file:///etc/passwd", "other.json"])
async def test_a_schema_is_never_fetched_from_anywhere(where: str) -> None:
    async with ScriptedAgent(script).open() as agent:
        with pytest.raises(
            TypeError, match=f"refers to {where}, which it does not contain; nothing is fetched"
        ):
            agent.think(JsonSchema({"type": "array", "items": {"$ref": where}}))


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"anyOf": [{"type": "integer"}, {"$ref": "#"}]},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
    ],
)
async def test_a_schema_that_refers_to_itself_takes_no_value(
    schema: dict[str, JsonValue],
) -> None:
    with pytest.raises(ResultInvalid, match="refers to itself without end"):
        await taken(JsonSchema(schema), {"result": "a", "security_risk": "low"})
