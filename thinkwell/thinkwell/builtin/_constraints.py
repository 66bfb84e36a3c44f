"""The constraints of a JSON Schema on one value, and how a value is made to fit."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, cast
from uuid import NAMESPACE_URL, uuid5

if TYPE_CHECKING:
    from thinkwell.builtin._subjects import Subject
    from thinkwell_acp.schema import JsonObject, JsonValue


def as_object(schema: JsonValue) -> JsonObject:
    """Return a schema as an object; ``true``, which accepts anything, is an empty one."""
    return cast("JsonObject", schema) if isinstance(schema, dict) else {}


def type_of(schema: JsonObject) -> str | None:
    """Return the type that a schema requires, if it states or implies one."""
    kind: str | list[str] | None = schema.get("type")
    if isinstance(kind, list):
        return next((one for one in kind if one != "null"), "null")
    if kind is None and "properties" in schema:
        return "object"
    if kind is None and ("items" in schema or "prefixItems" in schema):
        return "array"
    return kind


def merge(one: JsonObject, other: JsonObject) -> JsonObject:
    """Return a schema that requires what both require."""
    merged = {**one, **other}
    if "properties" in one and "properties" in other:
        merged["properties"] = {**one["properties"], **other["properties"]}
    if "required" in one and "required" in other:
        merged["required"] = [*one["required"], *other["required"]]
    return merged


def nests(schema: JsonObject) -> bool:
    """Return whether a value of the schema can contain others."""
    return type_of(schema) in ("object", "array")


def bounds(schema: JsonObject, *, whole: bool) -> tuple[float | None, float | None]:
    """Return the smallest and the largest number that a schema accepts, `None` if there is no limit."""
    step = 1.0 if whole else 1e-6
    lows = [
        schema[key] + extra for key, extra in (("minimum", 0), ("exclusiveMinimum", step)) if key in schema
    ]
    highs = [
        schema[key] - extra for key, extra in (("maximum", 0), ("exclusiveMaximum", step)) if key in schema
    ]
    return max(lows, default=None), min(highs, default=None)


def clamped(
    value: float, low: float | None, high: float | None, multiple: float | None, *, whole: bool
) -> float:
    """Return the nearest number that is valid."""
    if low is not None:
        value = max(value, low)
    if high is not None:
        value = min(value, high)
    if multiple:
        value = math.floor(value / multiple) * multiple
        value += multiple if low is not None and value < low else 0
    return round(value) if whole else value


def sized(text: str, shortest: int, longest: int | None) -> str:
    """Return a text cut or repeated to fit."""
    if longest is not None and len(text) > longest:
        text = text[: max(0, longest - 1)].rstrip() + "…" if longest > 1 else text[:longest]
    while len(text) < shortest:
        text = f"{text} {text}" if text else "-"
    return text if longest is None else text[:longest]


def formatted(format_: str, subject: Subject) -> str:
    """Return a text in a format of JSON Schema: times are those of the file's last change."""
    changed = datetime.fromtimestamp(subject.modified, tz=UTC).replace(microsecond=0)
    match format_:
        case "date":
            return changed.date().isoformat()
        case "date-time":
            return changed.isoformat().replace("+00:00", "Z")
        case "time":
            return changed.timetz().isoformat().replace("+00:00", "Z")
        case "duration":
            return "PT0S"
        case "uri" | "url" | "uri-reference" | "iri":
            return Path(subject.absolute).as_uri() if subject.absolute else "about:blank"
        case "uuid":
            return str(uuid5(NAMESPACE_URL, f"{subject.path}:{subject.line}:{subject.name}"))
        case "email" | "idn-email":
            return "nobody@example.invalid"  # a name that never exists (RFC 2606)
        case "hostname" | "idn-hostname":
            return "localhost"
        case "ipv4":
            return "127.0.0.1"
        case "ipv6":
            return "::1"
        case "path" | "file-path" | "directory-path":
            return subject.path
        case _:
            return subject.text
