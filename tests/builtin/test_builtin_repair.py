"""Reading what a tool says is wrong."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from thinkwell.builtin._repair import corrections


class Item(BaseModel, extra="forbid"):
    score: int = Field(1, le=5)
    above: float = Field(1, gt=0)
    name: str = Field("a", min_length=2, max_length=3, validate_default=False)
    code: str = Field("a", pattern="^[a-z]{2}$", validate_default=False)
    tags: list[str] = Field([], max_length=1)
    some: list[str] = Field(["a"], min_length=1)
    even: int = Field(2, multiple_of=2)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"score": 9}, {"score": {"maximum": 5.0}}),
        ({"above": 0}, {"above": {"exclusiveMinimum": 0.0}}),
        ({"name": "abcd"}, {"name": {"maxLength": 3}}),
        ({"name": "a"}, {"name": {"minLength": 2}}),
        ({"code": "X"}, {"code": {"pattern": "^[a-z]{2}$"}}),
        ({"tags": ["a", "b"]}, {"tags": {"maxItems": 1}}),
        ({"some": []}, {"some": {"minItems": 1}}),
        ({"even": 3}, {"even": {"multipleOf": 2.0}}),
        ({"score": "x"}, {"score": {"type": "integer"}}),
        ({"more": 1}, {"more": {"drop": True}}),
    ],
)
def test_what_pydantic_says_becomes_a_constraint(
    value: dict[str, object], expected: dict[str, object]
) -> None:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(Item).validate_python(value)
    lines = [
        f"- {'.'.join(map(str, e['loc']))}: {e['msg']} (got {e['input']!r})" for e in caught.value.errors()
    ]
    assert corrections("The result is invalid:\n" + "\n".join(lines) + "\nCorrect it.") == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("the value: Input should be less than or equal to 3", {"": {"maximum": 3.0}}),
        ("$.items[0].score: 12 is greater than the maximum of 10", {"items.0.score": {"maximum": 10.0}}),
        (
            "Invalid arguments: unit: Input should be 'm' or 'km' (got 'x'); n: must be below 3",
            {"unit": {"enum": ["m", "km"]}, "n": {"exclusiveMaximum": 3.0}},
        ),
        ("a: a value like no other", {}),
        ("nothing to see", {}),
        ("", {}),
    ],
)
def test_what_others_say_becomes_a_constraint(line: str, expected: dict[str, object]) -> None:
    assert corrections(line) == expected
