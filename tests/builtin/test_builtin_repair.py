"""What a tool says is wrong with its arguments is put right in the next call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import pytest
from builtin.tool_box import ToolBox, answer, asked, filled
from pydantic import Field, TypeAdapter, ValidationError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("quick")

TEXT = {"type": "string"}
NUMBER = {"type": "number"}
WHOLE = {"type": "integer"}
LIST = {"type": "array", "items": TEXT}


@pytest.mark.parametrize(
    ("name", "schema", "wanted", "refused", "repaired"),
    [
        ("lines", WHOLE, Annotated[int, Field(le=5)], 20, 5),
        ("lines", NUMBER, Annotated[float, Field(gt=20)], 20.0, 20.000001),
        ("title", TEXT, Annotated[str, Field(max_length=3)], "Shapes", "Sh…"),
        ("title", TEXT, Annotated[str, Field(min_length=9)], "Shapes", "Shapes Shapes"),
        ("slug", TEXT, Annotated[str, Field(pattern="^[a-z]{2,9}$")], "2 files", "shapes"),
        ("files", LIST, Annotated[list[str], Field(max_length=1)], ["README.md", "shapes.py"], ["README.md"]),
        ("classes", LIST, Annotated[list[str], Field(min_length=2)], ["Circle"], ["Circle", "area"]),
        ("lines", WHOLE, Annotated[int, Field(multiple_of=15)], 20, 15),
        ("lines", TEXT, int, "twenty", 20),
    ],
)
async def test_what_pydantic_refuses_is_put_right(
    project: Path, name: str, schema: dict[str, Any], wanted: Any, refused: object, repaired: object
) -> None:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(wanted).validate_python(refused)
    (error,) = caught.value.errors()
    refusal = f"The result is invalid:\n- {name}: {error['msg']} (got {refused!r})\nCorrect it."
    arguments = {"type": "object", "properties": {name: schema}, "required": [name]}
    box = await filled(project, arguments, return_result=[answer(refusal, isError=True), answer()])
    first, second = box.results()
    assert first != second == {name: repaired}


async def test_what_is_too_much_is_left_out(project: Path) -> None:
    arguments = {"type": "object", "properties": {"lines": WHOLE, "more": WHOLE}}
    refusal = "- more: Extra inputs are not permitted (got 1)"
    box = await filled(project, arguments, return_result=[answer(refusal, isError=True), answer()])
    assert [sorted(result) for result in box.results()] == [["lines", "more"], ["lines"]]


@pytest.mark.parametrize(
    ("properties", "refusal", "expected"),
    [
        ({"result": WHOLE}, "the value: Input should be less than or equal to 3", {"result": 3}),
        (
            {"files": {"type": "array", "items": {"properties": {"lines": WHOLE}}}},
            "$.files[0].lines: 12 is greater than the maximum of 2",
            {"files": [{"lines": 2}, {"lines": 15}]},
        ),
        (
            {"unit": TEXT, "lines": WHOLE},
            "Invalid arguments: unit: Input should be 'm' or 'km' (got 'x'); lines: must be below 3",
            {"unit": "m", "lines": 2},
        ),
        ({"lines": WHOLE}, "lines: must be no less than 30", {"lines": 30}),
    ],
)
async def test_what_others_refuse_is_put_right(
    project: Path, properties: dict[str, Any], refusal: str, expected: dict[str, object]
) -> None:
    arguments = {"type": "object", "properties": properties, "required": [*properties]}
    box = await filled(project, arguments, return_result=[answer(refusal, isError=True), answer()])
    assert box.results()[1:] == [expected]


async def test_what_is_not_understood_is_not_tried_again(project: Path) -> None:
    for refusal in ("lines: a value like no other", "nothing to see", ""):
        box = ToolBox(
            [["count"]],
            schemas={"count": {"type": "object", "properties": {"lines": WHOLE}}},
            answers={"count": [answer(refusal, isError=True)]},
        )
        await asked(project, box=box)
        assert len(box.called) == 1
        assert "count does not help" in box.thoughts
