"""Values made for JSON Schemas fit them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from builtin.tool_box import answer, filled
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel, TypeAdapter

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("quick")

NAMES = st.sampled_from(
    ["title", "score", "files", "issues", "count", "path", "next_step", "isValid", "x", "todos", "at"]
)

LEAVES: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.just({}),
    st.sampled_from(["null", "boolean", "integer", "number", "string"]).map(lambda kind: {"type": kind}),
    st.tuples(st.integers(0, 5), st.integers(5, 40)).map(
        lambda ends: {"type": "string", "minLength": ends[0], "maxLength": ends[1]}
    ),
    st.tuples(st.integers(-50, 50), st.integers(1, 50)).map(
        lambda ends: {"type": "integer", "minimum": ends[0], "maximum": ends[0] + ends[1]}
    ),
    st.tuples(st.integers(-50, 50), st.integers(1, 50)).map(
        lambda ends: {"type": "number", "exclusiveMinimum": ends[0], "exclusiveMaximum": ends[0] + ends[1]}
    ),
    st.integers(2, 7).map(lambda step: {"type": "integer", "multipleOf": step, "minimum": 1}),
    st.lists(st.one_of(st.integers(), st.text(max_size=5)), min_size=1, max_size=4).map(
        lambda of: {"enum": of}
    ),
    st.one_of(st.booleans(), st.text(max_size=5)).map(lambda value: {"const": value}),
    st.sampled_from(
        [
            "date",
            "date-time",
            "time",
            "duration",
            "uri",
            "uuid",
            "email",
            "hostname",
            "ipv4",
            "ipv6",
            "path",
            "colour",
        ]
    ).map(lambda name: {"type": "string", "format": name}),
    st.just({"type": ["string", "null"]}),
    st.just({"type": "string", "pattern": "^[a-z-]+$"}),
)


def branches(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    properties = st.dictionaries(NAMES, inner, max_size=4)
    return st.one_of(
        properties.map(
            lambda of: {
                "type": "object",
                "properties": of,
                "required": sorted(of)[::2],
                "additionalProperties": False,
            }
        ),
        inner.map(lambda item: {"type": "array", "items": item}),
        st.tuples(inner, st.integers(0, 3), st.integers(0, 3)).map(
            lambda of: {"type": "array", "items": of[0], "minItems": of[1], "maxItems": of[1] + of[2]}
        ),
        st.lists(inner, min_size=1, max_size=3).map(
            lambda of: {"type": "array", "prefixItems": of, "items": False, "minItems": len(of)}
        ),
        st.lists(inner, min_size=1, max_size=3).map(lambda of: {"anyOf": of}),
        inner.map(lambda item: {"type": "object", "additionalProperties": item, "minProperties": 1}),
        inner.map(
            lambda item: (
                {"$ref": "#/$defs/a~1b", "$defs": {"a/b": item}} if "$defs" not in str(item) else item
            )
        ),
        inner.map(lambda item: {"allOf": [item]}),
    )


@pytest.mark.parametrize("count", [40, pytest.param(300, marks=pytest.mark.long)])
def test_a_value_fits_its_schema(count: int, found: Path, nothing: Path) -> None:
    @settings(max_examples=count)
    @given(schema=st.recursive(LEAVES, branches, max_leaves=8), folder=st.sampled_from([found, nothing]))
    def fits_its_schema(schema: dict[str, Any], folder: Path) -> None:
        if "$ref" in str(schema) and "$ref" not in schema:
            return  # references are to the root, where the definitions of such a schema are not
        assert fits(schema, anyio.run(value_of, folder, schema))

    fits_its_schema()


def fits(schema: dict[str, Any], value: object) -> bool:
    checker: Any = Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)
    return bool(checker.is_valid(value))


async def value_of(folder: Path, schema: dict[str, Any]) -> Any:
    """Return what the agent makes for a schema of any kind: the schema of a tool is one of objects."""
    definitions = {"$defs": schema["$defs"]} if "$defs" in schema else {}
    wrapped = {"type": "object", "properties": {"result": schema}, "required": ["result"], **definitions}
    ((result),) = (await filled(folder, wrapped)).results()
    return result["result"]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a few things to find."""
    folder = tmp_path_factory.mktemp("found") / "p"
    folder.mkdir()
    (folder / "README.md").write_text("# Tool\n\n## Use\n")
    (folder / "tool.py").write_text("import os\n\ndef run(x):\n    # FIXME: slow\n    return x\n")
    os.utime(folder / "README.md", (86400, 86400))
    os.utime(folder / "tool.py", (0, 0))
    return folder


@pytest.fixture(scope="module")
def nothing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with nothing in it."""
    folder = tmp_path_factory.mktemp("nothing") / "empty"
    folder.mkdir()
    return folder


SUMMARY = (
    "2 files, mostly Python: 8 lines, 1 function, 2 headings and 1 TODO. "
    "The longest function is run in tool.py with 3 lines."
)


class Node(BaseModel):
    name: str
    children: list[Node]
    parent: Node | None


async def test_recursive_models_come_to_an_end(found: Path) -> None:
    adapter = TypeAdapter(Node)
    node = adapter.validate_python(await value_of(found, adapter.json_schema()))
    assert node.name == "Tool"


async def test_a_reference_to_itself_is_survived(found: Path) -> None:
    assert await value_of(found, {"$ref": "#/properties/result"}) == SUMMARY


async def test_a_text_is_not_made_of_nothing(nothing: Path) -> None:
    schema = {
        "type": "object",
        "properties": {"language": {"type": "string", "minLength": 2, "maxLength": 2}},
    }
    assert (await filled(nothing, schema, language=[answer("")])).results() == [{"language": "- "}]


async def test_what_could_go_on_for_ever_takes_the_way_out(found: Path) -> None:
    for way_out in ("null", "string"):
        node = {
            "type": "object",
            "properties": {"next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": way_out}]}},
            "required": ["next"],
        }
        schema = {"$ref": "#/$defs/node", "$defs": {"node": node}}
        value = await value_of(found, schema)
        assert fits(schema, value)
        assert str(value).count("next") == 7


async def test_a_schema_that_never_ends_is_refused(found: Path) -> None:
    loop = {
        "$ref": "#/$defs/a",
        "$defs": {"a": {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "required": ["a"]}},
    }
    box = await filled(found, loop)
    assert "I have no fact that fits a value that has no end." in box.thoughts
    assert "I have no result that fits" in box.messages
    assert box.results() == []


FACTS: list[tuple[str, dict[str, Any], object]] = [
    ("title", {"type": "string"}, "Tool"),
    ("title", {"type": ["null", "string"]}, "Tool"),
    ("language", {"type": "string"}, "Python"),
    ("path", {"type": "string"}, "README.md"),
    ("severity", {"type": "string"}, "low"),
    ("longestFunction", {"type": "string"}, "run"),
    ("first_issue", {"type": "string"}, "tool.py:4 says FIXME: slow"),
    ("next_step", {"type": "string"}, "Do what tool.py:4 leaves open."),
    ("lines", {"type": "integer"}, 8),
    ("dependencies", {"type": "integer"}, 1),
    ("number_of_modules", {"type": "integer"}, 2),
    ("longest", {"type": "integer"}, 3),
    ("total", {"type": "integer"}, 2),
    ("fixmes", {"type": "integer"}, 1),
    ("rating", {"type": "integer", "minimum": 1, "maximum": 5}, 3),
    ("score", {"type": "number"}, 4.0),
    ("scores", {"type": "array", "items": {"type": "number", "minimum": 0, "maximum": 1}}, [1.0, 0.4]),
    ("confidence", {"type": "number"}, 0.4),
    ("has_todos", {"type": "boolean"}, True),
    ("has_classes", {"type": "boolean"}, False),
    ("is_clean", {"type": "boolean"}, False),
    ("fully_documented", {"type": "boolean"}, False),
    ("functions", {"type": "array", "items": {"type": "string"}}, ["run"]),
    ("functions", {"items": {"type": "string"}}, ["run"]),
    ("headings", {"type": "array", "items": {"type": "string"}}, ["Tool", "Use"]),
    ("imports", {"type": "array", "items": {"type": "string"}}, ["os"]),
    ("classes", {"type": "array", "items": {"type": "string"}}, []),
    ("paths", {"type": "array", "items": {"type": "string"}}, ["README.md", "tool.py"]),
    (
        "suggestions",
        {"type": "array", "items": {"type": "string"}, "maxItems": 1},
        ["Do what tool.py:4 leaves open."],
    ),
    (
        "files",
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"README.md": 3, "tool.py": 5},
    ),
    ("language", {"enum": ["rust", "python"]}, "python"),
    ("severity", {"enum": ["high", "medium", "low"]}, "low"),
    ("verdict", {"enum": ["excellent", "fair", "poor"]}, "poor"),
    ("level", {"enum": ["critical", "minor"]}, "minor"),
    ("unit", {"enum": ["words", "lines"]}, "words"),
    ("unit", {"enum": ["words", "many"]}, "many"),
    ("state", {"enum": ["ok", "fatal"]}, "ok"),
    ("grade", {"enum": ["excellent", "fair"]}, "fair"),
    ("at", {"type": "string", "format": "date-time"}, "1970-01-02T00:00:00Z"),
    ("at", {"type": "string", "format": "time"}, "00:00:00Z"),
    ("at", {"type": "string", "format": "duration"}, "PT0S"),
    ("at", {"type": "string", "format": "uuid"}, "0dd55102-1c74-52ee-b140-b4b2f97df49d"),
    ("at", {"type": "string", "format": "email"}, "nobody@example.invalid"),
    ("at", {"type": "string", "format": "hostname"}, "localhost"),
    ("at", {"type": "string", "format": "ipv4"}, "127.0.0.1"),
    ("at", {"type": "string", "format": "ipv6"}, "::1"),
    ("at", {"type": "string", "format": "path"}, "README.md"),
    ("title", {"type": "string", "format": "colour"}, SUMMARY),
    ("title", {"type": "string", "maxLength": 3}, "To…"),
    ("title", {"type": "string", "maxLength": 1}, "T"),
    ("title", {"type": "string", "minLength": 7, "maxLength": 8}, "Tool Too"),
    ("lines", {"type": "integer", "minimum": 7, "multipleOf": 5}, 10),
    ("lines", {"type": "integer", "minimum": 10, "multipleOf": 5}, 10),
    (
        "x",
        {
            "allOf": [
                {"properties": {"files": {"type": "integer"}}, "required": ["files"]},
                {"properties": {"todos": {"type": "integer"}}, "required": ["todos"]},
            ]
        },
        {"files": 2, "todos": 1},
    ),
    ("x", {"$ref": "#/properties/files/no/where"}, SUMMARY),
    ("modified", {"type": "string", "format": "date"}, "1970-01-02"),
    ("link", {"type": "string", "format": "uri"}, "file:///p/README.md"),
    ("slug", {"type": "string", "pattern": "^[a-z]+$"}, "tool"),
    (
        "functions",
        {
            "type": "array",
            "items": {"properties": {"name": {"type": "string"}, "line": {"type": "integer"}}},
        },
        [{"name": "run", "line": 3}],
    ),
    ("largest_function", {"properties": {"name": {"type": "string"}}}, {"name": "run"}),
    ("either", {"anyOf": [{"type": "string", "pattern": "^#$"}, {"type": "integer", "minimum": 9}]}, 9),
    ("nothing", {"anyOf": [{"type": "null"}, {"type": "string"}]}, SUMMARY),
]
"""Names of properties, what they may hold, and what they get."""


async def test_a_property_gets_the_fact_that_its_name_means(found: Path) -> None:
    for name, schema, value in FACTS:
        box = await filled(found, {"type": "object", "properties": {name: schema}, "required": [name]})
        (result,) = box.results()
        if name == "link":
            result[name] = result[name].replace(found.parent.as_uri(), "file://")
        assert result == {name: value}


async def test_an_answer_of_a_tool_is_put_where_its_name_fits(found: Path) -> None:
    schema = {
        "type": "object",
        "properties": {"weather": {"type": "string"}, "public": {"type": "boolean"}, "price": {}},
    }
    box = await filled(
        found, schema, get_weather=[answer("rain")], is_public=[answer("true")], price=[answer("[1]")]
    )
    assert box.results() == [{"weather": "rain", "public": True, "price": [1]}]


async def test_choices_are_explained_once_for_each_value(found: Path) -> None:
    schema = {"properties": {"severity": {"enum": ["low", "high"]}, "score": {"type": "integer"}}}
    again = [answer("score: Input should be at most 3", isError=True), answer()]
    box = await filled(found, schema, return_result=again)
    assert [result["score"] for result in box.results()] == [4, 1]
    said = [line for line in box.thoughts.splitlines() if line.startswith("For ")]
    assert [line.partition(":")[0] for line in said] == [
        "For severity I choose 'low'",
        "For score I scale 0.40 to 0..10",
        "For severity I choose 'low'",
        "For score I scale 0.40 to 0..3",
    ]


async def test_an_optional_place_that_cannot_be_filled_is_left_out(found: Path) -> None:
    pin = {"type": "string", "pattern": "^#$"}
    assert (await filled(found, {"type": "object", "properties": {"pin": pin}})).results() == [{}]
    for schema, reason in (
        (pin, "pin: I have no fact that fits the pattern ^#$"),
        ({"type": "string", "pattern": "("}, "pin: I have no fact that fits the pattern ("),
        (
            {"anyOf": [pin, {"type": "string", "pattern": "^##$"}]},
            "pin: I have no fact that fits the pattern ^#",
        ),
        ({"type": "array", "items": {"const": 1}, "minItems": 3, "uniqueItems": True}, "3 items"),
    ):
        box = await filled(found, {"type": "object", "properties": {"pin": schema}, "required": ["pin"]})
        assert box.results() == []
        assert reason in box.thoughts, box.thoughts
        assert "I have no result that fits" in box.messages


async def test_a_correction_is_kept_to(found: Path) -> None:
    schema = {"type": "object", "properties": {"lines": {"type": "integer"}, "extra": {"type": "string"}}}
    refusal = "lines: Input should be at most 2\nextra: Extra inputs are not permitted"
    box = await filled(found, schema, return_result=[answer(refusal, isError=True)])
    assert box.results() == [{"lines": 8, "extra": SUMMARY}, {"lines": 2}]  # no third time, for the same
    assert "My result was not accepted: lines: Input should be at most 2" in box.messages
