"""A form, filled in field by field with lines of text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from thinkwell._display.text import clean, line
from thinkwell._values.forms import check_form

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from thinkwell._display.questions import Asked, Field
    from thinkwell.questions import FormField, FormValue

EMPTY: Final = "-"
"""What leaves a field empty that has a default."""

HOW_TO_FILL_IN: Final = "Enter ends a line, Ctrl-D leaves the form."

TITLE: Final = 5_000
"""Characters of what is asked that stand above a form."""

_BOOLEANS: Final = {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}


def heading(asked: Asked) -> str:
    """Return what stands above a form while it is filled in: what is asked, for the display is away."""
    text = asked.said or asked.title
    more = len(text) - TITLE
    first, *rows = (f"{text[:TITLE]}… and {more:,} more characters" if more > 0 else text).split("\n")
    return "".join([f" ? {first}\n", *(f"   {row}\n" for row in rows), f"{HOW_TO_FILL_IN}\n"])


async def fill_in(
    fields: Sequence[FormField], shown: Sequence[Field], read: Callable[[str], Awaitable[str]]
) -> dict[str, FormValue | None]:
    """Ask for the values of a form, each until it fits, and return them by the names of the fields.

    Args:
        fields: The fields.
        shown: The same, as they are shown.
        read: Asks for a line.
    """
    values: dict[str, FormValue | None] = {}
    instead = shown[1].label if is_choice_or_text(fields) else ""
    for field, labels in zip(fields, shown, strict=True):
        prompt = _prompt(labels, instead if field.type == "choice" else "")
        problem = ""
        while True:
            text = (await read(problem + prompt)).strip()
            given = given_value(field, text)
            valid, errors = check_form((field,), given)
            if not errors:
                break
            problem = f"  {line(errors[field.name])}\n"
        values.update(given)
        if instead and valid:
            break
    return values


def is_choice_or_text(fields: Sequence[FormField]) -> bool:
    """Return whether a form offers a choice, and a text for who wants none of it.

    Where the choice is required, the text says more about it. A default of the text has to be seen.
    """
    return (
        [field.type for field in fields] == ["choice", "string"]
        and all(not field.required for field in fields)
        and fields[1].default is None
    )


def _prompt(field: Field, instead: str) -> str:
    """Return what is shown before a line is typed.

    Args:
        field: What is asked for.
        instead: The field that is asked for only where this one stays empty.
    """
    text = f"\n{field.label} ({field.hint})\n"
    if field.description:
        text += "".join(f"  {row}\n" for row in clean(field.description).split("\n"))
    text += "".join(f"  {number}  {label}\n" for number, (_, label) in enumerate(field.choices, 1))
    if field.default:
        text += f"  Enter: {field.default}" + ("\n" if field.required else f"; {EMPTY}: leave it empty\n")
    if instead:
        text += f"  A choice ends the form; {EMPTY if field.default else 'Enter'} goes on to: {instead}\n"
    return f"{text}> "


def given_value(field: FormField, text: str) -> Mapping[str, FormValue | None]:
    """Return what was typed as a value of the field's type, where it can be one."""
    if not text:
        return {}  # its default, or nothing
    if text == EMPTY and field.default is not None and not field.required:
        return {field.name: None}
    return {field.name: _value(field, text)}


def _value(field: FormField, text: str) -> FormValue:
    match field.type:
        case "integer" | "number":
            for kind in (int, float):
                try:
                    return kind(text)
                except ValueError:
                    pass
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
    """Return the choice of this number, value or title."""
    values = [choice.value for choice in field.choices]
    if text not in values and text.isdecimal() and 1 <= int(text) <= len(values):
        return values[int(text) - 1]
    titles = {choice.title.casefold(): choice.value for choice in field.choices}
    return titles.get(text.casefold(), text) if text not in values else text
