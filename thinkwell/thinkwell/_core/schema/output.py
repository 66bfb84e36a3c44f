"""A run's output type: its JSON Schema, and the validation of the agent's value."""

from __future__ import annotations

import json
from dataclasses import dataclass, is_dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, TypeGuard, TypeVar

from thinkwell._core.schema.json_schema import checker, declared, is_object, moved, without_agent_extras
from thinkwell._core.schema.untrusted import TooCostlyError, bounded, refuse_costly
from thinkwell._values.source import where

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pydantic import TypeAdapter, ValidationError
    from typing_extensions import TypeVar as TypeVarWithDefault

    from thinkwell.events import JsonValue

    # Type checkers without `TypeForm` find nothing for it, and use the default.
    Form = TypeVarWithDefault("Form", default=object)

T = TypeVar("T")

RESULT_KEY: Final = "result"
"""The key of a result that is not an object: arguments of MCP tools are objects."""

RESULT_TOOL: Final = "return_result"
"""Name of the tool by which an agent returns its result."""

ENVELOPES: Final = frozenset(
    (
        *("result", "value", "output", "data", "response", "answer"),
        *("arguments", "args", "input", "parameters", RESULT_TOOL),
    )
)
"""Keys under which models were seen to wrap their result."""

MOST_ERRORS: Final = 50
"""Most lines about a problem that the agent gets: the model reads and pays for each."""

WHAT_TO_GIVE: Final = (
    "Give a pydantic model, a dataclass, a TypedDict, a union, list, Literal or scalar of those, "
    "or JsonSchema({…})."
)


class JsonSchema(dict[str, object]):
    """A JSON Schema for a result of plain JSON data: ``agent.think(JsonSchema({"type": "integer"}))``."""


class ForeignSchema(JsonSchema):
    """A JSON Schema that is not trusted. It is refused if a check against it could take too long."""


class OutputInvalid(Exception):  # noqa: N818 - says what happened
    """A value does not fit the output type. `errors` has at most `MOST_ERRORS` reasons, one line each."""

    def __init__(self, errors: tuple[str, ...]) -> None:
        if len(errors) > MOST_ERRORS:
            errors = (*errors[: MOST_ERRORS - 1], f"… and {len(errors) - MOST_ERRORS + 1:,} more")
        super().__init__(errors)
        self.errors = errors


@dataclass(frozen=True, slots=True, kw_only=True)
class Output(Generic[T]):
    """An output type, prepared."""

    name: str
    schema: Mapping[str, JsonValue] | None
    """JSON Schema of the value; ``None``: the result is the text of the last message, without a tool."""
    check: Callable[[JsonValue], T]
    """Returns the validated value or raises `OutputInvalid`."""
    text: Callable[[str], T] | None = None
    """Turns the last message into the value, if there is no schema."""
    drops_unknown: bool = False
    """Whether the value cannot have keys that the schema does not name."""
    adapter: TypeAdapter[T] | None = None
    """Validates the value, if pydantic knows its type."""
    type: object = None
    """The type as it was given, unless it is a JSON Schema."""

    @property
    def wrapped(self) -> bool:
        """Whether the value is under `RESULT_KEY`: its schema is not plainly that of an object."""
        return self.schema is not None and not _is_object(self.schema)

    def tool_schema(self) -> dict[str, JsonValue]:
        """Return the schema of the arguments of ``return_result``."""
        assert self.schema is not None
        if not self.wrapped:
            return dict(self.schema)
        inner = moved(self.schema, f"/properties/{RESULT_KEY}")
        definitions = inner.pop("$defs", None)
        inner.pop("$id", None)  # it would become the base of the moved references
        schema: dict[str, JsonValue] = {
            "type": "object",
            "properties": {RESULT_KEY: inner},
            "required": [RESULT_KEY],
            "additionalProperties": False,
        }
        if definitions is not None:
            schema["$defs"] = definitions
        return schema

    def accept(self, arguments: dict[str, JsonValue], *, wrapped: bool) -> T:
        """Return the value in the arguments of a call of ``return_result``.

        The arguments are read as they should be, and without the envelopes and quotes that models add. An
        envelope is removed only if the value is valid without it.

        Args:
            arguments: The agent's arguments.
            wrapped: Whether the value was asked for under `RESULT_KEY`.

        Raises:
            OutputInvalid: No reading is valid; the errors are those of the simplest one.
        """
        failures: list[tuple[JsonValue, OutputInvalid]] = []
        for reading in self._readings(arguments, wrapped):
            try:
                return self.check(reading)
            except OutputInvalid as exc:
                failures.append((reading, exc))
            except Exception as exc:  # a validator of the user
                failures.append((reading, OutputInvalid((f"{type(exc).__name__}: {exc}",))))
        raise next((exc for reading, exc in failures if not isinstance(reading, str)), failures[0][1])

    def _readings(self, arguments: dict[str, JsonValue], wrapped: bool) -> list[JsonValue]:
        """Return the possible meanings of the arguments, the likeliest first.

        An envelope that the type cannot contain is not part of the value: a type with only optional fields
        would be valid with it, and empty.
        """
        assert self.schema is not None
        plain = without_agent_extras(arguments, self.schema)
        readings = list(self._layers(plain))
        if wrapped and RESULT_KEY in arguments:
            readings = [*self._layers(arguments[RESULT_KEY]), plain]
        return [reading for reading in readings if not self._is_foreign_envelope(reading)]

    def _layers(self, value: JsonValue) -> Iterator[JsonValue]:
        """Yield the value, its content, the content of that, and so on."""
        while True:
            yield value
            if isinstance(value, str):
                try:
                    value = json.loads(value)
                except (ValueError, RecursionError):
                    return
            elif (key := self._envelope(value)) is not None:
                value = value[key]
            else:
                return

    def _envelope(self, value: JsonValue) -> str | None:
        keys = list(value) if is_object(value) else []
        return keys[0] if len(keys) == 1 and (keys[0] in ENVELOPES or keys[0] == self.name) else None

    def _is_foreign_envelope(self, value: JsonValue) -> bool:
        assert self.schema is not None
        key = self._envelope(value)
        if key is None or not self.drops_unknown:
            return False
        known = declared(self.schema)
        return not known.open and key not in known.names


def output_of(type_: object) -> Output[Any]:
    """Prepare an output type.

    Raises:
        TypeError: It cannot be validated, or has no JSON Schema; the message says what to pass instead.
    """
    if type_ is None or type_ is str:
        return Output(name="str", schema=None, check=_reject, text=str)
    if is_object(type_):
        return _of_schema(type_ if isinstance(type_, JsonSchema) else JsonSchema(type_))
    return _of_type(type_)


def output_type(given: object, call: str) -> Output[Any]:
    """Prepare an output type that was passed to a call such as ``think({})``.

    Raises:
        TypeError: It cannot be used; the message says what to pass instead.
    """
    if isinstance(given, str):
        shown = f"{given!r:.60}"
        raise TypeError(
            f"{call.format(shown)}: a text is not a type. {WHAT_TO_GIVE} A prompt is given like this: "
            f"think().text({shown})"
        )
    kind = type(given)
    if is_dataclass(kind) or hasattr(kind, "model_fields"):
        name = kind.__name__
        raise TypeError(
            f"{call.format('')}: you passed an instance of {name}; pass the type: {call.format(name)}"
        )
    return output_of(given)


def _reject(value: JsonValue) -> Any:
    raise AssertionError(value)  # pragma: no cover - a text result is never returned by the tool


def _is_object(schema: Mapping[str, JsonValue]) -> bool:
    # Agents' own checkers, and model services, require the type at the root itself, without alternatives.
    return schema.get("type") == "object" and not {"anyOf", "oneOf", "allOf"} & schema.keys()


def _of_schema(schema: JsonSchema) -> Output[JsonValue]:
    try:
        if isinstance(schema, ForeignSchema):
            refuse_costly(schema)
            find_flaws = checker(schema, dialect=bounded)
        else:
            find_flaws = checker(schema)
    except TypeError as exc:
        raise TypeError(f"think(JsonSchema({dict(schema)!r:.200})): {exc}") from exc

    def check(value: JsonValue) -> JsonValue:
        try:
            flaws = find_flaws(value)
        except TooCostlyError:
            raise OutputInvalid(
                ("$: it takes too long to check it against the schema; return less",)
            ) from None
        if flaws:
            raise OutputInvalid(tuple(flaw.line for flaw in flaws))
        return value

    return Output(name=str(schema.get("title", "result")), schema=schema, check=check)


def _of_type(type_: Any) -> Output[Any]:
    from pydantic import TypeAdapter, ValidationError  # loaded when first needed

    from thinkwell._core.schema.pydantic_schema import QuietSchema

    name: str = getattr(type_, "__name__", None) or str(type_)

    def is_adapter(given: object) -> TypeGuard[TypeAdapter[Any]]:
        return isinstance(given, TypeAdapter)

    try:
        if isinstance(type_, str) or hasattr(type_, "__code__"):
            raise TypeError("it is a name or a function, not a type")  # pydantic would accept it
        if hasattr(type_, "model_rebuild"):
            type_.model_rebuild()  # its error names the undefined type; the adapter's would not
        adapter = type_ if is_adapter(type_) else TypeAdapter[Any](type_)
        schema = adapter.json_schema(schema_generator=QuietSchema)
    except Exception as exc:  # pydantic's errors, and those of the type's hooks
        raise TypeError(
            f"think({name}){where(type_)}: pydantic cannot make a schema of it. {WHAT_TO_GIVE}\n{exc}"
        ) from exc

    def check(value: JsonValue) -> Any:
        try:
            # Only the JSON mode accepts dates and similar values in strict models.
            return adapter.validate_json(json.dumps(value))
        except ValidationError as exc:
            raise OutputInvalid(_describe(exc)) from None

    return Output(name=name, schema=schema, check=check, drops_unknown=True, adapter=adapter, type=type_)


def _describe(error: ValidationError) -> tuple[str, ...]:
    lines: list[str] = []
    for item in error.errors(include_url=False, include_context=False):
        place = ".".join(map(str, item["loc"])) or "the value"
        lines.append(f"{place}: {item['msg']} (got {item['input']!r:.100})")
    return tuple(lines)
