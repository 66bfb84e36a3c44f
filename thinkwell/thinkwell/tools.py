"""Python functions as tools that an agent can call."""

from __future__ import annotations

import functools
import inspect
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, get_type_hints, overload

import anyio.to_thread

from thinkwell.errors import ToolError
from thinkwell.events import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    JsonValue,
    ResourceLink,
    TextContent,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

ToolFunction: TypeAlias = Callable[..., object]
"""Any function with annotated parameters, sync or async."""

Report: TypeAlias = Callable[[float, float | None, str | None], None]

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_BLOCKS: Final = (TextContent, ImageContent, AudioContent, ResourceLink, EmbeddedResource)


class ToolContext:
    """What a tool may know of its call. A parameter annotated with it gets one, and the agent does not see it.

    A cancelled run cancels an ``async`` tool at its next ``await``; a sync tool, which runs in a worker thread, is left
    behind there, and should call `raise_if_cancelled` now and then where it takes long.
    """

    def __init__(self, session_id: str, report: Report) -> None:
        self.session_id = session_id
        """The agent's name for the session."""
        self._report = report
        self._cancelled = False

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Tell the agent how far the call is, in units of the tool's own. Call it from the event loop only."""
        self._report(done, total, message)

    @property
    def cancelled(self) -> bool:
        """Whether the call was cancelled."""
        return self._cancelled

    def raise_if_cancelled(self) -> None:
        """End a sync tool whose call was cancelled.

        Raises:
            ToolError: It was.
        """
        if self._cancelled:
            raise ToolError("The call was cancelled")

    def cancel(self) -> None:
        """Mark the call as cancelled."""
        self._cancelled = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a call came to, as MCP content blocks."""

    content: tuple[dict[str, JsonValue], ...]
    structured: dict[str, JsonValue] | None = None
    is_error: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool as an agent sees it, and the function behind it. Made by `tool`."""

    name: str
    description: str
    input_schema: Mapping[str, JsonValue]
    """JSON Schema of the arguments."""
    mention: bool = True
    """Whether the prompt names it."""
    function: ToolFunction
    validate: Callable[[Mapping[str, JsonValue]], dict[str, object]]
    """Turns the agent's arguments into those of the function; raises `ToolError`."""
    context_parameter: str | None = None
    """The parameter that takes the `ToolContext`."""

    def __call__(self, *args: object, **kwargs: object) -> object:
        """Call the function itself."""
        return self.function(*args, **kwargs)

    async def call(self, arguments: Mapping[str, JsonValue], context: ToolContext) -> ToolResult:
        """Run the function on an agent's arguments. What it raises becomes a result that says so."""
        try:
            kwargs = self.validate(arguments)
            if self.context_parameter is not None:
                kwargs[self.context_parameter] = context
            value = await _run(self.function, kwargs, context)
        except ToolError as exc:
            return _failure(str(exc))
        except Exception as exc:
            return _failure(f"{type(exc).__name__}: {exc}")
        return _success(value)


@overload
def tool(
    function: ToolFunction,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    mention: bool = True,
    input_schema: Mapping[str, JsonValue] | None = None,
) -> Tool: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    mention: bool = True,
    input_schema: Mapping[str, JsonValue] | None = None,
) -> Callable[[ToolFunction], Tool]: ...


def tool(
    function: ToolFunction | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    mention: bool = True,
    input_schema: Mapping[str, JsonValue] | None = None,
) -> Tool | Callable[[ToolFunction], Tool]:
    """Make a tool of a function; usable as a decorator.

    Name, description and the schema of the arguments come from the function's name, docstring and annotations. A sync
    function runs in a worker thread. What it returns is sent as text, or as JSON where it is no text.

    Args:
        function: The function. Every parameter needs an annotation that pydantic understands.
        name: Another name than the function's.
        description: Another description than the docstring's.
        mention: Whether the prompt names the tool; the agent can call it all the same.
        input_schema: A JSON Schema for the arguments instead of the derived one; they are checked against it and passed on
            as they are.

    Raises:
        TypeError: The function cannot be made a tool; the message names the line to fix.
    """
    if function is None:
        return functools.partial(
            tool, name=name, description=description, mention=mention, input_schema=input_schema
        )
    if isinstance(function, Tool):
        chosen = name or function.name
        return Tool(
            name=_checked_name(chosen, function.function),
            description=description or function.description,
            input_schema=function.input_schema,
            mention=mention and function.mention,
            function=function.function,
            validate=function.validate,
            context_parameter=function.context_parameter,
        )
    if not callable(function):
        msg = f"tool({function!r}): a tool is made of a function"
        raise TypeError(msg)
    doc, parameter_docs = _read_docstring(inspect.getdoc(function) or "")
    chosen = name or getattr(function, "__name__", type(function).__name__)
    if input_schema is None:
        schema, validate, context = _derive(function, parameter_docs)
    else:
        schema, validate, context = dict(input_schema), _schema_check(input_schema), _context_of(function)
    return Tool(
        name=_checked_name(chosen, function),
        description=description or doc or chosen.replace("_", " "),
        input_schema=schema,
        mention=mention,
        function=function,
        validate=validate,
        context_parameter=context,
    )


async def _run(function: ToolFunction, kwargs: dict[str, object], context: ToolContext) -> object:
    try:
        if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None)):
            awaitable: Awaitable[object] = function(**kwargs)  # type: ignore[assignment]  # a coroutine function
            return await awaitable
        value = await anyio.to_thread.run_sync(functools.partial(function, **kwargs), abandon_on_cancel=True)
        return await value if inspect.isawaitable(value) else value
    except BaseException:
        context.cancel()
        raise


def _failure(message: str) -> ToolResult:
    return ToolResult(content=({"type": "text", "text": message or "The tool failed"},), is_error=True)


def _success(value: object) -> ToolResult:
    if isinstance(value, ToolResult):
        return value
    if isinstance(value, str):
        return ToolResult(content=({"type": "text", "text": value},))
    if isinstance(value, _BLOCKS):
        return ToolResult(content=(_mcp_block(value),))
    if isinstance(value, list | tuple) and value and all(isinstance(item, _BLOCKS) for item in value):
        return ToolResult(content=tuple(_mcp_block(item) for item in value))
    from pydantic_core import PydanticSerializationError, to_jsonable_python  # noqa: PLC0415 - loaded by those who need it

    try:
        data = to_jsonable_python(value)
    except PydanticSerializationError as exc:
        return _failure(f"The tool returned {type(value).__name__}, which has no JSON form: {exc}")
    text = json.dumps(data, ensure_ascii=False)
    return ToolResult(
        content=({"type": "text", "text": text},), structured=data if isinstance(data, dict) else None
    )


def _mcp_block(block: TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource) -> dict[str, JsonValue]:
    match block:
        case TextContent():
            return {"type": "text", "text": block.text}
        case ImageContent() | AudioContent():
            return {"type": block.__struct_config__.tag, "data": block.data, "mimeType": block.mime_type}
        case ResourceLink():
            return {"type": "resource_link", "uri": block.uri, "name": block.name}
        case EmbeddedResource():
            body = {"text": block.text} if block.blob is None else {"blob": block.blob}
            return {"type": "resource", "resource": {"uri": block.uri, **body}}


# Derivation


def _where(function: object) -> str:
    code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
    name = getattr(function, "__qualname__", repr(function))
    return f"tool {name}() ({code.co_filename}:{code.co_firstlineno})" if code else f"tool {name}"


def _checked_name(name: str, function: object) -> str:
    if not _NAME.fullmatch(name):
        msg = f"{_where(function)}: {name!r} is no name for a tool; use letters, digits, _ and -: tool(fn, name=…)"
        raise TypeError(msg)
    return name


def _hints(function: ToolFunction) -> dict[str, Any]:
    target = function if inspect.isroutine(function) or inspect.isfunction(function) else type(function).__call__
    try:
        return get_type_hints(target, include_extras=True)
    except NameError as exc:
        msg = f"{_where(function)}: an annotation cannot be read: {exc}. Import the name where the function can see it"
        raise TypeError(msg) from exc


def _context_of(function: ToolFunction) -> str | None:
    return next((name for name, hint in _hints(function).items() if hint is ToolContext and name != "return"), None)


def _derive(
    function: ToolFunction, docs: Mapping[str, str]
) -> tuple[dict[str, JsonValue], Callable[[Mapping[str, JsonValue]], dict[str, object]], str | None]:
    from pydantic import ConfigDict, Field, PydanticUserError, ValidationError, create_model  # noqa: PLC0415

    hints = _hints(function)
    context = _context_of(function)
    fields: dict[str, Any] = {}
    names: dict[str, str] = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name == context:
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            msg = f"{_where(function)}: parameter {parameter} must be one that can be passed by its name"
            raise TypeError(msg)
        if parameter.name not in hints:
            msg = f"{_where(function)}: parameter {parameter.name!r} has no annotation; write {parameter.name}: str, say"
            raise TypeError(msg)
        default: Any = ... if parameter.default is parameter.empty else parameter.default
        field_name = f"p_{parameter.name}"  # no name can then clash with a method of pydantic's models
        names[field_name] = parameter.name
        fields[field_name] = (
            hints[parameter.name],
            Field(default, alias=parameter.name, description=docs.get(parameter.name)),
        )
    try:
        model = create_model("Arguments", __config__=ConfigDict(extra="ignore"), **fields)
        schema = model.model_json_schema()
    except PydanticUserError as exc:
        msg = f"{_where(function)}: pydantic cannot make a schema of its parameters: {exc}"
        raise TypeError(msg) from exc
    schema.pop("title", None)
    schema.setdefault("properties", {})
    for property_ in schema["properties"].values():
        property_.pop("title", None)

    def validate(arguments: Mapping[str, JsonValue]) -> dict[str, object]:
        try:
            values = model.model_validate(_unstringified(arguments, schema["properties"]))
        except ValidationError as exc:
            lines = (f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in exc.errors(include_url=False))
            raise ToolError("Invalid arguments: " + "; ".join(lines)) from None
        return {names[field]: getattr(values, field) for field in model.model_fields}

    return schema, validate, context


def _unstringified(arguments: Mapping[str, JsonValue], properties: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Parse arguments that are JSON in a string where an object or array is wanted; models slip there."""
    parsed = dict(arguments)
    for key, value in arguments.items():
        if isinstance(value, str) and properties.get(key, {}).get("type") in ("object", "array"):
            try:
                parsed[key] = json.loads(value)
            except (ValueError, RecursionError):
                continue
    return parsed


def _schema_check(schema: Mapping[str, JsonValue]) -> Callable[[Mapping[str, JsonValue]], dict[str, object]]:
    from jsonschema.validators import validator_for  # noqa: PLC0415 - loaded by those who give raw schemas

    validator = validator_for(schema)(schema)
    known: Sequence[str] | None = list(schema["properties"]) if "properties" in schema else None

    def validate(arguments: Mapping[str, JsonValue]) -> dict[str, object]:
        # Agents add arguments of their own (`wait_for_previous`), even where the schema forbids it.
        kept = {key: value for key, value in arguments.items() if known is None or key in known}
        errors = [f"{error.json_path}: {error.message}" for error in validator.iter_errors(kept)]
        if errors:
            raise ToolError("Invalid arguments: " + "; ".join(errors))
        return kept

    return validate


_ARGS_HEADING: Final = re.compile(r"^(Args|Arguments|Parameters|Params):?\s*$")
_OTHER_HEADING: Final = re.compile(r"^(Returns?|Raises|Yields|Examples?|Notes?|Attributes):?\s*$")
_ARG_LINE: Final = re.compile(r"^\s+\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")
_FIELD_LINE: Final = re.compile(r"^:param\s+(?:[^:]*\s)?(\w+):\s*(.*)$")


def _read_docstring(doc: str) -> tuple[str, dict[str, str]]:
    """Return the description, and what is said of each parameter, in the Google or the reST style."""
    description: list[str] = []
    parameters: dict[str, str] = {}
    section, current = "description", ""
    for line in doc.splitlines():
        if _ARGS_HEADING.match(line):
            section = "args"
        elif _OTHER_HEADING.match(line):
            section = "other"
        elif match := _FIELD_LINE.match(line):
            parameters[match[1]] = match[2].strip()
            section = "other"
        elif section == "description":
            description.append(line)
        elif section == "args" and (match := _ARG_LINE.match(line)):
            current = match[1]
            parameters[current] = match[2].strip()
        elif section == "args" and current and line.strip():
            parameters[current] += " " + line.strip()
    return "\n".join(description).strip(), parameters
