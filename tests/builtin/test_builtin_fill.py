"""Values made for JSON Schemas fit them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel, TypeAdapter

from thinkwell.builtin._facts import examine
from thinkwell.builtin._fill import Filler, UnfillableError
from thinkwell.builtin._findings import Answer, Findings

FILES = (
    examine("README.md", "# Tool\n\n## Use\n", absolute="/p/README.md", modified=86400.0),
    examine("tool.py", "import os\n\ndef run(x):\n    # FIXME: slow\n    return x\n", absolute="/p/tool.py"),
)
FOUND = Findings("p", FILES, "How many lines?")
NOTHING = Findings("empty", ())
UNKNOWN = Findings("", (), "", [Answer(tool="language", text="")])

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


@settings(max_examples=300, deadline=None)
@given(schema=st.recursive(LEAVES, branches, max_leaves=8), findings=st.sampled_from([FOUND, NOTHING]))
def test_a_value_fits_its_schema(schema: dict[str, Any], findings: Findings) -> None:
    if "$ref" in str(schema) and "$ref" not in schema:
        return  # references are to the root, where the definitions of such a schema are not
    value = Filler(findings).fill(schema)
    assert fits(schema, value)


def fits(schema: dict[str, Any], value: object) -> bool:
    checker: Any = Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)
    return bool(checker.is_valid(value))


def fill(schema: dict[str, Any], findings: Findings = FOUND) -> Any:
    return Filler(findings).fill(schema)


class Node(BaseModel):
    name: str
    children: list[Node]
    parent: Node | None


def test_recursive_models_come_to_an_end() -> None:
    adapter = TypeAdapter(Node)
    node = adapter.validate_python(fill(adapter.json_schema()))
    assert node.name == "Tool"


def test_a_reference_to_itself_is_survived() -> None:
    assert fill({"$ref": "#"}) == FOUND.project.text


def test_a_text_is_not_made_of_nothing() -> None:
    schema = {
        "type": "object",
        "properties": {"language": {"type": "string", "minLength": 2, "maxLength": 2}},
    }
    assert fill(schema, UNKNOWN) == {"language": "- "}


def test_what_could_go_on_for_ever_takes_the_way_out() -> None:
    for way_out in ("null", "string"):
        node = {
            "type": "object",
            "properties": {"next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": way_out}]}},
            "required": ["next"],
        }
        schema = {"$ref": "#/$defs/node", "$defs": {"node": node}}
        assert fits(schema, fill(schema))


def test_a_schema_that_never_ends_is_refused() -> None:
    loop = {
        "$ref": "#/$defs/a",
        "$defs": {"a": {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "required": ["a"]}},
    }
    with pytest.raises(UnfillableError):
        fill(loop)


@pytest.mark.parametrize(
    ("name", "schema", "value"),
    [
        ("title", {"type": "string"}, "Tool"),
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
        ("confidence", {"type": "number"}, 0.4),
        ("has_todos", {"type": "boolean"}, True),
        ("has_classes", {"type": "boolean"}, False),
        ("is_clean", {"type": "boolean"}, False),
        ("fully_documented", {"type": "boolean"}, False),
        ("functions", {"type": "array", "items": {"type": "string"}}, ["run"]),
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
        ("title", {"type": "string", "format": "colour"}, FOUND.project.text),
        ("title", {"type": "string", "maxLength": 3}, "To…"),
        ("title", {"type": "string", "maxLength": 1}, "T"),
        ("title", {"type": "string", "minLength": 7, "maxLength": 8}, "Tool Too"),
        ("lines", {"type": "integer", "minimum": 7, "multipleOf": 5}, 10),
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
        ("x", {"$ref": "#/properties/files/no/where"}, FOUND.project.text),
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
        ("nothing", {"anyOf": [{"type": "null"}, {"type": "string"}]}, FOUND.project.text),
    ],
)
def test_a_property_gets_the_fact_that_its_name_means(
    name: str, schema: dict[str, Any], value: object
) -> None:
    filled = fill({"type": "object", "properties": {name: schema}, "required": [name]})
    assert filled == {name: value}


def test_an_answer_of_a_tool_is_put_where_its_name_fits() -> None:
    answers = [
        Answer(tool="get_weather", text="rain", value=None),
        Answer(tool="is_public", text="true", value=True),
        Answer(tool="price", text="[1]", value=[1]),
    ]
    schema = {
        "type": "object",
        "properties": {"weather": {"type": "string"}, "public": {"type": "boolean"}, "price": {}},
    }
    assert fill(schema, FOUND.with_answers(answers)) == {"weather": "rain", "public": True, "price": [1]}


def test_choices_are_explained_once() -> None:
    filler = Filler(FOUND)
    filler.fill({"properties": {"severity": {"enum": ["low", "high"]}, "score": {"type": "integer"}}})
    first, second = filler.take_reasons()
    assert "For severity I choose 'low'" in first
    assert "For score I scale 0.40 to 0..10" in second
    assert filler.take_reasons() == []


def test_an_optional_place_that_cannot_be_filled_is_left_out() -> None:
    assert fill({"type": "object", "properties": {"pin": {"type": "string", "pattern": "^#$"}}}) == {}
    with pytest.raises(UnfillableError, match="pin"):
        fill(
            {
                "type": "object",
                "properties": {"pin": {"type": "string", "pattern": "^#$"}},
                "required": ["pin"],
            }
        )
    with pytest.raises(UnfillableError, match="pattern"):
        fill({"type": "string", "pattern": "("})
    with pytest.raises(UnfillableError, match="#"):
        fill({"anyOf": [{"type": "string", "pattern": "^#$"}, {"type": "string", "pattern": "^##$"}]})
    with pytest.raises(UnfillableError, match="3 items"):
        fill({"type": "array", "items": {"const": 1}, "minItems": 3, "uniqueItems": True})


def test_a_correction_is_kept_to() -> None:
    filler = Filler(FOUND)
    schema = {"type": "object", "properties": {"lines": {"type": "integer"}, "extra": {"type": "string"}}}
    assert filler.correct({"lines": {"maximum": 2}, "extra": {"drop": True}})
    assert filler.fill(schema) == {"lines": 2}
    assert not filler.correct({"lines": {"maximum": 2}})
