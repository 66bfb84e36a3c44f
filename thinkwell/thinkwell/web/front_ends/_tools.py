"""Tools of a front end: an agent calls them, and the front end answers with its next request.

A call is a question in the log of the run, so that it outlives the connection, and any server can pass on the
answer.
"""

from __future__ import annotations

import json
import re
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from thinkwell._core.schema.json_schema import checker, is_array, is_object
from thinkwell._core.schema.output import RESULT_TOOL
from thinkwell.errors import ToolError
from thinkwell.questions import FormField
from thinkwell.tools import Tool
from thinkwell.web._http import check_depth
from thinkwell.web._refusals import RequestInvalid

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from thinkwell.events import JsonValue, QuestionAsked
    from thinkwell.tools import ToolContext

RESULT: Final = "front_end_result"
ERROR: Final = "front_end_error"
"""The fields of the question of a call. Only a server writes such fields."""

MOST_TOOLS: Final = 64

TOOL_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""A valid name of a tool."""


class FrontEndCall(Struct, frozen=True, kw_only=True):
    """A call of a front end's tool."""

    name: str
    arguments: str
    """A JSON object."""


def front_end_tools(offered: Sequence[tuple[str, str, JsonValue]]) -> list[Tool]:
    """Return tools for an agent.

    Args:
        offered: The name, description and JSON Schema of each.

    Raises:
        RequestInvalid: One is invalid.
    """
    if len(offered) > MOST_TOOLS:
        raise RequestInvalid(f"tools: there are {len(offered)}; {MOST_TOOLS} may be")
    names = [name for name, _, _ in offered]
    for name in names:
        if names.count(name) > 1:
            raise RequestInvalid(f"tools: there are several named {name[:64]!r}")
    return [_tool(*each) for each in offered]


def _tool(name: str, description: str, schema: JsonValue) -> Tool:
    if not TOOL_NAME.fullmatch(name) or name == RESULT_TOOL:
        raise RequestInvalid(f"tools: {name[:64]!r} cannot be a name; use up to 64 letters, digits, _ and -")
    shape: dict[str, JsonValue] = {"type": "object", **(schema if is_object(schema) else {})}
    if shape["type"] != "object":
        raise RequestInvalid(f"tools: {name!r} has a schema whose type is not object")
    check_depth(tools=shape)
    try:
        checker(shape)
    except TypeError as exc:
        raise RequestInvalid(f"tools: the schema of {name!r} cannot be used: {exc}") from None
    return Tool(
        name=name,
        description=description or name,
        input_schema=shape,
        function=partial(_ask, name),
        validate=_as_they_are,
        context_parameter="context",
    )


def _as_they_are(arguments: Mapping[str, JsonValue]) -> dict[str, object]:
    """Return arguments unchecked: the front end checks them, and a pattern of a schema might take forever."""
    return {"arguments": dict(arguments)}


async def _ask(name: str, /, arguments: Mapping[str, JsonValue], context: ToolContext) -> str:
    wanted = json.dumps(arguments, ensure_ascii=False)
    fields = (
        FormField(name=RESULT, type="string", title=name, description=wanted),
        FormField(name=ERROR, type="string"),
    )
    given = await context.ask(f"The front end is to do this: {name}", fields)
    if given is None:
        raise ToolError(f"The front end has not answered the call of {name}")
    if given.get(ERROR):
        raise ToolError(str(given[ERROR]))
    return str(given.get(RESULT, ""))


def call_of_front_end(question: QuestionAsked) -> FrontEndCall | None:
    """Return the call of a front end's tool in a question; ``None``: it is another question."""
    fields = question.fields
    if question.asks != "form" or [field.name for field in fields] != [RESULT, ERROR]:
        return None
    return FrontEndCall(name=fields[0].title, arguments=fields[0].description)


def result_form(content: JsonValue, error: str | None) -> dict[str, str]:
    """Return the answer to the question of a call.

    Args:
        content: The result of the tool: a text, or parts of which the texts are used.
        error: The reason for a failure.
    """
    parts: list[JsonValue] = content if is_array(content) else [{"text": content}]
    texts: list[JsonValue] = [part.get("text") for part in parts if is_object(part)]
    form = {RESULT: "\n".join(text for text in texts if isinstance(text, str))}
    return form if error is None else {**form, ERROR: error or "it failed"}
