"""What a valid answer to a form is."""

from __future__ import annotations

import enum
import time
from itertools import count
from typing import Any

import jsonschema
import pytest
from drawing import drawn
from hypothesis import strategies as st
from questions.form_strategies import EXAMPLES, PLAIN, TEXTS, Form, field_of, fields_of, forms

from thinkwell import FormField
from thinkwell.questions import FieldChoice, check_form


@pytest.fixture
def anyio_backend() -> str:
    """Forms know of no loop."""
    return "asyncio"


async def checked(*rows: tuple[dict[str, Any], object]) -> list[tuple[object, str | None]]:
    """The value of each field, and what is wrong with it."""
    asked = await fields_of(*({"type": "object", "properties": {"f": property_}} for property_, _ in rows))
    outcomes = [check_form(fields, {"f": value}) for fields, (_, value) in zip(asked, rows, strict=True)]
    return [(values.get("f"), errors.get("f")) for values, errors in outcomes]


async def asked_forms(kinds: st.SearchStrategy[Form]) -> list[tuple[Form, tuple[FormField, ...]]]:
    """Return forms, each with the fields that it becomes."""
    made = drawn(kinds, EXAMPLES)
    return list(zip(made, await fields_of(*(form.schema for form in made)), strict=True))


@pytest.mark.draws
async def test_values_that_fit_pass_and_come_out_equal() -> None:
    for form, fields in await asked_forms(forms()):
        values, errors = check_form(fields, form.values)
        assert (values, errors) == (form.values, {})
        assert {name: type(value) for name, value in values.items()} == {
            name: type(value) for name, value in form.values.items()
        }


@pytest.mark.draws
async def test_whatever_breaks_one_constraint_is_an_error_of_that_field() -> None:
    for form, fields in await asked_forms(forms()):
        for name, sample in form.properties.items():
            rest = {other: value for other, value in form.values.items() if other != name}
            for misfit in sample.misfits:
                values, errors = check_form(fields, form.values | {name: misfit})
                assert (values, set(errors)) == (rest, {name}), misfit
            values, errors = check_form(fields, rest)
            assert (values, set(errors)) == (rest, {name} & set(form.required))


@st.composite
def filled_in(draw: st.DrawFn) -> tuple[Form, dict[str, Any]]:
    """Return forms with values that may fit or not."""
    form = draw(forms(PLAIN))
    values = dict(form.values)
    for name, sample in form.properties.items():
        anything = st.one_of(
            TEXTS, st.integers(-120, 120), st.floats(-120, 120), st.booleans(), st.lists(TEXTS, unique=True)
        )
        values[name] = draw(st.one_of(st.sampled_from([sample.fits, *sample.misfits]), anything))
    for name in draw(st.sets(st.sampled_from(sorted(values)))):
        del values[name]
    if draw(st.booleans()):
        values["no such field"] = 1
    return form, values


@pytest.mark.draws
async def test_json_schema_comes_to_the_same_verdict() -> None:
    made = drawn(filled_in(), EXAMPLES)
    all_fields = await fields_of(*(form.schema for form, _ in made))
    for (form, values), fields in zip(made, all_fields, strict=True):
        validator: Any = jsonschema.Draft202012Validator(form.schema)
        wrong = {
            str(next(iter(error.absolute_path), "missing or unknown"))
            for error in validator.iter_errors(values)
        }
        _, errors = check_form(fields, values)
        known = {name for name in errors if name in values and name in form.properties}
        assert known == wrong - {"missing or unknown"}
        assert bool(errors) == bool(wrong)


# Names, and what is left out


async def test_names_that_the_form_does_not_have_are_refused() -> None:
    fields = [await field_of({"type": "string"})]
    assert check_form(fields, {"F": "x"}) == ({}, {"F": "the form has no such field; it has 'f'"})
    assert check_form([], {"F": "x"}) == ({}, {"F": "the form has no such field; it has nothing at all"})


async def test_a_required_field_needs_a_value() -> None:
    field = await field_of({"type": "string"}, required=True)
    assert check_form([field], {}) == ({}, {"f": "a value is required"})
    assert check_form([field], {"f": None}) == ({}, {"f": "a value is required"})
    assert check_form([field], {"f": ""}) == ({"f": ""}, {})


@pytest.mark.parametrize(
    ("property_", "default"),
    [
        ({"type": "string", "default": ""}, ""),
        ({"type": "string", "enum": ["a", "b"], "default": "b"}, "b"),
        ({"type": "number", "default": 0}, 0),
        ({"type": "integer", "default": 3}, 3),
        ({"type": "boolean", "default": False}, False),
        ({"type": "array", "items": {"type": "string", "enum": ["a"]}, "default": []}, []),
    ],
)
@pytest.mark.parametrize("required", [True, False])
async def test_defaults_are_filled_in(property_: dict[str, Any], default: object, *, required: bool) -> None:
    assert check_form([await field_of(property_, required=required)], {}) == ({"f": default}, {})


async def test_none_leaves_a_field_empty_that_has_a_default() -> None:
    assert check_form([await field_of({"type": "string", "default": "x"})], {"f": None}) == ({}, {})


async def test_a_default_that_does_not_fit_its_own_field_counts_as_none() -> None:
    property_ = {"type": "integer", "minimum": 1, "default": 0}
    assert check_form([await field_of(property_)], {}) == ({}, {})
    assert check_form([await field_of(property_, required=True)], {}) == (
        {},
        {"f": "a value is required; the default of the agent's does not fit: it should be at least 1, not 0"},
    )


def test_one_error_hides_none_of_the_others() -> None:
    fields = [FormField(name="a", type="integer"), FormField(name="b", type="boolean")]
    values, errors = check_form(fields, {"a": "1", "b": 0, "c": 0})
    assert (values, set(errors)) == ({}, {"a", "b", "c"})


# Types


class Color(enum.StrEnum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


PLAIN_VALUES: list[tuple[dict[str, Any], object, object]] = [
    ({"type": "integer"}, 3.0, 3),
    ({"type": "integer"}, -0.0, 0),
    ({"type": "integer"}, Level.HIGH, 3),
    ({"type": "integer"}, -(2**63), -(2**63)),
    ({"type": "integer", "maximum": 2**53 + 1}, 2**53 + 1, 2**53 + 1),
    ({"type": "number"}, 3, 3),
    ({"type": "number"}, 1e300, 1e300),
    ({"type": "string"}, Color.RED, "red"),
    ({"type": "string", "enum": ["red"]}, Color.RED, "red"),
    ({"type": "array", "items": {"type": "string", "enum": ["red"]}}, (Color.RED,), ["red"]),
]


async def test_values_become_plain() -> None:
    told = await checked(*((property_, value) for property_, value, _ in PLAIN_VALUES))
    for (result, error), row in zip(told, PLAIN_VALUES, strict=True):
        assert (result, type(result), error) == (row[2], type(row[2]), None), row


CHOICES: dict[str, Any] = {
    "type": "array",
    "items": {"anyOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]},
    "minItems": 1,
}
WRONG: list[tuple[dict[str, Any], object, str]] = [
    ({"type": "integer"}, True, "should be a whole number, not True"),
    ({"type": "integer"}, 3.5, "should be a whole number, not 3.5"),
    ({"type": "integer"}, "3", "should be a whole number, not '3'"),
    ({"type": "integer"}, 2**63, f"should be a number of 64 bits, not {2**63}"),
    ({"type": "integer"}, 1e300, "should be a number of 64 bits, not a number of 997 bits"),
    ({"type": "integer", "maximum": 2**53}, 2**53 + 1, f"should be at most {2**53}, not {2**53 + 1}"),
    ({"type": "number"}, False, "should be a number, not False"),
    ({"type": "number"}, float("nan"), "should be a finite number, not nan"),
    ({"type": "number"}, float("-inf"), "should be a finite number, not -inf"),
    ({"type": "integer"}, float("inf"), "should be a finite number, not inf"),
    ({"type": "number"}, 10**4000, "should be a number of 64 bits, not a number of 13288 bits"),
    ({"type": "number", "minimum": 0.5}, 0, "should be at least 0.5, not 0"),
    ({"type": "boolean"}, 1, "should be true or false, not 1"),
    ({"type": "string"}, None.__class__, "should be a text, not a value of type type"),
    ({"type": "string"}, b"x", "should be a text, not a value of type bytes"),
    ({"type": "string"}, "\ud800", "should be a text of whole characters, not '\\ud800'"),
    ({"type": "string", "minLength": 1}, "", "should have at least 1 character, not 0"),
    ({"type": "string", "maxLength": 2}, "😀😀😀", "should have at most 2 characters, not 3"),
    ({"type": "string", "pattern": "^a"}, "b", "should match the pattern '^a', not 'b'"),
    ({"type": "string", "enum": ["a", "b"]}, "c", "should be one of 'a', 'b', not 'c'"),
    ({"type": "string", "enum": []}, "c", "should be one of nothing at all, not 'c'"),
    ({"type": "string", "format": "date"}, "1.2.26", "should be a date such as 2026-01-31, not '1.2.26'"),
    (CHOICES, "a", "should be a list of texts, not 'a'"),
    (CHOICES, [1], "should be a text, not 1"),
    (CHOICES, ["c"], "should hold only 'a', 'b', not 'c'"),
    (CHOICES, ["a", "a"], "should hold each choice once, and holds 'a' twice"),
    (CHOICES, [], "should have at least 1 choice, not 0"),
    (CHOICES, {"a"}, "should be a list of texts, not a value of type set"),
]


async def test_an_error_says_what_is_wrong_and_what_would_be_right() -> None:
    told = await checked(*((property_, value) for property_, value, _ in WRONG))
    assert told == [(None, error) for _, _, error in WRONG]


def test_messages_are_bounded() -> None:
    long = "x" * 100_000
    field = FormField(
        name="f",
        type="choice",
        choices=tuple(FieldChoice(value=f"{i}{long}", title=long) for i in range(1000)),
    )
    for broken, value in (
        (field, long),
        (FormField(name="f", type="choices", choices=field.choices), [long]),
        (FormField(name="f", type="string", pattern="^a" + "b?" * 400), long),
        (FormField(name="f", type="integer"), type(long, (), {})()),
        (FormField(name="f", type="integer"), 10**4000),
    ):
        _, errors = check_form([broken], {"f": value})
        assert len(errors["f"]) < 1000
    assert "… (1000 in all)" in check_form([field], {"f": "x"})[1]["f"]


async def test_a_field_of_an_unknown_type_takes_what_the_protocol_has() -> None:
    misfits: list[Any] = [{}, [1], [["a"]], b"x", float("nan"), 2**64, "\udfff", ["\udfff"]]
    for property_ in ({"type": "_vendor"}, {"type": "array", "items": {"type": "_vendor"}}):
        field = await field_of(property_)
        for fits in ("", "x", 0, 1.5, True, [], ["a", "a"]):
            assert check_form([field], {"f": fits}) == ({"f": fits}, {})
        for misfit in misfits:
            values, errors = check_form([field], {"f": misfit})
            assert (values, errors["f"].startswith("should be a")) == ({}, True), misfit


# Formats

GOOD = {
    "email": [
        "a@b",
        "first.last+tag@sub.example.com",
        "o'neil@example.com",
        "jörg@bücher.example",
        "a" * 64 + "@b.c",
    ],
    "uri": [
        "https://example.com",
        "http://user@[::1]:8080/a%20b?c=d#e",
        "mailto:a@b.c",
        "urn:isbn:123",
        "file:///a/b",
        "https://de.wikipedia.org/wiki/Übersicht",
    ],
    "date": ["2024-02-29", "0001-01-01"],
    "date-time": [
        "2026-01-31T08:30:00Z",
        "2026-01-31t23:59:60z",
        "2026-01-31T08:30:00.123456789-08:00",
    ],
    "no such format": ["", "anything"],
}
BAD = {
    "email": [
        "",
        "a",
        "@",
        "@b",
        "a@",
        "a b@c.d",
        "a@-b.c",
        "a@b-.c",
        "a@b..c",
        "a@b.c\n",
        "a" * 65 + "@b",
        "a@" + "b" * 64,
        "a@" + "b." * 127 + "c",
    ],
    "uri": [
        "",
        "example.com",
        "/a",
        "//a/b",
        "https:",
        "https:///path",
        "https://a b",
        "https://a/%zz",
        "https://a:port",
        "https://a:99999",
        "https://[::1",
        "https://a\\b",
        "https://a\n",
        "1a:b",
    ],
    "date": [
        "",
        "2026-2-3",
        "20260203",
        "2026-W01-1",
        "2026-13-01",
        "2025-02-29",
        "2026-01-31\n",
        "२०२६-०१-०१",
    ],
    "date-time": [
        "",
        "2026-01-31",
        "2026-01-31T08:30",
        "2026-01-31T08:30:00",
        "2026-01-31 08:30:00Z",
        "2026-01-31T24:00:00Z",
        "2026-01-31T08:60:00Z",
        "2026-01-31T08:30:61Z",
        "2026-01-31T08:30:00+24:00",
        "2026-02-31T08:30:00Z",
        "2026-01-31T08:30:00Z\n",
    ],
}


async def test_texts_of_a_format_and_others() -> None:
    assert BAD.keys() <= GOOD.keys()
    for name, good in GOOD.items():
        field = await field_of({"type": "string", "format": name})
        for text in good:
            assert check_form([field], {"f": text}) == ({"f": text}, {})
        for text in BAD.get(name, ()):
            values, errors = check_form([field], {"f": text})
            assert (values, " such as " in errors["f"]) == ({}, True), text
        for unit in ("a", ".", "-", "@", "a@", ":", "%", "0", "[", "é"):
            began = time.perf_counter()
            check_form([field], {"f": f"https://{unit * 200_000}"})
            check_form([field], {"f": unit * 200_000})
            assert time.perf_counter() - began < 5, (name, unit)


# Patterns: they come from the agent


async def test_no_pattern_hangs() -> None:
    for pattern in ("(a+)+$", "^(a|aa)*$", "(.*a){12}$", "^(([a-z])+.)+[A-Z]([a-z])+$"):
        field = await field_of({"type": "string", "pattern": pattern})
        began = time.perf_counter()
        _, errors = check_form([field], {"f": "a" * 50_000 + "!"})
        assert time.perf_counter() - began < 5, pattern
        assert "pattern" in errors["f"]


COSTLY: list[tuple[str, str]] = [
    (r"[ab]*a[ab]{20000}c", "ab" * 25_000),
    (r"((a{0,100}){0,100}){0,100}c", "a" * 50_000),
    (r"(?x) [ab]*a[ab]{2 0 0 #}" + "\n" + "0 0}c", "ab" * 25_000),
    (r"(?i-x) a", "b"),
    (r"\w{900}", "ab" * 10),
    ("x" * 1001, "b"),
    ("(" * 400 + ")" * 400 + "x", "b"),
    ("^(?=.*[0-9]).{8,}$", "b"),
    (r"(a)\1", "b"),
    ("(", "b"),
]


async def test_patterns_that_are_costly_or_unknown_are_left_to_the_agent() -> None:
    for pattern, text in COSTLY:
        field = await field_of({"type": "string", "pattern": pattern})
        began = time.perf_counter()
        assert check_form([field], {"f": text}) == ({"f": text}, {}), pattern
        assert time.perf_counter() - began < 5, pattern


async def test_a_pattern_matches_anywhere_and_ends_where_the_text_ends() -> None:
    letters, found, last = ({"type": "string", "pattern": pattern} for pattern in (r"^\p{L}+$", "b", "c$"))
    told = await checked((letters, "é"), (letters, "1"), (found, "abc"), (last, "abc\n"))
    assert [error is None for _, error in told] == [True, False, True, False]


def test_the_patterns_of_a_form_share_their_time() -> None:
    costly = FormField(name="", type="string", pattern="(?i)" + r"\pL" * 300)
    fields = [FormField(name=f"f{i}", type="string", pattern=costly.pattern) for i in range(2000)]
    began = time.perf_counter()
    values, errors = check_form(fields, {field.name: "é" for field in fields})
    assert time.perf_counter() - began < 10
    assert len(values) + len(errors) == len(fields)


def test_what_there_is_no_time_to_match_is_left_to_the_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = count(step=0.4)
    monkeypatch.setattr(time, "perf_counter", lambda: next(moments))
    fields = [FormField(name=f"f{i}", type="string", pattern="a") for i in range(5)]
    values, errors = check_form(fields, {field.name: "b" for field in fields})
    assert set(errors) == {"f0", "f1", "f2"}
    assert values == {"f3": "b", "f4": "b"}
