"""The JSON Schema of a form: a flat object of known kinds of field."""

from typing import TYPE_CHECKING, Literal, TypeAlias

from thinkwell_acp.schema._base import Choice, Extensible, JsonObject, Model, Opaque, Strict, UInt

__all__ = (
    "BooleanPropertySchema",
    "ElicitationPropertySchema",
    "ElicitationSchema",
    "EnumOption",
    "IntegerPropertySchema",
    "MultiSelectItems",
    "MultiSelectPropertySchema",
    "NumberPropertySchema",
    "OtherElicitationPropertySchema",
    "OtherMultiSelectItems",
    "StringFormat",
    "StringMultiSelectItems",
    "StringPropertySchema",
    "TitledMultiSelectItems",
)

StringFormat: TypeAlias = Literal["email", "uri", "date", "date-time"] | str
"""The format of a text; an unknown format is only a hint."""


class EnumOption(Extensible, frozen=True, kw_only=True):
    """A choice with its own title."""

    const: str
    title: str
    description: str | None = None


class _Property(Choice):
    __slots__ = ()

    @classmethod
    def choose(cls, raw: JsonObject) -> type[Model] | type[Opaque]:
        kind = raw.get("type")
        if not isinstance(kind, str):
            raise ValueError("`type` is missing or not a text")
        return _PROPERTIES.get(kind, OtherElicitationPropertySchema)


class StringPropertySchema(Extensible, _Property, frozen=True, kw_only=True, tag_field="type", tag="string"):
    """A text, or one of several texts."""

    title: str | None = None
    description: str | None = None
    min_length: Strict[UInt | None] = None
    max_length: Strict[UInt | None] = None
    pattern: Strict[str | None] = None
    format: Strict[StringFormat | None] = None
    default: str | None = None
    enum: Strict[tuple[str, ...] | None] = None
    one_of: Strict[tuple[EnumOption, ...] | None] = None


class NumberPropertySchema(Extensible, _Property, frozen=True, kw_only=True, tag_field="type", tag="number"):
    """A number."""

    title: str | None = None
    description: str | None = None
    minimum: Strict[float | None] = None
    maximum: Strict[float | None] = None
    default: float | None = None


class IntegerPropertySchema(
    Extensible, _Property, frozen=True, kw_only=True, tag_field="type", tag="integer"
):
    """A whole number."""

    title: str | None = None
    description: str | None = None
    minimum: Strict[int | None] = None
    maximum: Strict[int | None] = None
    default: int | None = None


class BooleanPropertySchema(
    Extensible, _Property, frozen=True, kw_only=True, tag_field="type", tag="boolean"
):
    """Yes or no."""

    title: str | None = None
    description: str | None = None
    default: bool | None = None


class _Items(Choice):
    __slots__ = ()

    @classmethod
    def choose(cls, raw: JsonObject) -> type[Model] | type[Opaque]:
        if raw.get("type") == "string" and "enum" in raw:
            return StringMultiSelectItems
        if "anyOf" in raw:
            return TitledMultiSelectItems
        if isinstance(kind := raw.get("type"), str) and kind != "string":
            return OtherMultiSelectItems
        raise ValueError("neither `enum` nor `anyOf`")


class StringMultiSelectItems(Extensible, _Items, frozen=True, kw_only=True, tag_field="type", tag="string"):
    """Choices that are their own titles."""

    enum: tuple[str, ...]


class TitledMultiSelectItems(Extensible, _Items, frozen=True, kw_only=True):
    """Choices with titles."""

    any_of: tuple[EnumOption, ...]


class OtherMultiSelectItems(Opaque, _Items):
    """Choices of an unknown type."""

    __slots__ = ()
    __match_args__ = ("raw",)
    raw: JsonObject


if TYPE_CHECKING:
    MultiSelectItems: TypeAlias = StringMultiSelectItems | TitledMultiSelectItems | OtherMultiSelectItems
else:
    MultiSelectItems = _Items


class MultiSelectPropertySchema(
    Extensible, _Property, frozen=True, kw_only=True, tag_field="type", tag="array"
):
    """Any number of choices."""

    items: MultiSelectItems
    title: str | None = None
    description: str | None = None
    min_items: Strict[UInt | None] = None
    max_items: Strict[UInt | None] = None
    default: tuple[str, ...] | None = None


class OtherElicitationPropertySchema(Opaque, _Property):
    """A field of an unknown type. It must not be shown as any known control."""

    __slots__ = ()
    __match_args__ = ("raw",)
    raw: JsonObject


_PROPERTIES: dict[str, type[Model]] = {
    "string": StringPropertySchema,
    "number": NumberPropertySchema,
    "integer": IntegerPropertySchema,
    "boolean": BooleanPropertySchema,
    "array": MultiSelectPropertySchema,
}

if TYPE_CHECKING:
    ElicitationPropertySchema: TypeAlias = (
        StringPropertySchema
        | NumberPropertySchema
        | IntegerPropertySchema
        | BooleanPropertySchema
        | MultiSelectPropertySchema
        | OtherElicitationPropertySchema
    )
else:
    ElicitationPropertySchema = _Property


class ElicitationSchema(Extensible, frozen=True, kw_only=True, tag_field="type", tag="object"):
    """A form: its fields by name, and the names of the required ones."""

    properties: Strict[dict[str, ElicitationPropertySchema]] = {}  # noqa: RUF012 - a new dict for each object
    title: str | None = None
    description: str | None = None
    required: Strict[tuple[str, ...] | None] = None
