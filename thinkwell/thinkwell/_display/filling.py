"""Fill in a form field by field: with lines of text, and with values from a list."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from thinkwell._core.schema.json_schema import is_array
from thinkwell._display.numbers import number_in
from thinkwell._display.text import clean, line
from thinkwell._values.forms import check_form

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from thinkwell._display.questions import Asked, Field
    from thinkwell.questions import FormField, FormValue

EMPTY: Final = "-"
"""The input that leaves a field with a default empty."""

HOW_TO_FILL_IN: Final = "Enter ends a line, Ctrl-D leaves the form."

TITLE: Final = 5_000
"""Most characters of the question above a form."""

_BOOLEANS: Final = {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}


def heading(asked: Asked) -> str:
    """Return the heading of a form: the question, because the display is hidden."""
    text = asked.said or asked.title
    more = len(text) - TITLE
    first, *rows = (f"{text[:TITLE]}… and {more:,} more characters" if more > 0 else text).split("\n")
    return "".join([f" ? {first}\n", *(f"   {row}\n" for row in rows), f"{HOW_TO_FILL_IN}\n"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Picking:
    """A list from which the value of a field is chosen: one row of it, or any number of them."""

    field: Field
    several: bool
    rows: tuple[tuple[FormValue | None, str], ...]
    """The values, with their labels; ``None`` leaves the field empty."""
    at: int = 0
    """The row of the cursor."""
    picked: frozenset[int] = frozenset()
    """The chosen rows, if several are allowed."""
    problem: str = ""
    """The problem of the value before; clean, one line."""

    def pressed(self, key: str) -> Picking:
        """Return the list after a key: an arrow, a space, or the number of a row."""
        if key in ("up", "down"):
            return replace(self, at=(self.at + (1 if key == "down" else -1)) % len(self.rows))
        if key.isdecimal() and 1 <= int(key) <= len(self.rows):
            return replace(self, at=int(key) - 1)
        if key == " " and self.several:
            return replace(self, picked=self.picked ^ {self.at})
        return self

    @property
    def value(self) -> FormValue | None:
        """The value for Enter; ``None`` leaves the field empty."""
        if not self.several:
            return self.rows[self.at][0]
        return [str(value) for index, (value, _) in enumerate(self.rows) if index in self.picked] or None


def _picking(shown: Field, instead: str) -> Picking | None:
    """Return the list of a field's values; ``None`` if the value is typed."""
    field = shown.raw
    rows: list[tuple[FormValue | None, str]]
    if field.type == "boolean":
        rows = [(True, "yes"), (False, "no")]
    elif field.type in ("choice", "choices") and shown.choices:
        rows = list(shown.choices)
    else:
        return None
    several = field.type == "choices"
    if not (field.required or several):
        rows.append((None, f"other: {instead}" if instead else "leave it empty"))
    values = [value for value, _ in rows]
    default = field.default
    given = default if is_array(default) else ()
    return Picking(
        field=shown,
        several=several,
        rows=tuple(rows),
        at=next((index for index, value in enumerate(values) if value is not None and value == default), 0),
        picked=frozenset(index for index, value in enumerate(values) if several and value in given),
    )


async def fill_in(
    fields: Sequence[Field],
    read: Callable[[str], Awaitable[str]],
    pick: Callable[[Picking], Awaitable[FormValue | None]] | None = None,
) -> dict[str, FormValue | None]:
    """Ask for the values of a form, each until it is valid, and return them by the names of the fields.

    Args:
        fields: The fields.
        read: Reads a line.
        pick: Chooses a value from a list; ``None``: values are typed too.
    """
    values: dict[str, FormValue | None] = {}
    instead = fields[1].label if is_choice_or_text(fields) else ""
    for shown in fields:
        field = shown.raw
        beside = instead if field.type == "choice" else ""
        prompt, picking, problem = _prompt(shown, beside), _picking(shown, beside), ""
        while True:
            if pick is not None and picking is not None:
                given = _picked(field, await pick(replace(picking, problem=problem)))
            else:
                told = f"  {problem}\n" if problem else ""
                given = given_value(field, (await read(told + prompt)).strip())
            valid, errors = check_form((field,), given)
            if not errors:
                break
            problem = line(errors[field.name])
        values.update(given)
        if instead and valid:
            break
    return values


def _picked(field: FormField, value: FormValue | None) -> Mapping[str, FormValue | None]:
    """Return the chosen value of a field."""
    return {} if value is None and field.default is None else {field.name: value}


def is_choice_or_text(shown: Sequence[Field]) -> bool:
    """Return whether a form offers a choice, and a text as the alternative.

    If the choice is required, the text adds to it. A default of the text must be visible.
    """
    fields = [each.raw for each in shown]
    return (
        [field.type for field in fields] == ["choice", "string"]
        and all(not field.required for field in fields)
        and fields[1].default is None
    )


def _prompt(field: Field, instead: str) -> str:
    """Return the prompt before a line is typed.

    Args:
        field: The field.
        instead: The field that is asked for only if this one stays empty.
    """
    text = f"\n{field.label} ({field.hint})\n"
    if field.description:
        text += "".join(f"  {row}\n" for row in clean(field.description).split("\n"))
    text += "".join(f"  {number}  {label}\n" for number, (_, label) in enumerate(field.choices, 1))
    if field.default:
        text += f"  Enter: {field.default}" + ("\n" if field.raw.required else f"; {EMPTY}: leave it empty\n")
    if instead:
        text += f"  A choice ends the form; {EMPTY if field.default else 'Enter'} goes on to: {instead}\n"
    return f"{text}> "


def given_value(field: FormField, text: str) -> Mapping[str, FormValue | None]:
    """Return the typed text as a value of the field's type, if possible."""
    if not text:
        return {}  # its default, or nothing
    if text == EMPTY and field.default is not None and not field.required:
        return {field.name: None}
    return {field.name: _value(field, text)}


def _value(field: FormField, text: str) -> FormValue:
    match field.type:
        case "integer" | "number":
            number = number_in(text)
            return text if number is None else number
        case "boolean":
            return _BOOLEANS.get(text.casefold(), text)
        case "choice":
            return _chosen(field, text)
        case "choices":
            return [_chosen(field, part) for part in text.replace(",", " ").split()]
        case "string" | "unknown":  # pragma: no branch - these are all
            pass
    return text


def _chosen(field: FormField, text: str) -> str:
    """Return the choice with a number, value or title."""
    values = [choice.value for choice in field.choices]
    if text not in values and text.isdecimal() and 1 <= int(text) <= len(values):
        return values[int(text) - 1]
    titles = {choice.title.casefold(): choice.value for choice in field.choices}
    return titles.get(text.casefold(), text) if text not in values else text
