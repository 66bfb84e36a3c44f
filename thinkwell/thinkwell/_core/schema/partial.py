"""What there is of a result while its agent writes it: of a type, what is sure to stay as it is."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast

from thinkwell._core.schema.json_schema import is_array, is_object
from thinkwell._core.schema.output import RESULT_KEY

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pydantic_core import SchemaValidator

    from thinkwell._core.schema.output import Output
    from thinkwell.events import JsonValue
    from thinkwell.view import DraftKind

    CoreSchema: TypeAlias = dict[str, Any]

_FIELDS: Final = frozenset(("model-fields", "typed-dict", "dataclass-args"))
_UNIONS: Final = frozenset(("union", "tagged-union", "nullable"))
_CHANGES_TEXT: Final = ("strip_whitespace", "to_lower", "to_upper")
"""What pydantic may do to a text. Its beginning is then not the beginning of what comes of it."""


class Partial(NamedTuple):
    """A part of a result."""

    value: Any
    """The part, validated."""
    raw: JsonValue
    """What it was made of, as the agent gave it."""
    given: JsonValue
    """All that the agent has shown, also what may change."""
    whole: frozenset[str] = frozenset()
    """The names of the fields that are whole."""


class _Field(NamedTuple):
    """A field of an object."""

    name: str
    schema: CoreSchema
    alias: JsonValue


class PartialResult:
    """What there may be of a result before all of it is there.

    A part is made of what nothing can change any more: the fields and items behind which others have begun.
    Of the one behind which none has, that is the text so far, where its type leaves texts as they are, and
    the items of a list but the last. pydantic validates them, as fields of a TypedDict that requires none.
    It is not left to find the parts by itself: it takes ``1`` where ``12`` is being written, fills in what a
    model is missing, and takes the first type of a union that fits.

    Args:
        output: The output type; ``None``: it is not known.
        own_fields: Whether the agent was offered the fields of the value itself, or its one value, and not
            a tool for anything.
        whole_fields: Whether the agent shows no field before it is whole.
    """

    def __init__(self, output: Output[Any] | None, *, own_fields: bool, whole_fields: bool = False) -> None:
        self._whole_fields = whole_fields
        self._wrapped = output is not None and output.wrapped
        self._definitions: dict[str, CoreSchema] = {}
        self._config: CoreSchema | None = None
        self._root: CoreSchema = {"type": "any"}
        if output is not None and output.adapter is not None:
            self._root = self._object_or_list(cast("CoreSchema", output.adapter.core_schema))
        self.is_union: bool = self._root["type"] in _UNIONS
        """Whether only the end says which type it is."""
        self.name: str = "" if output is None else output.name
        self.kind: DraftKind = "end"
        if output is not None and output.schema is None:
            self.kind = "text"
        elif own_fields and self._root["type"] in _FIELDS:
            self.kind = "fields"
        elif own_fields and self._root["type"] == "list":
            self.kind = "items"

    def _object_or_list(self, schema: CoreSchema) -> CoreSchema:
        """Return the schema that has the fields or items. What runs before it may move them."""
        while True:
            match schema:
                case {"type": "definitions", "schema": inner, "definitions": definitions}:
                    self._definitions = {each["ref"]: each for each in definitions}
                case {"type": "definition-ref", "schema_ref": ref}:
                    inner = self._definitions[ref]
                case {"type": "model", "root_model": True}:
                    return schema
                case {"type": "model" | "dataclass", "schema": inner}:
                    self._config = schema.get("config")
                case {"type": "default" | "function-after", "schema": inner}:
                    pass
                case _:
                    self._config = schema.get("config", self._config)
                    return schema
            schema = inner

    @cached_property
    def _fields(self) -> Mapping[str, _Field]:
        """The fields, by what an agent calls them."""
        known = self._root["fields"]
        if self._root["type"] == "dataclass-args":
            known = {each["name"]: each for each in known if not each.get("init_only")}
        found: dict[str, _Field] = {}
        for name, field in known.items():
            schema, alias = field["schema"], field.get("validation_alias")
            while schema["type"] == "default":  # else it would be there before the agent gives it
                schema = schema["schema"]
            if alias is None or isinstance(alias, str):  # what has several names comes with the end
                found[alias or name] = _Field(name, schema, alias)
        return found

    @cached_property
    def _validator(self) -> SchemaValidator:
        """Validates any fields, or the items."""
        from pydantic_core import core_schema

        if self.kind == "items":
            return self._checks(core_schema.list_schema(self._root["items_schema"]))
        known = {
            field.name: core_schema.typed_dict_field(
                cast("Any", field.schema), required=False, validation_alias=field.alias
            )
            for field in self._fields.values()
        }
        return self._checks(core_schema.typed_dict_schema(known, config=cast("Any", self._config)))

    def _checks(self, schema: Any) -> SchemaValidator:
        from pydantic_core import SchemaValidator, core_schema

        if self._definitions:
            schema = core_schema.definitions_schema(schema, cast("Any", [*self._definitions.values()]))
        return SchemaValidator(schema, cast("Any", self._config))

    @cached_property
    def _open(self) -> Mapping[str, SchemaValidator | None]:
        """The fields that are there before they are whole: texts, and lists, with what checks their items."""
        from pydantic_core import core_schema

        found: dict[str, SchemaValidator | None] = {}
        for key, field in self._fields.items():
            schema = field.schema
            if schema["type"] == "nullable":
                schema = schema["schema"]
            if schema["type"] == "str" and not self._changes(schema):
                found[key] = None
            elif schema["type"] == "list":
                found[key] = self._checks(core_schema.list_schema(schema["items_schema"]))
        return found

    def _changes(self, schema: CoreSchema) -> bool:
        config = self._config or {}
        return any(schema.get(key, config.get(f"str_{key}")) for key in _CHANGES_TEXT)

    @property
    def nothing(self) -> Partial:
        """What there is before there is anything."""
        match self.kind:
            case "fields":
                return Partial({}, {}, {})
            case "items":
                return Partial([], [], [])
            case _:
                return Partial("", "", "")

    def of(self, given: JsonValue) -> Partial:
        """Return what is sure of the arguments that an agent has shown so far."""
        if self._wrapped and is_object(given):
            given = given.get(RESULT_KEY)
        if self.kind == "items" and is_array(given):
            raw_items = given if self._whole_fields else given[:-1]
            return Partial(_valid(self._validator, raw_items), raw_items, given)
        return self._of_fields(given) if self.kind == "fields" and is_object(given) else self.nothing

    def _of_fields(self, given: dict[str, JsonValue]) -> Partial:
        raw = {key: value for key, value in given.items() if key in self._fields}
        named = {self._fields[key].name: part for key, part in raw.items()}
        last = next(reversed(given), "")
        goes_on = not self._whole_fields and last in raw
        part = raw.pop(last) if goes_on else None
        value = _valid(self._validator, raw)
        whole = frozenset(value)
        raw = {name: part for name, part in named.items() if name in whole}
        if goes_on and last in self._open:
            self._add_open(last, part, value, raw)
        return Partial(value, raw, named, whole)

    def _add_open(self, key: str, part: JsonValue, value: dict[str, Any], raw: dict[str, JsonValue]) -> None:
        """Add what is sure of a field that goes on."""
        name, check = self._fields[key].name, self._open[key]
        if check is None and isinstance(part, str):
            value[name] = raw[name] = part
        elif check is not None and is_array(part):
            raw[name] = part[:-1]
            value[name] = _valid(check, part[:-1])


def whole(value: Any) -> Partial:
    """Return a result as its drafts show it: a model or a dataclass by its fields."""
    given: Any = value
    names: Iterable[str] | None = getattr(given.__class__, "model_fields", None)
    if is_dataclass(given):
        names = (field.name for field in fields(given))
    if names is not None:
        given = {name: getattr(given, name) for name in names}
    return Partial(given, given, given, frozenset(given) if is_object(given) else frozenset())


def continues(before: JsonValue, whole: frozenset[str], now: JsonValue) -> bool:
    """Return whether a part of a result is still a part of what there is now.

    Args:
        before: The part.
        whole: Its fields that were whole.
        now: What there is now.
    """
    if not before:
        return True
    if not is_object(before):
        return _grows(before, now)
    return all(
        name in now and (now[name] == part if name in whole else _grows(part, now[name]))
        for name, part in before.items()
    )


def _grows(before: JsonValue, now: JsonValue) -> bool:
    if isinstance(before, str):
        return isinstance(now, str) and now.startswith(before)
    return is_array(now) and now[: len(before)] == before


def _valid(check: SchemaValidator, raw: Any) -> Any:
    """Return what is valid of some fields, or of some items. The result will be refused for the others."""
    from pydantic_core import ValidationError

    try:
        # Only the JSON mode reads dates and such in strict models.
        return check.validate_json(json.dumps(raw))
    except ValidationError as exc:
        wrong = {error["loc"][0] for error in exc.errors(include_url=False) if error["loc"]}
    except Exception:  # a validator of the user's
        wrong = set[int | str]()
    left: Any = {key: part for key, part in raw.items() if key not in wrong} if is_object(raw) else []
    if is_array(raw):
        left = raw[: min(cast("set[int]", wrong), default=0)]
    return _valid(check, left) if wrong and left else left[:0] if is_array(raw) else {}
