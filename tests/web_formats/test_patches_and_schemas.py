"""Changes of states as patches, and answers to questions as schemas."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinkwell import events as ev
from thinkwell._forms import check_form
from thinkwell._json_schema import checker, is_array, is_object
from thinkwell.questions import FieldChoice, FormField
from thinkwell.view import ToolView
from thinkwell.web._answer_schemas import answer_schema
from thinkwell.web.front_ends._json_patch import Operation, json_patch
from thinkwell.web.front_ends._telling import call_text

KEYS = st.text(st.sampled_from("ab~/0"), max_size=3)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from([1.0, "", "a", "~1"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


def applied(document: Any, operations: list[Operation]) -> Any:
    """Apply a patch as RFC 6902 says, for the three operations that are used."""
    document = copy.deepcopy(document)
    for operation in operations:
        path, op, value = str(operation["path"]), operation["op"], copy.deepcopy(operation.get("value"))
        keys = [key.replace("~1", "/").replace("~0", "~") for key in path.split("/")[1:]]
        if not keys:
            document = value
            continue
        place = document
        for key in keys[:-1]:
            place = place[int(key)] if is_array(place) else place[key]
        last: Any = keys[-1]
        if is_array(place):
            if op == "add":
                assert last == "-"
                place.append(value)
                continue
            last = int(last)
        assert (last in place) is (op != "add") if is_object(place) else last < len(place)
        if op == "remove":
            del place[last]
        else:
            place[last] = value
    return document


def as_text(value: Any) -> str:
    """A value such that the same text means the same JSON."""
    return json.dumps(value, sort_keys=True)


@given(JSON, JSON)
def test_a_patch_makes_one_document_of_another(old: Any, new: Any) -> None:
    assert as_text(applied(old, json_patch(old, new))) == as_text(new)
    assert json_patch(new, copy.deepcopy(new)) == []


def test_a_patch_says_no_more_than_has_changed() -> None:
    old = {"plan": [{"a/b": 1, "s": "x"}, {"s": "y"}]}
    new = {"plan": [{"a/b": 2, "s": "x"}, {"s": "y"}, {"s": "z"}]}
    assert json_patch(old["plan"], new["plan"], "/plan") == [
        {"op": "replace", "path": "/plan/0/a~1b", "value": 2},
        {"op": "add", "path": "/plan/-", "value": {"s": "z"}},
    ]


def nested(depth: int) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = [value]
    return value


def test_what_is_nested_deep_is_replaced() -> None:
    old, new = nested(100_000), nested(100_000)
    (operation,) = json_patch(old, new, "/x")
    assert (operation["op"], operation["path"]) == ("replace", "/x")
    assert operation["value"] is new
    assert call_text(ToolView(id="a", output=new)) == ""


def question(*fields: FormField, **more: Any) -> ev.QuestionAsked:
    return ev.QuestionAsked(id="q", title="?", asks=more.pop("asks", "form"), fields=fields, **more)


CHOICES = (FieldChoice(value="a", title="A", description="first"), FieldChoice(value="b", title="B"))

FORM = (
    FormField(name="text", type="string", minimum=2, maximum=4, pattern="^x", description="a text"),
    FormField(name="mail", type="string", format="email", default="a@b.example"),
    FormField(name="number", type="number", minimum=0.5),
    FormField(name="whole", type="integer", maximum=3),
    FormField(name="yes", type="boolean", default=False),
    FormField(name="one", type="choice", choices=CHOICES, required=True, title="One of them"),
    FormField(name="some", type="choices", choices=CHOICES, minimum=1, maximum=2),
    FormField(name="odd", type="unknown", raw={"type": "string", "minLength": 1}),
    FormField(name="odder", type="unknown"),
)


@pytest.mark.parametrize(
    "values",
    [
        {"one": "a"},
        {"one": "c"},
        {},
        {"one": "a", "text": "xy"},
        {"one": "a", "text": "x"},
        {"one": "a", "text": "yyy"},
        {"one": "a", "text": 3},
        {"one": "a", "number": 0.5},
        {"one": "a", "number": 0.1},
        {"one": "a", "whole": 4},
        {"one": "a", "whole": 3},
        {"one": "a", "yes": True},
        {"one": "a", "yes": "yes"},
        {"one": "a", "some": ["a", "b"]},
        {"one": "a", "some": []},
        {"one": "a", "some": ["a", "a"]},
        {"one": "a", "some": ["c"]},
        {"one": "a", "odd": "x", "odder": 3},
    ],
)
def test_a_schema_takes_what_the_form_takes(values: dict[str, Any]) -> None:
    schema = answer_schema(question(*FORM))
    _, wrong = check_form(FORM, values)
    assert bool(checker(schema)(values)) is bool(wrong)


def test_a_schema_says_what_a_field_is() -> None:
    properties = answer_schema(question(*FORM))["properties"]
    assert properties["mail"] == {"type": "string", "format": "email", "default": "a@b.example"}
    assert properties["one"]["title"] == "One of them"
    assert properties["one"]["oneOf"] == [
        {"const": "a", "title": "A", "description": "first"},
        {"const": "b", "title": "B"},
    ]
    assert properties["yes"] == {"type": "boolean", "default": False}
    assert properties["odder"] == {}


def test_what_is_allowed_is_said_by_a_word_or_an_option() -> None:
    options = (ev.QuestionOption(id="y", name="Yes", kind="allow_once"),)
    assert answer_schema(question(asks="permission", options=options)) == {
        "type": "object",
        "properties": {
            "approved": {"type": "boolean"},
            "option": {"type": "string", "oneOf": [{"const": "y", "title": "Yes"}]},
        },
        "required": ["approved"],
    }
    assert answer_schema(question(asks="url", url="https://a.example"))["required"] == ["approved"]
