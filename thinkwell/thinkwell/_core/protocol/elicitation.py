"""Forms and web pages of an agent's questions: from the protocol's form, and answers back to it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, assert_never

from thinkwell._display.urls import url_host
from thinkwell._values.forms import FieldChoice, FormField, FormValue
from thinkwell.questions import FormQuestion, UrlQuestion
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from thinkwell.events import JsonValue


def elicitation_question(
    request: s.ElicitationFormMode | s.ElicitationUrlMode,
    *,
    id: str,  # noqa: A002 - the field's name
    agent: str,
    run_id: str | None = None,
    message: dict[str, JsonValue] | None = None,
) -> FormQuestion | UrlQuestion:
    """Return a request of the agent as a question.

    Args:
        request: The request. Those of unknown modes are never shown.
        id: Name of the question.
        agent: Name of the agent that asks.
        run_id: Name of the run that it belongs to.
        message: The message with the question, from an NDJSON agent.
    """
    match request:
        case s.ElicitationFormMode():
            return FormQuestion(
                id=id,
                title=request.message,
                agent=agent,
                session_id=request.session_id,
                run_id=run_id,
                tool_id=request.tool_call_id,
                fields=form_fields(request.requested_schema),
                heading=request.requested_schema.title or "",
                description=request.requested_schema.description or "",
                message=message,
            )
        case s.ElicitationUrlMode():
            return UrlQuestion(
                id=id,
                title=request.message,
                agent=agent,
                session_id=request.session_id,
                run_id=run_id,
                tool_id=request.tool_call_id,
                url=request.url,
                host=url_host(request.url),
                message=message,
            )
        case _:
            assert_never(request)


def form_fields(schema: s.ElicitationSchema) -> tuple[FormField, ...]:
    """Return the fields of a form in the agent's order.

    A required name without a description is also a field, of an unknown type: without it, no answer would be
    valid.
    """
    required = dict.fromkeys(schema.required or ())
    described = [
        _field(name, property_, required=name in required) for name, property_ in schema.properties.items()
    ]
    others = [
        FormField(name=name, type="unknown", required=True)
        for name in required
        if name not in schema.properties
    ]
    return (*described, *others)


def content_values(values: Mapping[str, FormValue]) -> dict[str, s.ElicitationContentValue]:
    """Return the checked values of a form in the protocol's form."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}


def _field(name: str, property_: s.ElicitationPropertySchema, *, required: bool) -> FormField:
    if isinstance(property_, s.OtherElicitationPropertySchema):
        return _unknown(name, property_.raw, required=required)
    title, description = property_.title or "", property_.description or ""
    field = partial(FormField, name=name, title=title, description=description, required=required)
    match property_:
        case s.StringPropertySchema():
            choices = _text_choices(property_)
            return field(
                type="string" if choices is None else "choice",
                default=property_.default,
                choices=choices or (),
                minimum=property_.min_length,
                maximum=property_.max_length,
                pattern=property_.pattern,
                format=property_.format,
            )
        case s.NumberPropertySchema() | s.IntegerPropertySchema():
            return field(
                type="number" if isinstance(property_, s.NumberPropertySchema) else "integer",
                default=property_.default,
                minimum=property_.minimum,
                maximum=property_.maximum,
            )
        case s.BooleanPropertySchema():
            return field(
                type="boolean",
                default=property_.default,
            )
        case s.MultiSelectPropertySchema(items=items):
            if isinstance(items, s.OtherMultiSelectItems):
                return _unknown(name, s.to_builtins(property_), required=required)
            return field(
                type="choices",
                default=None if property_.default is None else list(property_.default),
                choices=_item_choices(items),
                minimum=property_.min_items,
                maximum=property_.max_items,
            )
        case _:
            assert_never(property_)


def _unknown(name: str, raw: s.JsonObject, *, required: bool) -> FormField:
    """Return a field of an unknown type. The meaning of its default is unknown, so it stays in `raw`."""
    title, description = raw.get("title"), raw.get("description")
    return FormField(
        name=name,
        type="unknown",
        title=title if isinstance(title, str) else "",
        description=description if isinstance(description, str) else "",
        required=required,
        raw=raw,
    )


def _text_choices(property_: s.StringPropertySchema) -> tuple[FieldChoice, ...] | None:
    """Return the choices, or ``None`` if any text is allowed."""
    if property_.one_of is None:
        return None if property_.enum is None else _plain(property_.enum)
    titled = _titled(property_.one_of)
    if property_.enum is None:
        return titled
    return tuple(choice for choice in titled if choice.value in property_.enum)  # both apply


def _item_choices(items: s.StringMultiSelectItems | s.TitledMultiSelectItems) -> tuple[FieldChoice, ...]:
    return _plain(items.enum) if isinstance(items, s.StringMultiSelectItems) else _titled(items.any_of)


def _plain(values: Sequence[str]) -> tuple[FieldChoice, ...]:
    return tuple(FieldChoice(value=value, title=value) for value in dict.fromkeys(values))


def _titled(options: Sequence[s.EnumOption]) -> tuple[FieldChoice, ...]:
    """Return options with titles; the first one with a value counts."""
    choices: dict[str, FieldChoice] = {}
    for option in options:
        value, description = option.const, option.description or ""
        choices.setdefault(value, FieldChoice(value=value, title=option.title, description=description))
    return tuple(choices.values())
