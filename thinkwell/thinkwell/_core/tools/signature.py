"""A function's parameters as a tool's arguments: their schema, and their validation."""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, get_args, get_type_hints

from thinkwell._core.schema.json_schema import Flaw, checker, declared, without_agent_extras
from thinkwell._core.tools.docstring import read_docstring
from thinkwell._values.source import where
from thinkwell.errors import ToolError

if TYPE_CHECKING:
    from thinkwell.events import JsonValue

Arguments: TypeAlias = Mapping[str, "JsonValue"]
Validate: TypeAlias = Callable[[Arguments], dict[str, object]]
"""Turns the agent's arguments into the function's; raises `ToolError`."""


class Signature(NamedTuple):
    """The tool data of a function."""

    name: str
    description: str
    schema: dict[str, JsonValue]
    validate: Validate
    context_parameter: str | None


class _InvalidError(Exception):
    def __init__(self, flaws: list[Flaw]) -> None:
        super().__init__(flaws)
        self.flaws = flaws


def _unbound(function: Callable[..., object]) -> Callable[..., object]:
    while isinstance(function, functools.partial):
        function = function.func
    return function


def code_of(function: Callable[..., object]) -> Any:
    """Return the function whose name, docstring and annotations are used."""
    function = _unbound(function)
    return function if inspect.isroutine(function) or isinstance(function, type) else type(function).__call__


def _check_kind(function: Callable[..., object], unbound: object, code: Any) -> None:
    if isinstance(unbound, type):
        raise TypeError(f"{label(function)}: it is a class; write a function that creates one")
    if inspect.isgeneratorfunction(code) or inspect.isasyncgenfunction(code):
        raise TypeError(f"{label(function)}: it is a generator, and a tool returns one value; return a list")


def label(function: Callable[..., object]) -> str:
    """Return a function's label for messages: its name and location."""
    code = code_of(function)
    return f"tool {getattr(code, '__qualname__', code)}(){where(code)}"


def read_signature(
    function: Callable[..., object], context_type: type, input_schema: Arguments | None
) -> Signature:
    """Read a function.

    Args:
        function: Any callable.
        context_type: Annotation of the parameter that the agent does not fill.
        input_schema: The schema of the arguments, instead of deriving it from the parameters.

    Raises:
        TypeError: It cannot be a tool; the message names the line to fix.
    """
    unbound, code = _unbound(function), code_of(function)
    _check_kind(function, unbound, code)
    text, parameter_docs = read_docstring(code if code.__doc__ else unbound)
    hints = hints_of(function, label(function))
    context = next((name for name, hint in hints.items() if _is(hint, context_type)), None)
    if input_schema is None:
        schema, check = _derived(function, hints, parameter_docs, context)
    else:
        schema, check = _given(function, input_schema, context)
    name: str = getattr(unbound, "__name__", type(unbound).__name__)
    return Signature(name, text, schema, _forgiving(check), context)


def _is(hint: object, type_: type) -> bool:
    return hint is type_ or type_ in get_args(hint)


def _parameters(function: Callable[..., object]) -> list[inspect.Parameter]:
    """Return the parameters that are not bound yet."""
    bound = set[str]()
    partial = function
    while isinstance(partial, functools.partial):
        bound.update(partial.keywords)
        partial = partial.func
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError as exc:
        raise TypeError(
            f"{label(function)}: its parameters are unknown; wrap it in your own function"
        ) from exc
    return [parameter for parameter in parameters if parameter.name not in bound]


def hints_of(function: Callable[..., object], label: str) -> dict[str, Any]:
    """Return the annotations of the parameters.

    The one of the result is not read: it may name types that are imported for type checkers only.

    Raises:
        TypeError: One cannot be read; the message has the function's label.
    """
    code = code_of(function)
    target: Any = inspect.unwrap(code)
    try:
        annotations = {
            name: hint for name, hint in getattr(target, "__annotations__", {}).items() if name != "return"
        }
        holder = SimpleNamespace(__annotations__=annotations)
        return get_type_hints(holder, globalns=getattr(target, "__globals__", {}), include_extras=True)
    except NameError as exc:
        raise TypeError(
            f"{label}: an annotation cannot be read: {exc}. Import the name where the function can see it"
        ) from exc


# Derived from the parameters


def _derived(
    function: Callable[..., object], hints: Mapping[str, Any], docs: Mapping[str, str], context: str | None
) -> tuple[dict[str, JsonValue], Validate]:
    from pydantic import ConfigDict, Field, ValidationError, create_model

    from thinkwell._core.schema.pydantic_schema import QuietSchema

    fields: dict[str, Any] = {}
    for parameter in _parameters(function):
        if parameter.name == context:
            continue
        _check_parameter(function, parameter, hints)
        default: Any = ... if parameter.default is parameter.empty else parameter.default
        said: dict[str, Any] = {"description": docs[parameter.name]} if parameter.name in docs else {}
        field: Any = Field(default, alias=parameter.name, **said)
        fields[f"p_{parameter.name}"] = (hints[parameter.name], field)  # no clash with attributes of models
    try:
        model = create_model("Arguments", __config__=ConfigDict(extra="ignore"), **fields)
        schema: dict[str, JsonValue] = model.model_json_schema(schema_generator=QuietSchema)
    except Exception as exc:  # pydantic's errors, and those of the types' hooks
        raise TypeError(f"{label(function)}: pydantic cannot make a schema of its parameters: {exc}") from exc
    del schema["title"]
    for property_ in schema.setdefault("properties", {}).values():
        property_.pop("title", None)

    def check(arguments: Arguments) -> dict[str, object]:
        try:
            # Only the JSON mode accepts dates and similar values in strict models.
            values = model.model_validate_json(json.dumps(arguments))
        except ValidationError as exc:
            errors = exc.errors(include_url=False, include_context=False)
            raise _InvalidError(
                [
                    Flaw(str(e["loc"][0]) if e["loc"] else "", f"{'.'.join(map(str, e['loc']))}: {e['msg']}")
                    for e in errors
                ]
            ) from None
        return {name.removeprefix("p_"): getattr(values, name) for name in fields}

    return schema, check


def _check_parameter(
    function: Callable[..., object], parameter: inspect.Parameter, hints: Mapping[str, Any]
) -> None:
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
        raise TypeError(
            f"{label(function)}: parameter {parameter} must be one that can be passed by its name"
        )
    if parameter.name not in hints:
        raise TypeError(
            f"{label(function)}: parameter {parameter.name!r} has no annotation; "
            f"write {parameter.name}: str, say"
        )


# Given by the user


def _given(
    function: Callable[..., object], given: Arguments, context: str | None
) -> tuple[dict[str, JsonValue], Validate]:
    schema = dict(given)
    try:
        find_flaws = checker(schema)
    except TypeError as exc:
        raise TypeError(f"{label(function)}: input_schema: {exc}") from exc
    if schema.get("type") != "object":
        raise TypeError(
            f'{label(function)}: input_schema: its "type" must be "object", since arguments have names'
        )
    keys = declared(schema)
    _check_names(function, keys.names, open_=keys.open, context=context)

    def check(arguments: Arguments) -> dict[str, object]:
        known = without_agent_extras(arguments, schema)
        kept = {key: value for key, value in known.items() if keys.open or key in keys.names}
        flaws = find_flaws(kept)
        if flaws:
            raise _InvalidError(flaws)
        return kept

    return schema, check


def _check_names(
    function: Callable[..., object], given: frozenset[str], *, open_: bool, context: str | None
) -> None:
    """Check that the function can be called with the properties of a schema."""
    parameters = {
        parameter.name: parameter for parameter in _parameters(function) if parameter.name != context
    }
    variadic = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    named = {name for name, parameter in parameters.items() if parameter.kind not in variadic}
    needed = {name for name in named if parameters[name].default is inspect.Parameter.empty}
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    if (unknown := given - named) and not takes_any:
        raise TypeError(f"{label(function)}: input_schema: the function has no parameter {min(unknown)!r}")
    if not open_ and (missing := needed - given):
        raise TypeError(
            f"{label(function)}: input_schema: it has no property for the parameter {min(missing)!r}"
        )


# Both


def _forgiving(check: Validate) -> Validate:
    """Accept arguments that are JSON in a string where another type is required; models make that mistake."""

    def validate(arguments: Arguments) -> dict[str, object]:
        try:
            return check(arguments)
        except _InvalidError as exc:
            flaws = exc.flaws
        parsed = {
            key: _parsed(value) for key, value in arguments.items() if key in {flaw.key for flaw in flaws}
        }
        try:
            return check({**arguments, **parsed})
        except _InvalidError as exc:
            raise ToolError("Invalid arguments: " + "; ".join(flaw.line for flaw in exc.flaws)) from None

    return validate


def _parsed(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            pass
    return value
