"""The options of a session, as users know them, read from the protocol's form of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from thinkwell._values.content import JsonValue


class OptionChoice(Struct, frozen=True, kw_only=True):
    """A possible value of an option."""

    value: str
    name: str
    description: str | None = None
    group: str | None = None
    """Its group heading, if the agent groups the choices."""


class SessionOption(Struct, frozen=True, kw_only=True):
    """An option of a session, such as its model."""

    id: str
    name: str
    description: str | None = None
    category: str | None = None
    """Its category: ``mode``, ``model``, ``model_config``, ``thought_level``, or the agent's own word."""
    type: Literal["select", "boolean"] = "select"
    value: str | bool
    """The current value: the value of a choice, or a bool."""
    choices: tuple[OptionChoice, ...] = ()
    """The possible values, in the agent's order; empty for a boolean."""


class _Entry(Struct):
    """A choice, or a group of choices."""

    name: str
    value: str | None = None
    description: str | None = None
    options: tuple[_Entry, ...] = ()


class _Table(Struct, rename="camel"):
    """An option in the protocol's form (ACP, Session Config Options)."""

    id: str
    name: str
    type: Literal["select", "boolean"]
    current_value: str | bool
    description: str | None = None
    category: str | None = None
    options: tuple[_Entry, ...] = ()


def read_options(tables: Iterable[JsonValue]) -> Iterator[SessionOption]:
    """Yield the options that tables of the protocol describe; one of an unknown type is passed over."""
    for each in tables:
        try:
            table = msgspec.convert(each, _Table)
        except msgspec.ValidationError:
            continue
        yield SessionOption(
            id=table.id,
            name=table.name,
            description=table.description,
            category=table.category,
            type=table.type,
            value=table.current_value,
            choices=tuple(_choices(table.options, None)),
        )


def _choices(entries: Sequence[_Entry], group: str | None) -> Iterator[OptionChoice]:
    for entry in entries:
        if entry.value is None:
            yield from _choices(entry.options, entry.name)
        else:
            yield OptionChoice(value=entry.value, name=entry.name, description=entry.description, group=group)


def model_option(options: Iterable[SessionOption]) -> SessionOption | None:
    """Return the option that is the model: it has the category ``model``."""
    return next((one for one in options if one.category == "model" and one.type == "select"), None)


def chosen_model(options: Iterable[SessionOption]) -> str | None:
    """Return the name of the model that is chosen."""
    option = model_option(options)
    if option is None:
        return None
    names = (choice.name for choice in option.choices if choice.value == option.value)
    return next(names, str(option.value))
