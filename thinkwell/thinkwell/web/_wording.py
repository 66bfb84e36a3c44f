"""Messages about invalid values: where they stand, what is wrong, and what to send instead.

They use the words of JSON, whichever part of Python has found the error, and have one form: ``field: what is
wrong; what to do``.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, Final, cast

import msgspec
from msgspec import inspect

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from jsonschema import SchemaError
    from msgspec import Struct
    from msgspec.inspect import Type

    from thinkwell.errors import AnswerInvalid, QuestionNotOpen

LONGEST: Final = 100
"""Characters of a client's value that are repeated."""

LONGEST_WHY: Final = 500
"""Characters of another library's reason."""

_UNKNOWN: Final = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_MISSING: Final = re.compile(r"Object missing required field `(.*)`")
_CHOICE: Final = re.compile(r"Invalid (?:enum )?value '?(.*?)'?", re.DOTALL)
_BOUND: Final = re.compile(r"Expected `([^`]*)` (?:of length )?([<>]=?) (\S+)")
_KIND: Final = re.compile(r"Expected `([^`]*)`(?:, got `([^`]*)`)?")
_STEP: Final = re.compile(r"\.(\w+)|\[(?:\d+|\.\.\.)\]")
"""A step of a path: into a field, a list or a mapping."""

_SCHEMA_TERMS: Final = {
    "array": "an array",
    "boolean": "a boolean",
    "integer": "an integer",
    "null": "null",
    "number": "a number",
    "object": "an object",
    "string": "a string",
}
"""The types of JSON Schema."""

_TERMS: Final = _SCHEMA_TERMS | {
    "str": "a string",
    "bytes": "a string of base64",
    "int": "an integer",
    "float": "a number",
    "bool": "a boolean",
    "list": "an array",
    "vartuple": "an array",
    "dict": "an object",
    "struct": "an object",
    "nonetype": "null",
}
"""The names of types in errors of msgspec, in `msgspec.inspect`, and in Python."""

_UNITS: Final = {"str": "character", "array": "item"}
"""The units of lengths."""

_OTHERS: Final = {
    "Invalid base64 encoded string": "it is not base64; send the bytes of the file in that",
    "Number out of range": "the number is too large; give a smaller one",
}


def no_such(name: str, choices: Iterable[str]) -> str:
    """Return the message about an unknown name."""
    known = list(choices)
    told = f"there is no {name[:LONGEST]!r}"
    if not known:
        return f"{told}; there is none to choose"
    near = _nearest(name, known)
    if near is None:
        return f"{told}; choose one of {', '.join(known)}"
    return f"{told}; do you mean {near}? There are {', '.join(known)}"


def type_words(error: msgspec.ValidationError, kind: type[Struct], *, at: str = "") -> str:
    """Return the message about a value of the wrong type.

    Args:
        error: The error of msgspec.
        kind: The type.
        at: Where the whole value stands; ``""``: it is the body of a request, or its query.
    """
    said = str(error)
    what, _, path = said.rpartition(" - at `$") if " - at `$" in said else (said, "", "")
    path = path.removesuffix("`")[:LONGEST]  # it may belong to a name that looks like a place

    def place(field: str = "") -> str:
        return f"{at}{path}{field and f'.{field}'}".removeprefix(".") or "the body"

    if found := _UNKNOWN.fullmatch(what):
        return f"{place(found[1][:LONGEST])}: {_no_field(found[1], _at(kind, path))}"
    if found := _MISSING.fullmatch(what):
        return f"{place(found[1])}: it is missing; give {_wanted(_at(kind, f'{path}.{found[1]}'))}"
    return f"{place()}: {_wrong(what, _at(kind, path))}"


def _wrong(what: str, wanted: Sequence[Type]) -> str:
    if found := _CHOICE.fullmatch(what):
        return no_such(found[1], _choices(wanted))
    if found := _BOUND.fullmatch(what):
        return _beyond(found[1], found[2], found[3].removesuffix(".0"))
    if found := _KIND.fullmatch(what):
        return f"it is {_TERMS.get(found[2], 'something else')}; give {_wanted(wanted)}"
    return _OTHERS.get(what, f"{what[:1].lower()}{what[1:LONGEST_WHY]}")


def _beyond(kind: str, sign: str, bound: str) -> str:
    is_less = sign.startswith(">")  # than the maximum
    unit = _UNITS.get(kind)
    if unit is not None:
        words = "too short; give at least" if is_less else "too long; give at most"
        return f"it is {words} {bound} {unit}{'' if bound == '1' else 's'}"
    words = {">": "more than {}", ">=": "{} or more", "<": "less than {}", "<=": "{} or less"}[sign]
    return f"it is too {'small' if is_less else 'large'}; give {words.format(bound)}"


def _no_field(name: str, types: Sequence[Type]) -> str:
    known = [field.encode_name for each in types for field in _fields(each)]
    near = _nearest(name, known)
    if near is None:
        return f"there is no such field; there are {', '.join(known)}"
    return f"there is no such field; do you mean {near}?"


def _nearest(name: str, known: Collection[str]) -> str | None:
    """Return the name that was probably meant, ignoring case."""
    by_case = {each.casefold(): each for each in known}
    near = get_close_matches(name[:LONGEST].casefold(), by_case, n=1)
    return by_case[near[0]] if near else None


# Types


@cache
def _type_of(kind: type[Struct]) -> Type:
    return inspect.type_info(kind)


def _at(kind: type[Struct], path: str) -> list[Type]:
    """Return the possible types at a path, as msgspec writes paths."""
    types: list[Type] = [_type_of(kind)]
    for step in _STEP.finditer(path):
        types = [inner for each in types for inner in _alternatives(_inner(each, step[1]))]
    return types


def _alternatives(types: Iterable[Type]) -> Iterable[Type]:
    for each in types:
        if isinstance(each, inspect.UnionType):
            yield from each.types
        else:
            yield each


def _inner(type_: Type, field: str | None) -> Iterable[Type]:
    """Return the type in a field, a list or a mapping."""
    match type_:
        case inspect.StructType(tag_field=str(tag_field), tag=tag) if field == tag_field:
            yield inspect.LiteralType((tag,))
        case inspect.StructType():
            yield from (each.type for each in _fields(type_) if each.encode_name == field)
        case inspect.ListType() | inspect.VarTupleType():
            yield type_.item_type
        case inspect.DictType():
            yield type_.value_type
        case _:
            return


def _fields(type_: Type) -> tuple[inspect.Field, ...]:
    return type_.fields if isinstance(type_, inspect.StructType) else ()


def _choices(types: Iterable[Type]) -> list[str]:
    return [str(value) for each in types if isinstance(each, inspect.LiteralType) for value in each.values]


def _wanted(types: Sequence[Type]) -> str:
    """Return the possible contents of a value of some types."""
    types = [each.type if isinstance(each, inspect.Metadata) else each for each in types]
    names = (type(each).__name__.removesuffix("Type").lower() for each in types)
    kinds = [_TERMS[name] for name in names if name in _TERMS]
    choices = _choices(types)
    if choices:
        kinds.append(f"one of {', '.join(choices)}")
    if any(isinstance(each, inspect.NoneType) for each in types):
        kinds.append("null")
    return _joined(list(dict.fromkeys(kinds)) or ["any value"])


def _joined(kinds: Iterable[str]) -> str:
    *others, last = kinds
    return f"{', '.join(others)} or {last}" if others else last


# Errors of other libraries


def schema_words(error: Exception) -> str:
    """Return why the ``output`` of a request is not a schema, from the error of `output_of`."""
    from jsonschema import SchemaError  # it has read the schema

    why = error.__cause__ or error
    found = why.__cause__
    if isinstance(found, SchemaError):
        place = found.json_path.removeprefix("$")
        return f"output{place[:LONGEST]}: {_no_schema(found)}"
    return f"output: {str(why)[:LONGEST_WHY]}"


def _no_schema(error: SchemaError) -> str:
    value: object = error.instance
    if error.path and error.path[-1] == "type":
        if isinstance(value, str):
            return no_such(value, _SCHEMA_TERMS)
        return f"it is {_term(value)}; give one of {', '.join(_SCHEMA_TERMS)}, or an array of some"
    if error.validator == "type":
        kinds: object = error.validator_value
        names = [kinds] if isinstance(kinds, str) else list(cast("list[str]", kinds))
        return f"it is {_term(value)}; give {_joined(_SCHEMA_TERMS[name] for name in names)}"
    return f"it breaks what JSON Schema says of it ({error.validator}); give what may stand there"


def _term(value: object) -> str:
    """Return the type of a JSON value."""
    return _TERMS[type(value).__name__.lower()]


def answer_words(error: AnswerInvalid) -> str:
    """Return why an answer does not fit its question."""
    return "; ".join(f"{name or 'answer'}: {text}" for name, text in error.errors.items())


def closed_words(error: QuestionNotOpen) -> str:
    """Return why a question cannot be answered."""
    which = f"question: there is no {error.question_id[:LONGEST]!r} that is open, it may have been answered"
    known = f"open are {', '.join(error.open)}" if error.open else "none is open"
    return f"{which}; {known}"
