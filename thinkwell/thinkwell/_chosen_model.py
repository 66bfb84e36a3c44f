"""Which model a session has, as its options say in the protocol's form."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from thinkwell._json_schema import is_object

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from thinkwell import events as ev


def chosen_model(options: Sequence[ev.JsonValue]) -> str | None:
    """Return the name of the model that is chosen by a session's options, in the protocol's form.

    An option that is for that has the category ``model`` (ACP, Session Config Options).
    """
    for option in options:
        if is_object(option) and option.get("category") == "model":
            value: ev.JsonValue = option.get("currentValue")
            names = (choice.get("name") for choice in _choices(option) if choice.get("value") == value)
            name: ev.JsonValue = next(names, value)
            return name if isinstance(name, str) else None
    return None


def _choices(option: Mapping[str, ev.JsonValue]) -> Iterator[Mapping[str, ev.JsonValue]]:
    """Return the choices of an option or of a group of it."""
    inner: ev.JsonValue = option.get("options")
    if isinstance(inner, list | tuple):
        for choice in cast("Sequence[ev.JsonValue]", inner):
            if is_object(choice):
                yield choice
                yield from _choices(choice)
