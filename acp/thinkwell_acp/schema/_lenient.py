"""The lenient reader, for messages that do not fit their type exactly.

It walks the type along with the message, repairs what the type declares lenient (see `_base`), and builds the
models itself. It is slow and seldom runs.
"""

import types
from collections.abc import Callable, Mapping
from functools import cache
from typing import (
    Annotated,
    Any,
    Final,
    NamedTuple,
    TypeGuard,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec

from thinkwell_acp.schema._base import (
    LENIENT,
    STRICT,
    Adapt,
    Alias,
    Catch,
    Choice,
    JsonObject,
    JsonValue,
    Model,
    Opaque,
    tag_of,
)

__all__ = ("Unreadable", "is_choice", "resolve_choice", "salvage")


class Unreadable(Exception):  # noqa: N818 - it never leaves the package
    """Something strict is wrong; `path` leads to it, without the leading `$`."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(path, message)
        self.path: Final = path
        self.message: Final = message


class _Field(NamedTuple):
    name: str
    keys: tuple[str, ...]
    annotation: Any
    default: Callable[[], object] | None
    """The replacement of a missing value; `None` if it is required."""
    lenient: bool
    catch: Callable[[JsonValue, str], object] | None


def is_choice(annotation: object) -> TypeGuard[type[Choice]]:
    """Return whether a class chooses another one. The others inherit from it too, but do not choose."""
    return isinstance(annotation, type) and issubclass(annotation, Choice) and "choose" in vars(annotation)


def resolve_choice(choice: type, raw: JsonValue) -> Any:
    """Decode strictly to the class that a choice picks, or to anything for `object`: the hook for msgspec.

    Raises:
        ValueError: the value is not an object, no class reads it, or the class refuses it.
    """
    if not is_choice(choice):
        return raw
    if not _is_object(raw):
        raise ValueError(f"Expected `object`, got `{_kind(raw)}`")
    picked = choice.choose(raw)
    if issubclass(picked, Opaque):
        return picked(raw)
    return msgspec.convert(raw, picked, dec_hook=resolve_choice)


def salvage(annotation: Any, raw: JsonValue) -> Any:
    """Decode builtins to a type, and repair what is lenient.

    Raises:
        Unreadable: a strict value is wrong.
    """
    origin = get_origin(annotation)
    if origin is Annotated:
        return _salvage_annotated(annotation, raw)
    if origin in (Union, types.UnionType):
        return _salvage_union(annotation, raw)
    if origin is tuple and get_args(annotation)[1:] == (...,):
        return _salvage_array(get_args(annotation)[0], raw, skip=False)
    if origin is dict and _is_object(raw):
        return {key: _within(f".{key}", get_args(annotation)[1], value) for key, value in raw.items()}
    if is_choice(annotation):
        return _salvage_choice(annotation, raw)
    if isinstance(annotation, type) and issubclass(annotation, Model):
        return _salvage_model(annotation, raw)
    return _exactly(annotation, raw)


def _salvage_annotated(annotation: Any, raw: JsonValue) -> Any:
    inner, *marks = get_args(annotation)
    for mark in marks:
        if isinstance(mark, Adapt):
            raw = mark.function(raw)
        elif isinstance(mark, msgspec.Meta):
            return _exactly(annotation, raw)
    return salvage(inner, raw)


def _salvage_union(annotation: Any, raw: JsonValue) -> Any:
    members = [member for member in get_args(annotation) if member is not msgspec.UnsetType]
    if raw is None and types.NoneType in members:
        return None
    models: dict[object, type[Model]] = {
        member.__struct_config__.tag: member
        for member in members
        if isinstance(member, type) and issubclass(member, Model)
    }
    if len(models) > 1:
        return _salvage_tagged(models, raw)
    rest = [member for member in members if member is not types.NoneType]
    return salvage(rest[0], raw) if len(rest) == 1 else _exactly(annotation, raw)


def _salvage_tagged(models: Mapping[object, type[Model]], raw: JsonValue) -> Any:
    key = cast("str", next(iter(models.values())).__struct_config__.tag_field)
    model = models.get(tag_of(raw, key))
    if model is None:
        raise Unreadable(f".{key}", "Unknown or missing")
    return _salvage_model(model, raw)


def _salvage_array(item: Any, raw: JsonValue, *, skip: bool) -> tuple[Any, ...]:
    if not isinstance(raw, (list, tuple)):
        raise Unreadable("", f"Expected `array`, got `{_kind(raw)}`")
    values: list[Any] = []
    for index, element in enumerate(cast("list[JsonValue]", raw)):
        try:
            values.append(_within(f"[{index}]", item, element))
        except Unreadable:
            if not skip:
                raise
    return tuple(values)


def _salvage_choice(choice: type[Choice], raw: JsonValue) -> Any:
    if not _is_object(raw):
        raise Unreadable("", f"Expected `object`, got `{_kind(raw)}`")
    try:
        picked = choice.choose(raw)
    except ValueError as error:
        raise Unreadable("", str(error)) from None
    return picked(raw) if issubclass(picked, Opaque) else _salvage_model(picked, raw)


def _salvage_model(model: type[Model], raw: JsonValue) -> Any:
    if not _is_object(raw):
        raise Unreadable("", f"Expected `object`, got `{_kind(raw)}`")
    return model(**{field.name: _salvage_field(field, raw) for field in _fields(model)})


def _salvage_field(field: _Field, raw: JsonObject) -> Any:
    key = next((key for key in field.keys if key in raw), None)
    if key is None and field.default is not None:
        return field.default()
    try:
        if key is None:
            raise Unreadable(f".{field.keys[0]}", "It is missing")
        if field.lenient:
            return _within(f".{key}", field.annotation, raw[key], skip=True)
        return _within(f".{key}", field.annotation, raw[key])
    except Unreadable as error:
        if field.catch is not None:
            return field.catch(raw.get(field.keys[0]), f"{error.message} at ${error.path}")
        if field.lenient and field.default is not None:
            return field.default()
        raise


def _within(step: str, annotation: Any, raw: JsonValue, *, skip: bool = False) -> Any:
    """Decode one level down: errors get the step before their path."""
    try:
        item = _item_of(annotation) if skip and raw is not None else None
        return salvage(annotation, raw) if item is None else _salvage_array(item, raw, skip=True)
    except Unreadable as error:
        raise Unreadable(step + error.path, error.message) from None


def _item_of(annotation: Any) -> Any:
    """Return the type of the elements if the annotation is an array, or an array or `None`."""
    for member in (annotation, *get_args(annotation)):
        if get_origin(member) is tuple:
            return get_args(member)[0]
    return None


def _exactly(annotation: Any, raw: JsonValue) -> Any:
    try:
        return msgspec.convert(raw, annotation, dec_hook=resolve_choice)
    except ValueError as error:  # msgspec's errors among them
        raise Unreadable("", str(error)) from None


def _is_object(raw: JsonValue) -> TypeGuard[JsonObject]:
    return isinstance(raw, dict)


def _kind(raw: JsonValue) -> str:
    return "null" if raw is None else "array" if isinstance(raw, list) else type(raw).__name__


@cache
def _fields(model: type[Model]) -> tuple[_Field, ...]:
    hints = get_type_hints(model, include_extras=True)
    return tuple(_field(info, hints[info.name]) for info in msgspec.structs.fields(model))


def _field(info: msgspec.structs.FieldInfo, annotation: Any) -> _Field:
    marks: tuple[Any, ...] = getattr(annotation, "__metadata__", ())
    return _Field(
        name=info.name,
        keys=(info.encode_name, *(mark.name for mark in marks if isinstance(mark, Alias))),
        annotation=annotation,
        default=_default(info, get_args(annotation)[0] if LENIENT in marks else None),
        lenient=LENIENT in marks or (not info.required and STRICT not in marks),
        catch=next((mark.function for mark in marks if isinstance(mark, Catch)), None),
    )


def _default(info: msgspec.structs.FieldInfo, empty: Any) -> Callable[[], object] | None:
    """Return the factory of a field's default, or of an empty value if the field must be written."""
    if info.default_factory is not msgspec.NODEFAULT:
        return cast("Callable[[], object]", info.default_factory)
    if info.default is not msgspec.NODEFAULT:
        return lambda: info.default
    return empty if isinstance(empty, type) or empty is None else tuple
