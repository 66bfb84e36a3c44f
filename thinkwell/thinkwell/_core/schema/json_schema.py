"""JSON Schemas: their keys, moving them, and checking values against them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeGuard
from urllib.parse import unquote

from thinkwell.events import JsonValue

if TYPE_CHECKING:
    from referencing import Resource
    from referencing._core import Resolver

Schema: TypeAlias = Mapping[str, JsonValue]

Dialect: TypeAlias = Callable[[Any], Callable[..., Any]]
"""Makes a validator class from one of jsonschema's."""


def is_object(value: JsonValue) -> TypeGuard[dict[str, JsonValue]]:
    """Return whether a JSON value is an object."""
    return isinstance(value, dict)


def is_array(value: JsonValue) -> TypeGuard[list[JsonValue]]:
    """Return whether a JSON value is an array."""
    return isinstance(value, list)


AGENT_EXTRAS: Final = frozenset({"wait_for_previous", "security_risk"})
"""Arguments that agents were seen to add to every tool, and to pass on even if the schema forbids it."""


class Flaw(NamedTuple):
    """A problem in a value."""

    key: str
    """The top-level key or index of its place; empty for the value itself."""
    line: str
    """The place and the problem, as text."""


class Declared(NamedTuple):
    """The keys of an object, according to a schema."""

    names: frozenset[str]
    open: bool
    """Whether other keys are allowed too, as in a mapping."""


def declared(schema: Schema) -> Declared:
    """Return the keys that an object of this schema has, in any of its variants."""
    names: set[str] = set()
    is_open = False
    for variant in _variants(schema):
        properties = variant.get("properties")
        if is_object(properties):
            names.update(properties)
        rest = variant.get("additionalProperties", properties is None and _takes_objects(variant))
        is_open |= rest is not False or "patternProperties" in variant
    return Declared(frozenset(names), is_open)


def _takes_objects(variant: Schema) -> bool:
    return "object" in _types(variant) if "type" in variant else not {"enum", "const"} & variant.keys()


def _types(variant: Schema) -> list[JsonValue]:
    types = variant["type"]
    return types if is_array(types) else [types]


def _variants(schema: Schema) -> Iterator[Schema]:
    """Yield the schemas that a value may have: through references and combinations, each once."""
    root = dict(schema)
    waiting: list[JsonValue] = [root]
    seen: list[JsonValue] = []
    while waiting:
        variant = waiting.pop()
        if variant is True:
            yield {}
        if not is_object(variant) or any(variant is one for one in seen):
            continue
        seen.append(variant)
        further: list[JsonValue] = [
            one for key in ("anyOf", "oneOf", "allOf") for one in variant.get(key, ())
        ]
        if "$ref" in variant:
            further.append(resolve(root, variant["$ref"]))
        waiting.extend(further)
        if not further or "properties" in variant:
            yield variant


def resolve(root: dict[str, JsonValue], reference: JsonValue) -> JsonValue:
    """Return the target of a reference within a schema (``#/…``); ``None`` if there is none."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    place: JsonValue = root
    for step in unquote(reference[1:]).split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if is_array(place) and key.isdecimal() and int(key) < len(place):
            place = place[int(key)]
        elif is_object(place) and key in place:
            place = place[key]
        else:
            return None
    return place


def moved(schema: JsonValue, prefix: str) -> JsonValue:
    """Return a schema adapted to its place `prefix` in another one, whose root gets its ``$defs``."""
    if is_array(schema):
        return [moved(item, prefix) for item in schema]
    if not is_object(schema):
        return schema
    new = {key: moved(value, prefix) for key, value in schema.items()}
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#") and not reference.startswith("#/$defs/"):
        new["$ref"] = f"#{prefix}{reference[1:]}"
    return new


def checker(schema: Schema, *, dialect: Dialect | None = None) -> Callable[[JsonValue], list[Flaw]]:
    """Return a function that finds the problems of a value. Nothing is fetched from anywhere.

    Args:
        schema: The schema.
        dialect: Returns the class of the checker, given jsonschema's own.

    Raises:
        TypeError: It is not a valid schema, or refers to a missing part.
    """
    from jsonschema import SchemaError  # only for raw schemas
    from jsonschema.validators import validator_for
    from referencing import Registry
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012, specification_with

    validator_class: Any = validator_for(schema)
    try:
        validator_class.check_schema(schema)
    except SchemaError as exc:
        raise TypeError(f"this is not a valid JSON Schema: {exc.message} (at {exc.json_path})") from exc
    specification = specification_with(validator_class.META_SCHEMA.get("$schema", ""), default=DRAFT202012)
    root = specification.create_resource(dict(schema))
    registry = Registry[Any]()
    try:
        _check_references(root, registry.resolver_with_root(root))
    except Unresolvable as exc:
        raise TypeError(
            f"this JSON Schema refers to {exc.ref}, which it does not contain; nothing is fetched"
        ) from exc
    make_validator = validator_class if dialect is None else dialect(validator_class)

    def check(value: JsonValue) -> list[Flaw]:
        validator = make_validator(schema, registry=registry)
        try:
            return [
                Flaw(str(next(iter(error.absolute_path), "")), f"{error.json_path}: {error.message:.500}")
                for error in validator.iter_errors(value)
            ]
        except RecursionError:
            return [Flaw("", "$: it is nested too deeply, or the schema refers to itself without end")]

    return check


def _check_references(resource: Resource[Any], resolver: Resolver[Any]) -> None:
    """Check that a schema contains everything that it refers to.

    Raises:
        Unresolvable: A part is missing.
    """
    contents = resource.contents
    if is_object(contents):
        for key in ("$ref", "$dynamicRef"):
            if isinstance(reference := contents.get(key), str):
                resolver.lookup(reference)
    for part in resource.subresources():
        _check_references(part, resolver.in_subresource(part))


def without_agent_extras(arguments: Mapping[str, JsonValue], schema: Schema) -> dict[str, JsonValue]:
    """Return a tool's arguments without those that an agent added and the schema does not have."""
    keys = declared(schema)
    known = keys.names if keys.names or not keys.open else AGENT_EXTRAS
    return {key: value for key, value in arguments.items() if key in known or key not in AGENT_EXTRAS}
