"""A handler's return value, as an answer to a question, and as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, TypeAlias, cast, get_args

import msgspec
from msgspec.structs import replace

from thinkwell._core.exit import Said
from thinkwell._core.schema.json_schema import is_array
from thinkwell._display.numbers import number_in
from thinkwell.questions import ChooseOption, FormQuestion, Reply, StopRun, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from thinkwell.events import JsonValue
    from thinkwell.questions import FormField, Question

YES: Final = frozenset(
    ("yes", "y", "true", "ok", "allow", "allowed", "approve", "approved", "accept", "accepted")
)
NO: Final = frozenset(("no", "n", "false", "deny", "denied", "reject", "rejected", "decline", "declined"))
VERDICTS: Final = frozenset(get_args(Verdict))
LASTING: Final = tuple(verdict for verdict in get_args(Verdict) if "_" in verdict)

Meant: TypeAlias = "tuple[bool | Verdict | Mapping[str, JsonValue] | None, str]"
"""The answer for the agent, and the reason; may be ``""``."""


def to_json(value: object, whose: str) -> JsonValue:
    """Return a value as JSON.

    Args:
        value: A pydantic model, dataclass, enumeration, msgspec struct or JSON data.
        whose: Its source, for the error.

    Raises:
        TypeError: It cannot be written as JSON.
    """
    if value is None or isinstance(value, bool):
        return value
    from pydantic_core import to_jsonable_python  # loaded when first needed

    try:
        plain: JsonValue = to_jsonable_python(value, fallback=msgspec.to_builtins)
        json.dumps(plain, allow_nan=False, ensure_ascii=False).encode()
    except Exception as exc:  # a user's type may do anything
        raise TypeError(
            f"{whose} returned what cannot be written as JSON, a {type(value).__name__}: {exc!s:.500}"
        ) from exc
    return plain


def as_answer(
    question: Question, value: object, *, whose: str = "the handler", label: str | None = None
) -> Reply:
    """Return the answer that a value means.

    A value that is neither yes nor no means no. One that fits no field of a form leaves the question to the
    next handler.

    Args:
        question: The question.
        value: The handler's value, other than ``None``.
        whose: Its source, for the log.
        label: The same for an error, if more details are needed there.

    Raises:
        TypeError: It cannot be written as JSON.
    """
    if isinstance(value, StopRun | ChooseOption):
        return Reply(value, "")
    if isinstance(value, Reply):
        declines = isinstance(question, FormQuestion) and value.answer == "decline"
        if value.answer is None or declines or isinstance(value.answer, StopRun | ChooseOption):
            return value
        inner = as_answer(question, value.answer, whose=whose, label=label)
        return replace(inner, why=value.why or inner.why, by=value.by)
    said = to_json(value, label or whose)
    if not isinstance(question, FormQuestion) and said in LASTING:
        return Reply(said, "")  # our own word, which no program has
    if not isinstance(question, FormQuestion):
        meant, why = _verdict(said, whose)
    elif question.message is not None:
        meant, why = _by_line(question, said)
    else:
        meant, why = _in_form(question, said, whose)
    return Said(meant, why, said=said)


# Yes and no


def _word(text: str) -> str:
    """Return the word of a text, without case and final punctuation."""
    return text.strip().rstrip(".!").rstrip().casefold()


def _verdict(said: JsonValue, whose: str) -> Meant:
    if isinstance(said, bool):
        return said, ""
    if not isinstance(said, str):
        return False, f"{whose} gave a {type(said).__name__}, which says neither yes nor no"
    word = _word(said)
    if word in YES or word in NO:
        return word in YES, ""
    # Options are not matched by name: one that allows everything may be called "Not without a person".
    return (cast("Verdict", word), "") if word in VERDICTS else (False, said.strip())


# Forms


def _by_line(question: FormQuestion, said: JsonValue) -> Meant:
    """Fill in the form that represents a line. The agent gets the value, not the form's fields."""
    text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
    return _with_text(question.fields, text), ""


def _in_form(question: FormQuestion, said: JsonValue, whose: str) -> Meant:
    fields = question.fields
    if isinstance(said, dict):
        return cast("dict[str, JsonValue]", said), ""
    if isinstance(said, bool):
        field = _preferred(fields, "boolean")
        return (said if field is None else {field.name: said}), ""
    if is_array(said):
        filled = _with_list(fields, said)
    elif isinstance(said, str):
        filled = _with_text(fields, said)
    else:
        field = _preferred(fields, "number", "integer")
        filled = {field.name: said} if field else _with_text(fields, f"{said}")
    if filled is None:
        names = ", ".join(repr(field.name)[:60] for field in fields[:10])
        return None, f"{whose} gave a {type(said).__name__}, and no one field of the form takes it: {names}"
    return filled, ""


def _preferred(fields: Sequence[FormField], *types: str) -> FormField | None:
    """Return the first required field of a type, else the first one."""
    fit = [field for field in fields if field.type in types]
    return next((field for field in fit if field.required), fit[0] if fit else None)


def _with_text(fields: Sequence[FormField], text: str) -> dict[str, JsonValue] | None:
    choices = [field for field in fields if field.type == "choice"]
    for field in sorted(choices, key=lambda field: not field.required):
        value = _chosen(field, text)
        if value is not None:
            return {field.name: value}
    free = [field for field in fields if field.type == "string"]
    needed = [field for field in free if field.required]
    for found in (free, needed):
        if len(found) == 1:
            return {found[0].name: text}
    return {fields[0].name: _read(fields[0], text)} if len(fields) == 1 else None


def _with_list(fields: Sequence[FormField], values: list[JsonValue]) -> dict[str, JsonValue] | None:
    field = _preferred(fields, "choices") or (fields[0] if len(fields) == 1 else None)
    if field is None:
        return None
    return {
        field.name: [
            (_chosen(field, value) or value) if isinstance(value, str) else value for value in values
        ]
    }


def _chosen(field: FormField, text: str) -> str | None:
    """Return the choice that a text means: its value or its title, in any case if that is unambiguous."""
    for choice in field.choices:
        if text == choice.value:
            return choice.value
    word = text.strip().casefold()
    for exact in (True, False):
        meant = {
            choice.value
            for choice in field.choices
            if (
                text == choice.title
                if exact
                else word in (choice.value.strip().casefold(), choice.title.strip().casefold())
            )
        }
        if len(meant) == 1:
            return meant.pop()
    return None


def _read(field: FormField, text: str) -> JsonValue:
    """Return a text as the value of a form's only field; unchanged if that is ambiguous."""
    word = _word(text)
    if field.type == "boolean" and (word in YES or word in NO):
        return word in YES
    if field.type == "choices":
        return [_chosen(field, text) or text]
    if field.type in ("number", "integer"):
        number = number_in(text)
        return text if number is None else number
    return text
