"""Forms that an agent wants filled in: their fields, and what a valid answer to them is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

from thinkwell._content import JsonValue  # noqa: TC001 - type of a field

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
    """A field of a form. All of it comes from the agent and is not to be trusted."""

    name: str
    type: FieldType
    title: str = ""
    description: str = ""
    required: bool = False
    default: JsonValue = None
    choices: tuple[FieldChoice, ...] = ()
    """What may be chosen, for ``choice`` and ``choices``."""
    minimum: float | None = None
    """Least number, least length of a text in characters, or fewest choices."""
    maximum: float | None = None
    """Greatest number, greatest length of a text in characters, or most choices."""
    pattern: str | None = None
    """Regular expression that a text has to match somewhere."""
    format: str | None = None
    """What a text should be: ``email``, ``uri``, ``date`` or ``date-time``; others are mere hints."""
    raw: JsonValue = None
    """The field's schema as the agent sent it, where the type is ``unknown``."""


def check_form(
    fields: Sequence[FormField], values: Mapping[str, object]
) -> tuple[dict[str, FormValue], dict[str, str]]:
    """Return the values of a form, with defaults filled in, and what is wrong by the field's name."""
    raise NotImplementedError
