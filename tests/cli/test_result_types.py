"""``--schema`` and ``--type``: results that scripts can read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from cli.command import run_command
from cli.typing_in import home, program, scripted

from thinkwell.testing import script

if TYPE_CHECKING:
    from pathlib import Path

    from thinkwell.events import JsonValue

__all__ = ("home",)

MODELS = """\
from dataclasses import dataclass
from pydantic import BaseModel, Field, TypeAdapter

@dataclass
class Point:
    x: int
    y: int

class Review(BaseModel):
    score: int = Field(alias="theScore")

class Outer:
    Points = list[Point]

either = TypeAdapter(int | str)
one = Point(1, 2)
def function(): pass
def __getattr__(name):
    raise RuntimeError("not yet") if name == "lazy" else AttributeError(name)
"""


@pytest.fixture
def models(home: Path) -> Path:
    (home / "models_of_cli_tests.py").write_text(MODELS, "utf-8")
    return home


def result(folder: Path, value: JsonValue, *arguments: str) -> str:
    command = scripted(folder, script.returns(value))
    done = run_command("run", "go", "-q", "--command", command, *arguments)
    assert done.code == 0, done.err
    return done.out


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Point", {"x": 1, "y": 2}),
        ("Review", {"theScore": 3}),
        ("Outer.Points", [{"x": 1, "y": 2}]),
        ("either", "text"),
    ],
)
def test_a_type_is_imported_from_the_current_folder(name: str, value: JsonValue, models: Path) -> None:
    text = result(models, value, "--type", f"models_of_cli_tests:{name}")
    assert json.loads(text) == value
    assert text == json.dumps(value, indent=2) + "\n"


def test_a_schema(home: Path) -> None:
    (home / "schema.json").write_text('{"type": "object", "properties": {"a": {"type": "integer"}}}', "utf-8")
    assert json.loads(result(home, {"a": 1}, "--schema", "schema.json")) == {"a": 1}


def test_characters_that_do_something_to_a_terminal_are_escaped(home: Path) -> None:
    (home / "schema.json").write_text('{"type": "object"}', "utf-8")
    value: JsonValue = {"a": "\x1b[2J\x9b2J\u202eé\u2028"}
    text = result(home, value, "--schema", "schema.json")
    assert json.loads(text) == value
    assert all(char.isprintable() or char == "\n" for char in text)
    assert "é" in text


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "No such file"),
        ("{", "is no JSON: Expecting"),
        ("\udcff", "is no JSON: 'utf-8' codec"),
        ("[1]", "holds a list; a JSON Schema is an object"),
        ('{"type": "nonsense"}', "nonsense"),
        ("[" * 100_000, "is no JSON"),
    ],
)
def test_a_schema_that_cannot_be_used(text: str | None, problem: str, home: Path) -> None:
    if text is not None:
        (home / "schema.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    done = run_command("run", "go", "--schema", "schema.json")
    assert (done.code, done.out) == (2, "")
    assert "--schema" in done.err
    assert problem in done.err


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("Review", "give MODULE:NAME"),
        ("no.such.module:Review", "cannot be imported: ModuleNotFoundError"),
        ("broken_of_cli_tests:Review", "cannot be imported: ZeroDivisionError"),
        ("exiting_of_cli_tests:Review", "cannot be imported: SystemExit: 0"),
        ("models_of_cli_tests:Nothing", "has no 'Nothing'"),
        ("models_of_cli_tests:lazy", "has no 'lazy': not yet"),
        ("models_of_cli_tests:function", "it is a name or a function, not a type"),
        ("models_of_cli_tests:one", "you passed an instance of Point"),
    ],
)
def test_a_type_that_cannot_be_used(name: str, problem: str, models: Path) -> None:
    (models / "broken_of_cli_tests.py").write_text("1 / 0", "utf-8")
    (models / "exiting_of_cli_tests.py").write_text("raise SystemExit(0)", "utf-8")
    done = run_command("run", "go", "--type", name)
    assert (done.code, done.out) == (2, "")
    assert "--type" in done.err
    assert problem in done.err


def test_not_both(home: Path) -> None:
    done = run_command("run", "go", "--type", "builtins:int", "--schema", "schema.json")
    assert done.code == 2
    assert "not both" in done.err


def test_text_comes_as_it_is(home: Path) -> None:
    said = "a\n\x1b[1mb\u202e\n"
    command = scripted(home, script.says(said))
    done = program("run", "go", "--command", command)
    assert (done.returncode, done.stdout.decode()) == (0, said)
