"""Calling tools with arguments made of facts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from thinkwell.builtin._constraints import as_object
from thinkwell.builtin._fill import Filler, UnfillableError
from thinkwell.builtin._findings import Answer
from thinkwell.builtin._mcp import ToolOutcome
from thinkwell.builtin._repair import corrections
from thinkwell.builtin._words import first_line
from thinkwell_acp.errors import RpcError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkwell.builtin._findings import Findings
    from thinkwell.builtin._mcp import McpClient, ToolInfo
    from thinkwell.builtin._speech import Speaker
    from thinkwell_acp.schema import JsonObject, JsonValue

ATTEMPTS: Final = 4
"""How often a tool that refuses its arguments is called."""

MAX_TOOLS: Final = 8
"""How many tools a turn asks."""


async def ask_tools(
    tools: Sequence[tuple[McpClient, ToolInfo]], findings: Findings, speaker: Speaker
) -> tuple[Answer, ...]:
    """Call each tool once, where its arguments can be made, and return what they answered."""
    answers: list[Answer] = []
    for server, tool in tools[:MAX_TOOLS]:
        filler = Filler(findings, arguments=True)
        outcome = await _call(server, tool, tool.schema, filler, speaker)
        if outcome is None:
            continue
        if outcome.failed:
            await speaker.think(f"{tool.name} does not help: {first_line(outcome.text)}")
        else:
            await speaker.think(f"{tool.name} answers: {first_line(outcome.text)}")
            answers.append(Answer(tool=tool.name, text=outcome.text, value=_value(outcome)))
    return tuple(answers)


async def return_result(
    server: McpClient, tool: ToolInfo, findings: Findings, stated: JsonObject | None, speaker: Speaker
) -> None:
    """Return a result. `stated` is its schema where the prompt, and not the tool, says it."""
    filler = Filler(findings)
    outcome = await _call(server, tool, _result_schema(tool.schema, stated), filler, speaker)
    if outcome is None:
        await speaker.say("I have no result that fits.")
    elif outcome.failed:
        await speaker.say(f"My result was not accepted: {first_line(outcome.text)}")
    else:
        await speaker.say("The result is in.")


async def _call(
    server: McpClient, tool: ToolInfo, schema: JsonObject, filler: Filler, speaker: Speaker
) -> ToolOutcome | None:
    """Call a tool, again with corrected arguments where it refuses them. ``None``: they could not be made."""
    outcome: ToolOutcome | None = None
    for _ in range(ATTEMPTS):
        try:
            arguments = filler.fill({"type": "object", **schema})
        except UnfillableError as exc:
            await speaker.think(f"I cannot call {tool.name}: {exc}.")
            return outcome
        for reason in filler.take_reasons():
            await speaker.think(reason)
        outcome = await _call_once(server, tool, arguments, speaker)
        if not outcome.failed or not filler.correct(_inside(schema, corrections(outcome.text))):
            return outcome
        await speaker.think(f"{tool.name} refuses that, so I correct it: {first_line(outcome.text)}")
    return outcome


async def _call_once(
    server: McpClient, tool: ToolInfo, arguments: JsonObject, speaker: Speaker
) -> ToolOutcome:
    call = speaker.start_tool(tool.name, "other", name=tool.name, arguments=arguments)
    try:
        outcome = await server.call(tool.name, arguments)
    except RpcError as exc:
        outcome = ToolOutcome(text=exc.message, failed=True)
    await speaker.end_tool(call, outcome.text, failed=outcome.failed, output=outcome.structured)
    return outcome


def _value(outcome: ToolOutcome) -> JsonValue:
    """Return an answer as JSON, where it is."""
    value = outcome.structured
    if value is None:
        try:
            value = json.loads(outcome.text)
        except (ValueError, RecursionError):
            return None
    envelope = as_object(value)
    return envelope["result"] if set(envelope) == {"result"} else value


def _result_schema(offered: JsonObject, stated: JsonObject | None) -> JsonObject:
    """Return the schema of the arguments, with what the prompt states where the tool leaves `result` open."""
    inner = offered.get("properties", {}).get("result")
    if (
        stated is None
        or not isinstance(inner, dict)
        or {"type", "$ref", "anyOf", "enum", "const"} & inner.keys()
    ):
        return offered
    definitions = {"$defs": stated["$defs"]} if "$defs" in stated else {}
    properties = {"result": {key: value for key, value in stated.items() if key != "$defs"}}
    return {"type": "object", "properties": properties, "required": ["result"], **definitions}


def _inside(schema: JsonObject, found: dict[str, JsonObject]) -> dict[str, JsonObject]:
    """Return the corrections by paths from the arguments on: errors name those within the lone `result`."""
    if set(schema.get("properties", {})) != {"result"}:
        return found
    return {
        path if path == "result" or path.startswith("result.") else f"result.{path}".rstrip("."): correction
        for path, correction in found.items()
    }
