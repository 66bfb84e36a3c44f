"""What a run is to return: its JSON Schema, and the way from what an agent sent to a validated value."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from thinkwell.events import JsonValue

T = TypeVar("T")

RESULT_KEY: Final = "result"
"""The key under which a result stands whose schema is not that of an object: arguments of MCP tools are objects."""

ENVELOPES: Final = frozenset(
    {"result", "value", "output", "data", "response", "answer", "arguments", "args", "input", "parameters", "return_result"}
)
"""Keys under which models were seen to wrap what they return."""

MAX_LAYERS: Final = 4
"""How many envelopes and layers of stringified JSON are taken off."""


class JsonSchema(dict[str, object]):
    """A JSON Schema, to be returned as plain JSON data: ``agent.think(JsonSchema({"type": "integer"}))``."""


class OutputInvalid(Exception):
    """A value does not fit the output type. `errors` says why, one line each."""

    def __init__(self, errors: tuple[str, ...]) -> None:
        super().__init__(errors)
        self.errors = errors


@dataclass(frozen=True, slots=True, kw_only=True)
class Output(Generic[T]):
    """An output type, prepared."""

    name: str
    schema: Mapping[str, JsonValue] | None
    """JSON Schema of the value; ``None``: the result is the text of the last message, and no tool is needed."""
    check: Callable[[JsonValue], T]
    """Returns the validated value or raises `OutputInvalid`."""
    text: Callable[[str], T] | None = None
    """Turns the last message into the value, where there is no schema."""

    @property
    def wrapped(self) -> bool:
        """Whether the value stands under `RESULT_KEY`, because its schema is not that of an object."""
        return self.schema is not None and not _is_object(self.schema)

    def tool_schema(self) -> dict[str, JsonValue]:
        """Return the schema of the arguments of ``return_result``."""
        assert self.schema is not None
        if not self.wrapped:
            return dict(self.schema)
        inner = dict(self.schema)
        definitions = inner.pop("$defs", None)
        schema: dict[str, JsonValue] = {
            "type": "object",
            "properties": {RESULT_KEY: inner},
            "required": [RESULT_KEY],
            "additionalProperties": False,
        }
        if definitions is not None:
            schema["$defs"] = definitions
        return schema

    def accept(self, arguments: JsonValue, *, wrapped: bool) -> T:
        """Return the value in the arguments of a call of ``return_result``.

        The arguments are read as they should be, and without the envelopes that models add. What is taken off stays off only
        where the value is valid after it. An envelope that is no property of the type is taken off first: a type whose
        fields are all optional would be "valid" with it, and empty.

        Args:
            arguments: What the agent sent.
            wrapped: Whether the value was asked for under `RESULT_KEY`.

        Raises:
            OutputInvalid: No reading is valid; the errors are those of the plainest one.
        """
        plain = arguments
        if wrapped and isinstance(plain, dict) and set(plain) == {RESULT_KEY}:
            plain = plain[RESULT_KEY]
        readings = [plain, *self._without_envelopes(plain)]
        if self._in_foreign_envelope(plain):
            readings.append(readings.pop(0))
        errors: dict[int, OutputInvalid] = {}
        for candidate in readings:
            try:
                return self.check(candidate)
            except OutputInvalid as exc:
                errors[id(candidate)] = exc
        raise errors[id(plain)]

    def _in_foreign_envelope(self, value: JsonValue) -> bool:
        if self._envelope(value) is None or self.schema is None:
            return False
        return next(iter(value)) not in _properties(self.schema)

    def _envelope(self, value: JsonValue) -> str | None:
        if isinstance(value, dict) and len(value) == 1 and (key := next(iter(value))) in ENVELOPES | {self.name}:
            return str(key)
        return None

    def _without_envelopes(self, value: JsonValue) -> Iterator[JsonValue]:
        for _ in range(MAX_LAYERS):
            if isinstance(value, str):
                try:
                    value = json.loads(value)
                except (ValueError, RecursionError):
                    return
            elif (key := self._envelope(value)) is not None:
                value = value[key]
            else:
                return
            yield value


def output_of(type_: object) -> Output[Any]:
    """Prepare an output type.

    Raises:
        TypeError: It cannot be validated, or has no JSON Schema; the message says what to give instead.
    """
    if type_ is None or type_ is str:
        return Output(name="str", schema=None, check=_reject, text=str)
    if isinstance(type_, dict):
        return _of_schema(type_)
    return _of_type(type_)


def _reject(value: JsonValue) -> Any:
    raise AssertionError(value)  # pragma: no cover - a text result is never returned by the tool


def _root(schema: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    """Return the schema that the root means: recursive models stand behind a reference."""
    reference = schema.get("$ref")
    if not isinstance(reference, str) or not reference.startswith("#/$defs/"):
        return schema
    target: Mapping[str, JsonValue] = schema.get("$defs", {}).get(reference.removeprefix("#/$defs/"), {})
    return target


def _is_object(schema: Mapping[str, JsonValue]) -> bool:
    # Agents' own checkers want the type at the root itself, so a root that is a reference is wrapped.
    return schema.get("type") == "object"


def _properties(schema: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    properties: Mapping[str, JsonValue] = _root(schema).get("properties", {})
    return properties


def _of_schema(schema: dict[str, Any]) -> Output[JsonValue]:
    from jsonschema import SchemaError  # noqa: PLC0415 - loaded by those who use raw schemas
    from jsonschema.validators import validator_for  # noqa: PLC0415

    validator_class = validator_for(schema)
    try:
        validator_class.check_schema(schema)
    except SchemaError as exc:
        msg = f"think({schema!r:.200}): this is no valid JSON Schema: {exc.message} (at {exc.json_path})"
        raise TypeError(msg) from exc
    validator = validator_class(schema)

    def check(value: JsonValue) -> JsonValue:
        errors = tuple(f"{error.json_path}: {error.message}" for error in validator.iter_errors(value))
        if errors:
            raise OutputInvalid(errors)
        return value

    return Output(name=str(schema.get("title", "result")), schema=schema, check=check)


def _of_type(type_: object) -> Output[Any]:
    from pydantic import PydanticUserError, TypeAdapter, ValidationError  # noqa: PLC0415 - loaded when first needed

    adapter: TypeAdapter[Any]
    name = getattr(type_, "__name__", None) or str(type_)
    try:
        adapter = type_ if isinstance(type_, TypeAdapter) else TypeAdapter(type_)
        schema = adapter.json_schema()
    except (PydanticUserError, NameError) as exc:
        msg = (
            f"think({name}): pydantic cannot make a schema of it. Give a pydantic model, a dataclass, a TypedDict, a union, "
            f"list, Literal or scalar of those, or JsonSchema({{…}}).\n{exc}"
        )
        raise TypeError(msg) from exc

    def check(value: JsonValue) -> Any:
        try:
            return adapter.validate_json(json.dumps(value))  # only the JSON mode reads dates and such in strict models
        except ValidationError as exc:
            raise OutputInvalid(_describe(exc)) from None

    return Output(name=name, schema=schema, check=check)


def _describe(error: Any) -> tuple[str, ...]:
    lines: list[str] = []
    for item in error.errors(include_url=False, include_context=False):
        place = ".".join(map(str, item["loc"])) or "the value"
        lines.append(f"{place}: {item['msg']} (got {item['input']!r:.100})")
    return tuple(lines)
