"""Scripts as values: they grow by copies, fall into turns, and go through JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from pydantic import BaseModel

from thinkwell.testing import Script, script

if TYPE_CHECKING:
    from pathlib import Path


@dataclass
class Point:
    x: int
    y: int


class Place(BaseModel):
    name: str
    at: tuple[int, int]


EVERYTHING = (
    script.expects("go")
    .thinks("hm", message_id="m1")
    .says("so")
    .plans("read", "write", done=1)
    .uses("Write a.py", kind="edit", path="/a.py", new_text="new", old_text="old", output={"ok": True})
    .updates({"sessionUpdate": "strange", "n": 1}, session_id="elsewhere")
    .calls("add", {"a": 1}, expect_error="no")
    .asks("Delete it", options=("allow_always", "reject_once"), expect="reject_once", input={"n": 1})
    .asks_form("Who?", {"type": "object", "properties": {}}, expect={"name": "I"})
    .asks_form("Who?", {"type": "object", "properties": {}}, expect="decline")
    .reads("/a.py", expect="new")
    .writes("/b.py", "text", expect_error=True)
    .runs("ls", "-l", expect="a.py", expect_error=None)
    .sends("noise")
    .sends(b"\xff\x00")
    .floods_stderr(10)
    .pauses(1.5)
    .returns([1, 2])
    .stops(late=script.says("late"))
    .hangs(deaf=True)
    .refuses()
    .fails(-32000, "no", data={"why": "so"})
    .hangs_up()
    .crashes(3)
)


def test_a_method_leaves_the_script_as_it_was() -> None:
    begun = script.says("a")
    longer = begun.says("b")
    assert script.steps == ()
    assert len(begun.steps) == 1
    assert longer == begun + script.says("b")
    assert hash(begun) == hash(script.says("a"))


def test_what_ends_a_turn_begins_the_next() -> None:
    turns = (
        script.says("a").stops().says("b").fails().stops("max_tokens").crashes().hangs_up().says("c").turns
    )
    assert [[str(step) for step in turn] for turn in turns] == [
        ["says('a')", "stops()"],
        ["says('b')", "fails()"],
        ["stops(reason='max_tokens')"],
        ["crashes()"],
        ["hangs_up()"],
        ["says('c')"],
    ]
    assert script.turns == ()
    assert script.says("a").turns == (script.says("a").steps,)


def test_a_script_goes_through_a_file(tmp_path: Path) -> None:
    EVERYTHING.save(tmp_path / "script.json")
    assert Script.load(tmp_path / "script.json") == EVERYTHING


def test_a_file_that_holds_no_script(tmp_path: Path) -> None:
    (tmp_path / "script.json").write_text('{"steps": [{"step": "flies"}]}', "utf-8")
    with pytest.raises(ValueError, match="flies"):
        Script.load(tmp_path / "script.json")


def test_values_become_json() -> None:
    assert script.returns(Point(1, 2)) == script.returns({"x": 1, "y": 2})
    assert script.returns(Place(name="home", at=(1, 2))) == script.returns({"name": "home", "at": [1, 2]})
    with pytest.raises(TypeError, match="has no form in it"):
        script.returns(object())


def test_what_is_late_only_tells() -> None:
    (step,) = script.stops(late=script.says("a").pauses(1)).steps
    assert str(step).startswith("stops(")
    with pytest.raises(ValueError, match=r"stops\(late=…\): asks\('May I\?'\) needs a turn"):
        script.stops(late=script.says("a").asks("May I?"))


def test_a_diff_needs_its_parts() -> None:
    with pytest.raises(ValueError, match="a diff needs path= and new_text="):
        script.uses("Edit", new_text="x")
    with pytest.raises(ValueError, match="a diff needs path= and new_text="):
        script.uses("Edit", path="/a.py", old_text="x")


def test_a_step_is_shown_as_it_was_written_and_not_for_ever() -> None:
    assert str(script.calls("add", {"a": 1}, expect_error=None).steps[0]) == (
        "calls('add', {'a': 1}, expect_error=None)"
    )
    shown = str(script.says("x" * 1000).steps[0])
    assert len(shown) < 210
    assert shown.endswith("x…)")
