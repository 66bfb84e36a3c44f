"""Forms that an agent wants filled in: their fields, and what a valid answer to them is."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, Literal, NoReturn, TypeAlias, assert_never

from msgspec import Struct

from thinkwell._values.content import JsonValue  # noqa: TC001 - type of a field
from thinkwell._values.text_rules import PatternChecks, format_example

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from typing_extensions import TypeIs

FieldType: TypeAlias = Literal["string", "number", "integer", "boolean", "choice", "choices", "unknown"]
"""``choice`` is one of several texts, ``choices`` any number of them; ``unknown`` is of a kind that this
version does not know (ACP, Elicitation)."""

FormValue: TypeAlias = str | int | float | bool | list[str]
"""What may stand in a field."""


class FieldChoice(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One of the texts that a field takes."""

    value: str
    title: str
    description: str = ""


class FormField(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A field of a form. Everything in it comes from the agent: do not trust it."""

    name: str
    type: FieldType
    title: str = ""
    description: str = ""
    required: bool = False
    default: JsonValue = None
    """The initial value, as the agent sent it: it may not fit the field."""
    choices: tuple[FieldChoice, ...] = ()
    """The choices, for ``choice`` and ``choices``."""
    minimum: int | float | None = None
    """Minimum of a number, of the length of a text in characters, or of the number of choices."""
    maximum: int | float | None = None
    """Maximum of a number, of the length of a text in characters, or of the number of choices."""
    pattern: str | None = None
    """A regular expression that the text has to match somewhere; for its limits see `check_form`."""
    format: str | None = None
    """The format of a text: ``email``, ``uri``, ``date`` or ``date-time``; others are only hints."""
    raw: JsonValue = None
    """The field's schema as the agent sent it, if the type is ``unknown``."""


def check_form(
    fields: Sequence[FormField], values: Mapping[str, object]
) -> tuple[dict[str, FormValue], dict[str, str]]:
    """Return the values of a form, with defaults filled in, and what is wrong by the field's name.

    - A field that is not among the values gets its default. A default that does not fit its own field counts
      as none. ``None`` leaves a field empty that has a default.
    - Types are exact, as the protocol asks: ``True`` is no number, and a text is never read as one. A
      ``float`` without a fraction is taken as the integer that it is, since JSON does not tell them apart.
    - A text is counted in characters, and choices may not be chosen twice. Values that JSON cannot hold
      (NaN, infinities, half a surrogate pair) and integers beyond 64 bits are refused.
    - A pattern is matched in linear time and within about a second for the whole form. One that the engine
      does not have (look-around, back-references), or that is very long or very costly, is not checked here:
      the agent does that, as it must. Formats other than those of `FormField.format` are not checked.
    - A field of an unknown type takes any value that the protocol has: texts, numbers, booleans and
      lists of texts.

    Args:
        fields: The fields of the form.
        values: What was filled in.
    """
    known = {field.name: field for field in fields}
    patterns = PatternChecks()
    clean: dict[str, FormValue] = {}
    errors = {name: _no_such_field(known) for name in values if name not in known}
    for name, field in known.items():
        value = values.get(name)
        try:
            if value is not None:
                clean[name] = _checked(field, value, patterns)
                continue
            why = "a value is required"
            if name not in values and field.default is not None:
                try:
                    clean[name] = _checked(field, field.default, patterns)
                    continue
                except _MisfitError as exc:
                    why += f"; the default of the agent's does not fit: it {exc}"
            if field.required:
                errors[name] = why
        except _MisfitError as exc:
            errors[name] = str(exc)
    return clean, errors


class _MisfitError(ValueError):
    """A value does not fit its field; the text goes on after "it"."""


def _fail(should: str, value: object) -> NoReturn:
    raise _MisfitError(f"should {should}, not {_shown(value)}")


def _checked(field: FormField, value: object, patterns: PatternChecks) -> FormValue:
    """Return a value as what it is sent as: of plain types."""
    match field.type:
        case "string":
            return _text(field, value, patterns)
        case "choice":
            return _text(field, _choice(field, value), patterns)
        case "choices":
            return _choices(field, value)
        case "number" | "integer":
            return _number(field, value)
        case "boolean":
            return value if isinstance(value, bool) else _fail("be true or false", value)
        case "unknown":
            return _anything(value)
        case _:
            assert_never(field.type)


def _text(field: FormField, value: object, patterns: PatternChecks) -> str:
    text = _plain(value)
    _check_size(field, len(text), "character")
    if field.pattern is not None and patterns.misses(field.pattern, text):
        _fail(f"match the pattern {_shown(field.pattern)}", text)
    if field.format is not None and (example := format_example(field.format, text)) is not None:
        _fail(f"be {example}", text)
    return text


def _plain(value: object) -> str:
    if not isinstance(value, str):
        _fail("be a text", value)
    try:
        value.encode()
    except UnicodeEncodeError:  # half a surrogate pair
        _fail("be a text of whole characters", value)
    return str.__str__(value)  # a member of an enumeration becomes what it stands for


def _choice(field: FormField, value: object) -> str:
    text = _plain(value)
    if all(text != choice.value for choice in field.choices):
        _fail(f"be one of {_listed([choice.value for choice in field.choices])}", text)
    return text


def _choices(field: FormField, value: object) -> list[str]:
    if not _is_list(value):
        _fail("be a list of texts", value)
    takes = {choice.value for choice in field.choices}
    chosen: dict[str, None] = {}
    for member in value:
        text = _plain(member)
        if text not in takes:
            _fail(f"hold only {_listed([choice.value for choice in field.choices])}", text)
        if text in chosen:
            raise _MisfitError(f"should hold each choice once, and holds {_shown(text)} twice")
        chosen[text] = None
    _check_size(field, len(chosen), "choice")
    return list(chosen)


def _number(field: FormField, value: object) -> int | float:
    whole = field.type == "integer"
    if isinstance(value, bool) or not isinstance(value, int | float):
        _fail("be a whole number" if whole else "be a number", value)
    number = int(value) if isinstance(value, int) else float(value)
    if isinstance(number, float):
        if not math.isfinite(number):
            _fail("be a finite number", number)
        if whole and not number.is_integer():
            _fail("be a whole number", number)
        number = int(number) if whole else number
    if isinstance(number, int) and not -(2**63) <= number < 2**63:
        _fail("be a number of 64 bits", number)
    if field.minimum is not None and number < field.minimum:
        _fail(f"be at least {field.minimum}", number)
    if field.maximum is not None and number > field.maximum:
        _fail(f"be at most {field.maximum}", number)
    return number


def _anything(value: object) -> FormValue:
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return _number(FormField(name="", type="number"), value)
    if _is_list(value):
        return [_plain(member) for member in value]
    if isinstance(value, str):
        return _plain(value)
    _fail("be a text, a number, true or false, or a list of texts", value)


def _is_list(value: object) -> TypeIs[list[object] | tuple[object, ...]]:
    return isinstance(value, list | tuple)


def _check_size(field: FormField, size: int, unit: str) -> None:
    for limit, word, sign in ((field.minimum, "least", 1), (field.maximum, "most", -1)):
        if limit is not None and sign * size < sign * limit:
            raise _MisfitError(f"should have at {word} {limit} {unit}{'' if limit == 1 else 's'}, not {size}")


# What messages show of values and of what agents wrote

SHOWN_LENGTH: Final = 60
"""Characters of a text that a message shows."""

SHOWN_CHOICES: Final = 10
"""Choices that a message lists."""


def _shown(value: object) -> str:
    if isinstance(value, str):
        text = str.__str__(value)
        return repr(text[:SHOWN_LENGTH]) + ("…" if len(text) > SHOWN_LENGTH else "")
    if isinstance(value, int) and value.bit_length() > 64:
        return f"a number of {value.bit_length()} bits"
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    return f"a value of type {type(value).__name__[:SHOWN_LENGTH]}"


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(_shown, names[:SHOWN_CHOICES]))
    return f"{shown}, … ({len(names)} in all)" if len(names) > SHOWN_CHOICES else shown or "nothing at all"


def _no_such_field(known: Mapping[str, FormField]) -> str:
    return f"the form has no such field; it has {_listed(list(known))}"
