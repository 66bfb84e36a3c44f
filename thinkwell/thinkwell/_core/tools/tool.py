"""`Tool`: a Python function that an agent can call."""

from __future__ import annotations

import functools
import inspect
import json
import logging
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Generic, TypeAlias, cast, overload

import anyio
import anyio.from_thread
import anyio.to_thread
import msgspec
from typing_extensions import ParamSpec, TypeIs, TypeVar

from thinkwell._core.schema.json_schema import is_object
from thinkwell._core.tools.signature import Validate, label, read_signature
from thinkwell.errors import ToolError
from thinkwell.events import (
    AudioContent,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    JsonValue,
    ResourceLink,
    TextContent,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable, Sequence

    from thinkwell.questions import FormField, FormValue

logger = logging.getLogger("thinkwell")

ToolFunction: TypeAlias = Callable[..., object]
"""Any function with annotated parameters, sync or async."""

P = ParamSpec("P", default=...)
R = TypeVar("R", default=object)
R_co = TypeVar("R_co", covariant=True, default=object)

Report: TypeAlias = Callable[[float, float | None, str | None], None]
"""Takes the progress, the total, and a text about the current step."""

Ask: TypeAlias = "Callable[[str, Sequence[FormField]], Awaitable[dict[str, FormValue] | None]]"
"""Takes the title of a form and its fields, and returns the values."""

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_BLOCKS: Final = (TextContent, ImageContent, AudioContent, ResourceLink, EmbeddedResource)


class ToolContext:
    """The context of a tool call. Annotate a parameter with it to get it; the agent does not see it.

    Cancelling the run cancels an ``async`` tool at its next ``await``. A sync tool continues in its worker
    thread; if it takes long, it should call `raise_if_cancelled` from time to time.
    """

    def __init__(self, session_id: str, report: Report, ask: Ask | None = None) -> None:
        self.session_id = session_id
        """The agent's id for the session."""
        self._report = report
        self._ask = ask
        self._thread = threading.get_ident()
        self._cancelled = False

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Report progress to the agent, in units of your choice."""
        if threading.get_ident() == self._thread:
            self._report(done, total, message)
        elif not self._cancelled:
            anyio.from_thread.run_sync(self._report, done, total, message)

    async def ask(self, title: str, fields: Sequence[FormField]) -> dict[str, FormValue] | None:
        """Ask the user for values with a form, and wait for them. For ``async`` tools.

        The question is logged and displayed like one of the agent. It waits for `ThoughtStream.answer` until
        the deadline of questions; no handler is asked.

        Args:
            title: The title of the form.
            fields: The fields of the form; see `thinkwell.questions.FormField`.

        Returns:
            The values by the names of the fields; ``None`` if it was declined or not answered.

        Raises:
            ToolError: The tool was called where it cannot ask.
        """
        if self._ask is None:
            raise ToolError("There is no one to ask here")
        return await self._ask(title, fields)

    @property
    def cancelled(self) -> bool:
        """Whether the call was cancelled."""
        return self._cancelled

    def raise_if_cancelled(self) -> None:
        """End a sync tool if its call was cancelled.

        Raises:
            ToolError: The call was cancelled.
        """
        if self._cancelled:
            raise ToolError("The call was cancelled")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """The result of a call, as MCP content blocks."""

    content: tuple[dict[str, JsonValue], ...]
    structured: dict[str, JsonValue] | None = None
    is_error: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool(Generic[P, R_co]):
    """A tool as an agent sees it, with its function. Created by `tool`."""

    name: str
    description: str
    input_schema: Mapping[str, JsonValue]
    """JSON Schema of the arguments."""
    mention: bool = True
    """Whether the prompt names it."""
    readonly: bool = False
    """Whether its calls change nothing, so that a task with them can be tried again."""
    function: Callable[P, R_co]
    validate: Validate
    """Turns the agent's arguments into those of the function; raises `ToolError`."""
    context_parameter: str | None = None
    """The parameter that takes the `ToolContext`."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the function itself."""
        return self.function(*args, **kwargs)

    async def call(self, arguments: Mapping[str, JsonValue], context: ToolContext) -> ToolResult:
        """Run the function with an agent's arguments. An exception becomes an error result."""
        try:
            kwargs = self.validate(arguments)
            if self.context_parameter is not None:
                kwargs[self.context_parameter] = context
            return _success(await _run(self.function, kwargs, context))
        except ToolError as exc:
            return _failure(str(exc))
        # A tool that calls `sys.exit`, as argparse does, means its own program and not this one.
        except (Exception, SystemExit) as exc:
            about = "Tool %s raised in session %.100r; the agent received the error"
            extra = {"thinkwell_session": context.session_id}
            logger.debug(about, self.name, context.session_id, exc_info=True, extra=extra)
            return _failure(f"{type(exc).__name__}: {exc}")
        except BaseExceptionGroup as group:  # from an async tool's own task group
            if group.split((Exception, SystemExit))[1] is not None:
                raise
            return _failure(f"{type(group).__name__}: {group}")


@overload
def tool(
    function: Callable[P, R],
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    mention: bool = True,
    readonly: bool = False,
    input_schema: Mapping[str, JsonValue] | None = None,
) -> Tool[P, R]: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    mention: bool = True,
    readonly: bool = False,
    input_schema: Mapping[str, JsonValue] | None = None,
) -> Callable[[Callable[P, R]], Tool[P, R]]: ...


def tool(
    function: ToolFunction | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    mention: bool = True,
    readonly: bool = False,
    input_schema: Mapping[str, JsonValue] | None = None,
) -> Callable[..., object]:
    """Create a tool from a function; also usable as a decorator.

    Name, description and the schema of the arguments come from the function's name, docstring and
    annotations. A sync function runs in a worker thread. The return value is sent as text, or as JSON if it
    is not text.

    Args:
        function: A function, method, object with ``__call__``, or `functools.partial`, but not a generator or
            class. Every unbound parameter needs an annotation that pydantic understands.
        name: The tool's name, instead of the function's.
        description: The tool's description, instead of the docstring's.
        mention: Whether the prompt names the tool; the agent can always call it.
        readonly: Whether its calls change nothing. A run that has called another tool is not tried again; see
            `thinkwell.Retry`.
        input_schema: A JSON Schema for the arguments instead of the derived one; they are validated against
            it and passed on unchanged.

    Raises:
        TypeError: The function cannot be a tool; the message names the line to fix.
    """
    if function is None:
        return functools.partial(
            tool,
            name=name,
            description=description,
            mention=mention,
            readonly=readonly,
            input_schema=input_schema,
        )
    if _is_tool(function):
        return _changed(function, name, description, mention, readonly, input_schema)
    if not callable(function):
        raise TypeError(f"tool({function!r}): a tool needs a function")
    signature = read_signature(function, ToolContext, input_schema)
    chosen = signature.name if name is None else name
    return Tool(
        name=_checked_name(chosen, function),
        description=description or signature.description or chosen.replace("_", " "),
        input_schema=signature.schema,
        mention=mention,
        readonly=readonly,
        function=function,
        validate=signature.validate,
        context_parameter=signature.context_parameter,
    )


def _is_tool(function: ToolFunction) -> TypeIs[Tool]:
    return isinstance(function, Tool)


def _changed(
    old: Tool,
    name: str | None,
    description: str | None,
    mention: bool,
    readonly: bool,
    schema: Mapping[str, JsonValue] | None,
) -> Tool:
    made = old if schema is None else tool(old.function, name=old.name, input_schema=schema)
    return replace(
        made,
        name=old.name if name is None else _checked_name(name, old.function),
        description=description or old.description,
        mention=mention and old.mention,
        readonly=readonly or old.readonly,
    )


def _checked_name(name: object, function: ToolFunction) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise TypeError(
            f"{label(function)}: {name!r} is not a valid name for a tool; "
            "use up to 64 letters, digits, _ and -: tool(fn, name=…)"
        )
    return name


async def _run(function: ToolFunction, kwargs: dict[str, object], context: ToolContext) -> object:
    try:
        if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004 - of objects that are called
        ):
            return await cast("Awaitable[object]", function(**kwargs))
        # In a list, because trio accepts no awaitable from a thread.
        box = await anyio.to_thread.run_sync(lambda: (function(**kwargs),), abandon_on_cancel=True)
        return await box[0] if inspect.isawaitable(box[0]) else box[0]
    except anyio.get_cancelled_exc_class():
        context._cancelled = True
        raise


def _failure(message: str) -> ToolResult:
    return ToolResult(content=({"type": "text", "text": message or "The tool failed"},), is_error=True)


def _success(value: object) -> ToolResult:
    if isinstance(value, ToolResult):
        return value
    if isinstance(value, str):
        return ToolResult(content=({"type": "text", "text": value},))
    blocks = _blocks(value)
    if blocks:
        return ToolResult(content=tuple(map(_mcp_block, blocks)))
    from pydantic_core import PydanticSerializationError, to_jsonable_python  # imported only when needed

    try:
        data: JsonValue = to_jsonable_python(value, fallback=msgspec.to_builtins)
    except (PydanticSerializationError, TypeError, ValueError) as exc:
        raise ToolError(f"The tool returned {type(value).__name__}, which has no JSON form: {exc}") from None
    text = json.dumps(data, ensure_ascii=False)
    return ToolResult(content=({"type": "text", "text": text},), structured=data if is_object(data) else None)


def _blocks(value: object) -> list[ContentBlock]:
    """Return the content blocks in a value; none if it contains anything else."""
    items = list(cast("Iterable[object]", value)) if isinstance(value, list | tuple) else [value]
    blocks = [item for item in items if isinstance(item, _BLOCKS)]
    return blocks if len(blocks) == len(items) else []


def _mcp_block(block: ContentBlock) -> dict[str, JsonValue]:
    match block:
        case TextContent():
            return {"type": "text", "text": block.text}
        case ImageContent():
            return {"type": "image", "data": block.data, "mimeType": block.mime_type}
        case AudioContent():
            return {"type": "audio", "data": block.data, "mimeType": block.mime_type}
        case ResourceLink():
            return {"type": "resource_link", "uri": block.uri, "name": block.name, **_mime_type(block)}
        case _:
            body = {"text": block.text or ""} if block.blob is None else {"blob": block.blob}
            return {"type": "resource", "resource": {"uri": block.uri, **_mime_type(block), **body}}


def _mime_type(block: ResourceLink | EmbeddedResource) -> dict[str, JsonValue]:
    return {} if block.mime_type is None else {"mimeType": block.mime_type}
