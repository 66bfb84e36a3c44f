"""JSON Schemas of valid answers to questions, for front ends that make forms of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from thinkwell._core.schema.json_schema import is_object

if TYPE_CHECKING:
    from thinkwell.events import JsonValue, QuestionAsked
    from thinkwell.questions import FormField

_TYPES: Final = {"choice": "string", "choices": "array"}

_TEXT_LIMITS: Final = ("minLength", "maxLength")
_LIMITS: Final = {"number": ("minimum", "maximum"), "integer": ("minimum", "maximum")}


def answer_schema(asked: QuestionAsked) -> dict[str, JsonValue]:
    """Return the schema of an answer: the values of a form, or a permission."""
    if asked.asks == "form":
        return {
            "type": "object",
            "properties": {field.name: _field(field) for field in asked.fields},
            "required": [field.name for field in asked.fields if field.required],
        }
    properties: dict[str, JsonValue] = {"approved": {"type": "boolean"}}
    if asked.options:
        titles = [{"const": option.id, "title": option.name} for option in asked.options]
        properties["option"] = {"type": "string", "oneOf": titles}
    return {"type": "object", "properties": properties, "required": ["approved"]}


def _field(field: FormField) -> dict[str, JsonValue]:
    if field.type == "unknown":
        return dict(field.raw) if is_object(field.raw) else {}
    schema: dict[str, JsonValue] = {"type": _TYPES.get(field.type, field.type)}
    texts = {"title": field.title, "description": field.description}
    schema |= {name: text for name, text in texts.items() if text}
    if field.type == "choices":
        limits = ("minItems", "maxItems")
        schema["items"] = {"type": "string", "oneOf": _choices(field)}
        schema["uniqueItems"] = True
    else:
        limits = _LIMITS.get(field.type, _TEXT_LIMITS)
        if field.type == "choice":
            schema["oneOf"] = _choices(field)
    facts = zip((*limits, "pattern", "format", "default"), _bounds(field), strict=True)
    return schema | {name: value for name, value in facts if value is not None}


def _bounds(field: FormField) -> tuple[JsonValue, ...]:
    return field.minimum, field.maximum, field.pattern, field.format, field.default


def _choices(field: FormField) -> list[JsonValue]:
    described = (
        {"description": choice.description} if choice.description else {} for choice in field.choices
    )
    return [
        {"const": choice.value, "title": choice.title, **more}
        for choice, more in zip(field.choices, described, strict=True)
    ]
