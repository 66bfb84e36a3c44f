"""Functions as tools: which ones can be, what the agent reads about them, and their arguments."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable  # noqa: TC003 - read at run time
from datetime import date  # noqa: TC003 - read at run time
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field

from thinkwell import Tool, ToolContext, ToolError, tool

if TYPE_CHECKING:
    from decimal import Decimal

NO_DEFAULT = object()


class Place(BaseModel):
    """Somewhere."""

    name: str
    height: int = 0


class Exact(BaseModel):
    model_config = ConfigDict(strict=True)
    day: date


async def plain(city: str, days: int = 3) -> str:
    """Tell the weather.

    It is mostly right.

    Args:
        city: Where. Any of these
            name: of the city
            code: of the station
        days (int, optional): How many days,
            counted from today.
        nothing: Not a parameter.

    Returns:
        str: The weather.

    Note: not a section, since there are words behind the colon.
    """
    return f"{city}: {days}"


def rest_style(city: str, days: int) -> None:
    """Tell the weather.

    :param city: Where,
        code: or so.
    :param int days: How long.
    :type days: int
    :returns: The weather.
    :raises LookupError: There is no such city.
    """


def undocumented(
    place: Place, places: list[Place], kind: Literal["a", "b"], maybe: int | None = None
) -> None: ...


def in_context(x: int, context: ToolContext) -> str:
    return f"{context.session_id} {x}"


def in_a_context_if_any(x: int, context: ToolContext | None = None) -> str:
    return f"{context and context.session_id} {x}"


def returns_what_only_checkers_know(x: int) -> Decimal | None:
    return None


def with_odd_names(model_dump: int, schema: str, _private: int, p_x: int) -> tuple[int, str, int, int]:
    return model_dump, schema, _private, p_x


def annotated(x: Annotated[int, Field(gt=3, description="More than three.")]) -> int:
    return x


def with_sentinel(x: object = NO_DEFAULT) -> bool:
    return x is NO_DEFAULT


class Weather:
    """Tells the weather."""

    def __init__(self, unit: str) -> None:
        self.unit = unit

    def __call__(self, city: str) -> str:
        return f"{city} in {self.unit}"

    def method(self, city: str) -> str:
        """Tell the weather by a method."""
        return f"{city} by {self.unit}"

    @classmethod
    def of_class(cls, city: str) -> str:
        return f"{city} of {cls.__name__}"

    @staticmethod
    def static(city: str) -> str:
        return city


class Documented:
    def __call__(self, x: int) -> int:
        """Do it."""
        return x


def wrapping(function: Callable[..., object]) -> Callable[..., object]:
    @functools.wraps(function)
    def wrapper(*args: object, **kwargs: object) -> object:
        return function(*args, **kwargs)

    return wrapper


@wrapping
def wrapped(x: int) -> int:
    """Double it."""
    return x * 2


def nothing_to_report(done: float, total: float | None, message: str | None) -> None: ...


async def call(made: Tool, **arguments: Any) -> tuple[str, bool]:
    """Call a tool as an agent does, and return what it is told."""
    result = await made.call(arguments, ToolContext("s1", nothing_to_report))
    (block,) = result.content
    return block["text"], result.is_error


def test_name_description_and_parameters_come_from_the_function() -> None:
    made = tool(plain)
    assert made.name == "plain"
    assert made.description == (
        "Tell the weather.\n\nIt is mostly right.\n\n"
        "Note: not a section, since there are words behind the colon."
    )
    assert made.input_schema == {
        "type": "object",
        "properties": {
            "city": {
                "type": "string",
                "description": "Where. Any of these name: of the city code: of the station",
            },
            "days": {"type": "integer", "default": 3, "description": "How many days, counted from today."},
        },
        "required": ["city"],
    }


def test_docstrings_of_the_rest_style() -> None:
    made = tool(rest_style)
    assert made.description == "Tell the weather."
    properties = made.input_schema["properties"]
    assert properties["city"]["description"] == "Where, code: or so."
    assert properties["days"]["description"] == "How long."


def test_without_a_docstring_the_name_has_to_do() -> None:
    assert tool(undocumented).description == "undocumented"
    assert tool(with_odd_names).description == "with odd names"


def test_models_lists_literals_and_optionals_have_schemas() -> None:
    schema = tool(undocumented).input_schema
    assert schema["required"] == ["place", "places", "kind"]
    assert schema["properties"]["kind"] == {"enum": ["a", "b"], "type": "string"}
    assert schema["properties"]["maybe"]["default"] is None
    assert schema["$defs"]["Place"]["properties"]["name"]["type"] == "string"


def test_an_annotation_says_more() -> None:
    assert tool(annotated).input_schema["properties"]["x"] == {
        "description": "More than three.",
        "exclusiveMinimum": 3,
        "type": "integer",
    }


def test_overrides() -> None:
    made = tool(plain, name="weather", description="Weather!", mention=False)
    assert (made.name, made.description, made.mention) == ("weather", "Weather!", False)
    again = tool(made, name="other")
    assert (again.name, again.description, again.mention) == ("other", "Weather!", False)
    assert again.input_schema == made.input_schema
    given = tool(made, input_schema={"type": "object", "properties": {"city": {"type": "string"}}})
    assert given.input_schema == {"type": "object", "properties": {"city": {"type": "string"}}}
    assert (given.name, given.description) == ("weather", "Weather!")


def test_as_a_decorator() -> None:
    @tool
    def one(x: int) -> int:
        return x

    @tool(name="zwei", mention=False)
    def two(x: int) -> int:
        return x

    assert (one.name, two.name, two.mention) == ("one", "zwei", False)
    assert two(3) == 3


@pytest.mark.parametrize(
    ("function", "name", "description", "arguments", "answer"),
    [
        (plain, "plain", None, {"city": "Rome"}, "Rome: 3"),
        (Weather("K").method, "method", "Tell the weather by a method.", {"city": "Rome"}, "Rome by K"),
        (Weather.of_class, "of_class", "of class", {"city": "Rome"}, "Rome of Weather"),
        (Weather.static, "static", "static", {"city": "Rome"}, "Rome"),
        (Weather("C"), "Weather", "Tells the weather.", {"city": "Rome"}, "Rome in C"),
        (Documented(), "Documented", "Do it.", {"x": 1}, "1"),
        (functools.partial(plain, days=1), "plain", None, {"city": "Rome", "days": 9}, "Rome: 1"),
        (functools.partial(plain, "Oslo"), "plain", None, {}, "Oslo: 3"),
        (functools.partial(Weather("F"), city="Bonn"), "Weather", "Tells the weather.", {}, "Bonn in F"),
        (wrapped, "wrapped", "Double it.", {"x": 4}, "8"),
        (with_sentinel, "with_sentinel", "with sentinel", {}, "true"),
        (lambda: "!", "anything", "anything", {}, "!"),
        (returns_what_only_checkers_know, "returns_what_only_checkers_know", None, {"x": 1}, "null"),
        (
            with_odd_names,
            "with_odd_names",
            None,
            {"model_dump": 1, "schema": "2", "_private": 3, "p_x": 4},
            '[1, "2", 3, 4]',
        ),
    ],
)
async def test_anything_that_can_be_called_with_names_can_be_a_tool(
    function: Callable[..., object],
    name: str,
    description: str | None,
    arguments: dict[str, Any],
    answer: str,
) -> None:
    made = tool(function, name="anything" if name == "anything" else None)
    assert made.name == name
    if description is not None:
        assert made.description == description
    assert await call(made, **arguments) == (answer, False)


async def test_bound_parameters_are_not_the_agents_business() -> None:
    assert list(tool(functools.partial(plain, days=1)).input_schema["properties"]) == ["city"]


@pytest.mark.parametrize("function", [in_context, in_a_context_if_any])
async def test_the_context_is_given_and_not_shown(function: Callable[..., object]) -> None:
    made = tool(function)
    assert list(made.input_schema["properties"]) == ["x"]
    assert await call(made, x=1, context="mine") == ("s1 1", False)


# Arguments


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"place": {"name": "Rome"}}, Place(name="Rome")),
        ({"place": '{"name": "Rome", "height": 3}'}, Place(name="Rome", height=3)),
        ({"place": {"name": "Rome"}, "wait_for_previous": True}, Place(name="Rome")),
    ],
)
async def test_models_may_come_as_json_in_a_string(arguments: dict[str, Any], expected: Place) -> None:
    seen: list[Place] = []

    def take(place: Place) -> None:
        seen.append(place)

    take.__annotations__["place"] = Place
    assert await call(tool(take), **arguments) == ("null", False)
    assert seen == [expected]


def takes(
    texts: list[str], numbers: list[int] | None = None, exact: Exact | None = None, text: str = ""
) -> str:
    return f"{texts} {numbers} {exact and exact.day} {text}"


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        ({"texts": '["a"]'}, "['a'] None None "),
        ({"texts": ["a"], "numbers": "[1, 2]"}, "['a'] [1, 2] None "),
        ({"texts": ["a"], "numbers": "null"}, "['a'] None None "),
        ({"texts": ["a"], "text": "[1]"}, "['a'] None None [1]"),
        ({"texts": ["a"], "exact": {"day": "2026-01-02"}}, "['a'] None 2026-01-02 "),
        ({"texts": "[]", "numbers": "[]", "exact": '{"day": "2026-01-02"}'}, "[] [] 2026-01-02 "),
    ],
)
async def test_what_is_json_in_a_string_is_parsed_where_no_string_is_wanted(
    arguments: dict[str, Any], answer: str
) -> None:
    assert await call(tool(takes), **arguments) == (answer, False)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({}, "texts: Field required"),
        ({"texts": [1]}, "texts.0: Input should be a valid string"),
        ({"texts": "not json"}, "texts: Input should be a valid array"),
        ({"texts": "[" * 100_000}, "texts: Input should be a valid array"),
        ({"texts": '{"a": 1}'}, "texts: Input should be a valid array"),
    ],
)
async def test_wrong_arguments_are_told(arguments: dict[str, Any], part: str) -> None:
    text, is_error = await call(tool(takes), **arguments)
    assert is_error
    assert text.startswith("Invalid arguments: ")
    assert part in text


# Explicit schemas

GIVEN: dict[str, Any] = {
    "type": "object",
    "properties": {"x": {"type": "integer"}, "more": {"type": "object"}},
    "required": ["x"],
    "additionalProperties": False,
}


def given(x: int, more: object = None) -> str:
    return f"{x} {more}"


def takes_everything(**kwargs: object) -> str:
    return str(sorted(kwargs))


async def test_an_explicit_schema_is_shown_and_checked() -> None:
    made = tool(given, input_schema=GIVEN)
    assert made.input_schema == GIVEN
    assert await call(made, x=1) == ("1 None", False)
    assert await call(made, x=1, wait_for_previous=True) == ("1 None", False)
    assert await call(made, x="1", more='{"a": 2}') == ("1 {'a': 2}", False)
    text, is_error = await call(made, more={})
    assert is_error
    assert "$: 'x' is a required property" in text


async def test_an_open_schema_passes_on_every_argument_but_the_agents_own() -> None:
    open_schema: dict[str, Any] = {"type": "object", "properties": {"x": {}}, "additionalProperties": True}
    made = tool(takes_everything, name="t", input_schema=open_schema)
    assert await call(made, x=1, y=2, security_risk="low") == ("['x', 'y']", False)


def contextual(context: ToolContext, x: int) -> str:
    return f"{context.session_id} {x}"


async def test_an_explicit_schema_leaves_the_context_out() -> None:
    made = tool(contextual, input_schema={"type": "object", "properties": {"x": {"type": "integer"}}})
    assert await call(made, x=1) == ("s1 1", False)


# Refused at once


def unannotated(x, y: int) -> None: ...  # type: ignore[no-untyped-def]  # noqa: ANN001  # pyright: ignore[reportUnknownParameterType, reportMissingParameterType]


def variadic(*xs: int) -> None: ...


def keywords(**xs: int) -> None: ...


def positional(x: int, /) -> None: ...


def unknown_name(x: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821  # pyright: ignore[reportUndefinedVariable]


def no_schema(x: Callable[[], int]) -> None: ...


def return_result(x: int) -> None: ...


async def grüße(x: int) -> None: ...


REFUSED: list[tuple[Callable[..., object], dict[str, Any], str]] = [
    (unannotated, {}, "parameter 'x' has no annotation; write x: str, say"),
    (variadic, {}, "must be one that can be passed by its name"),
    (keywords, {}, "must be one that can be passed by its name"),
    (positional, {}, "must be one that can be passed by its name"),
    (unknown_name, {}, "name 'Nowhere' is not defined. Import the name where the function can see it"),
    (no_schema, {}, "pydantic cannot make a schema"),
    (grüße, {}, "'grüße' is not a valid name for a tool"),
    (given, {"name": "with space"}, "'with space' is not a valid name for a tool"),
    (given, {"name": "x" * 65}, "is not a valid name for a tool"),
    (lambda: 1, {}, "'<lambda>' is not a valid name for a tool"),
    (given, {"input_schema": {"type": "string"}}, 'its "type" must be "object"'),
    (given, {"input_schema": {"type": "objekt"}}, "not a valid JSON Schema"),
    (given, {"input_schema": {"type": "object", "properties": {"z": {}, "x": {}}}}, "has no parameter 'z'"),
    (
        given,
        {"input_schema": {"type": "object", "properties": {"more": {}}}},
        "no property for the parameter 'x'",
    ),
    (
        contextual,
        {"input_schema": {"type": "object", "properties": {"context": {}}}},
        "has no parameter 'context'",
    ),
]


@pytest.mark.parametrize(("function", "options", "message"), REFUSED)
def test_what_cannot_be_a_tool_is_refused_with_the_line_to_fix(
    function: Callable[..., object], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(TypeError) as caught:
        tool(function, **options)
    assert message in str(caught.value)
    assert f"({__file__}:{function.__code__.co_firstlineno})" in str(caught.value)


def test_a_class_and_an_object_are_refused_with_their_lines() -> None:
    class Untyped:
        def __call__(self, x): ...  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN204  # pyright: ignore[reportUnknownParameterType, reportMissingParameterType]

    with pytest.raises(TypeError, match=rf"Untyped.__call__\(\) \({__file__}:\d+\): parameter 'x'"):
        tool(Untyped())
    with pytest.raises(TypeError, match=rf"tool Weather\(\) \({__file__}:\d+\): it is a class; write"):
        tool(functools.partial(Weather))


@pytest.mark.parametrize("wrong", [5, "plain", ["list"]])
def test_what_cannot_be_called_is_no_tool(wrong: Any) -> None:
    with pytest.raises(TypeError, match="a tool needs a function"):
        tool(wrong)


def test_a_function_that_hides_its_parameters() -> None:
    with pytest.raises(TypeError, match=r"tool max\(\): its parameters are unknown; wrap it"):
        tool(max)


def test_a_tool_error_is_an_exception_of_thinkwell() -> None:
    assert str(ToolError("Try again")) == "Try again"


KEYS: list[tuple[dict[str, Any], set[str], bool]] = [
    ({"type": "object", "properties": {"a": {}}}, {"a"}, False),
    ({"type": "object"}, set(), True),
    ({"allOf": [{"type": ["object", "null"]}]}, set(), True),
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
    ({"allOf": [{"enum": [1]}]}, set(), False),
    ({"allOf": [{}]}, set(), True),
    ({"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"x": {"$ref": "#"}}}}}, {"x"}, False),
    (
        {
            "$id": "https://example.com/root",
            "oneOf": [
                {"$ref": "#"},
                {"$ref": "own"},
                {"$id": "other", "$ref": "#/$defs/x", "$defs": {"x": {}}},
                {"$id": "third", "$ref": "#/oneOf/9", "oneOf": [False] * 10},
            ],
            "$defs": {"own": {"$id": "own"}},
        },
        set(),
        False,
    ),
]


@pytest.mark.parametrize(("schema", "names", "is_open"), KEYS)
def test_a_schema_of_the_users_names_the_parameters(
    schema: dict[str, Any], names: set[str], is_open: bool
) -> None:
    def make(parameters: set[str]) -> None:
        def function(**arguments: object) -> None:
            """Take them."""

        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        vars(function)["__signature__"] = inspect.Signature(
            [inspect.Parameter(name, kind) for name in sorted(parameters)]
        )
        tool(function, input_schema={"type": "object", **schema})

    make(names)
    for name in names:
        with pytest.raises(TypeError, match=f"the function has no parameter '{name}'"):
            make(names - {name})
    if is_open:
        make({*names, "zz"})
    else:
        with pytest.raises(TypeError, match="it has no property for the parameter 'zz'"):
            make({*names, "zz"})
