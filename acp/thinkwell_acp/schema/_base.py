"""The base of all wire models: base classes, the leniency markers and the decoding error.

The protocol asks its readers for leniency (`x-deserialize-default-on-error` and
`x-deserialize-skip-invalid-items` in its JSON Schema) in nearly all optional fields and few required ones. So
that is the rule here too, and only the exceptions are marked:

- an optional field is lenient: a bad value counts as absent, a bad element of its array is left out;
- a required field is strict: a bad value fails the object that holds it;
- `Strict` and `Lenient` reverse that for one field.

Annotations of models are read at run time, by msgspec and by the lenient reader: modules with models do not
postpone their evaluation.
"""

from collections.abc import Callable
from typing import Annotated, Any, Final, NoReturn, TypeAlias, TypeVar, cast, final

from msgspec import UNSET, Meta, Struct, UnsetType, field

__all__ = (
    "UNSET",
    "Adapt",
    "Alias",
    "Catch",
    "Choice",
    "DecodeError",
    "Extensible",
    "JsonObject",
    "JsonValue",
    "Lenient",
    "Model",
    "OfSession",
    "Opaque",
    "RequestId",
    "Strict",
    "UInt",
    "UnsetType",
    "tag_of",
)

JsonValue: TypeAlias = Any
"""Any JSON value as Python builtins."""

JsonObject: TypeAlias = dict[str, JsonValue]
"""A JSON object as Python builtins."""

RequestId: TypeAlias = int | str | None
"""The id of a JSON-RPC request; the three types are never converted into each other."""

UInt: TypeAlias = Annotated[int, Meta(ge=0)]
"""An integer that is not negative."""

_T = TypeVar("_T")

STRICT: Final = "strict"
LENIENT: Final = "lenient"

Strict: TypeAlias = Annotated[_T, STRICT]
"""An optional field in which a bad value is an error."""

Lenient: TypeAlias = Annotated[_T, LENIENT]
"""A required field that is always written, but is empty if it is missing or bad when read."""


class Model(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """An object of the protocol: camelCase on the wire, and without fields that have their default."""


class Extensible(Model, frozen=True, kw_only=True):
    """A model with the `_meta` object that the protocol reserves for extensions."""

    meta: JsonObject | None = field(default=None, name="_meta")


class OfSession(Extensible, frozen=True, kw_only=True):
    """A model that belongs to a session."""

    session_id: str


@final
class Alias:
    """A field with a second name on the wire, which is read and never written."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name: Final = name


@final
class Adapt:
    """A value that the lenient reader passes through a function first."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[[JsonValue], JsonValue]) -> None:
        self.function: Final = function


@final
class Catch:
    """A field for which a function makes a value from unreadable input."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[[JsonValue, str], object]) -> None:
        self.function: Final = function


class Choice:
    """Base of models without a common tag: the object's fields decide the class."""

    __slots__ = ()

    @classmethod
    def choose(cls, raw: JsonObject) -> "type[Model] | type[Opaque]":
        """Return the class that reads the object.

        Raises:
            ValueError: no class does.
        """
        raise NotImplementedError  # pragma: no cover - every root of a choice overrides it


def tag_of(raw: JsonValue, key: str) -> str | None:
    """Return the text under a key of an object, or ``None`` if it is another value."""
    tag = cast("JsonObject", raw).get(key) if isinstance(raw, dict) else None
    return tag if isinstance(tag, str) else None


class Opaque:
    """A value that is kept as it came, because it is not read here. It is written back unchanged.

    Attributes:
        raw: the value.
    """

    __slots__ = ("raw",)
    raw: JsonValue

    def __init__(self, raw: JsonValue) -> None:
        object.__setattr__(self, "raw", raw)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"immutable type: {type(self).__name__!r}")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), self._fields()

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self._fields()))})"

    def _fields(self) -> tuple[object, ...]:
        return (self.raw,)


class DecodeError(ValueError):
    """A message does not have the form of its type, and leniency does not apply.

    Attributes:
        type_name: the name of the type.
        path: the place in the message, such as `$.toolCall.toolCallId`; `$` is the whole.
        message: the problem.
        raw: the message as it was given.
    """

    def __init__(self, type_name: str, path: str, message: str, raw: object) -> None:
        super().__init__(type_name, path, message, raw)
        self.type_name: Final = type_name
        self.path: Final = path
        self.message: Final = message
        self.raw: Final = raw

    def __str__(self) -> str:
        return f"{self.type_name}: {self.message} at {self.path}"
