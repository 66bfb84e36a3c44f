"""Calls tools with arguments that are computed from files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple

from thinkwell.builtin._constraints import as_object
from thinkwell.builtin._fill import Filler, UnfillableError
from thinkwell.builtin._findings import Answer
from thinkwell.builtin._repair import corrections
from thinkwell.builtin._words import first_line
from thinkwell_acp.mcp._client import McpTrouble, ToolOutcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkwell.builtin._findings import Findings
    from thinkwell.builtin._servers import Server
    from thinkwell.builtin._speech import Speaker
    from thinkwell_acp.mcp._client import ToolInfo
    from thinkwell_acp.schema import JsonObject, JsonValue

RESULT_TOOL: Final = "return_result"
"""The tool that accepts the result of a task."""

ATTEMPTS: Final = 4
"""Most calls of a tool that refuses its arguments."""

MAX_TOOLS: Final = 8
"""Most tools that a turn calls."""


class Offer(NamedTuple):
    """A tool that can be called."""

    server: Server
    tool: ToolInfo
    said: str
    """Its displayed name: with that of its server if others have the same."""


async def ask_tools(offers: Sequence[Offer], findings: Findings, speaker: Speaker) -> tuple[Answer, ...]:
    """Call each tool once, if its arguments can be computed, and return the answers."""
    answers: list[Answer] = []
    for offer in offers[:MAX_TOOLS]:
        filler = Filler(findings, arguments=True)
        outcome = await _call(offer, offer.tool.schema, filler, speaker)
        if outcome is None:
            continue
        if outcome.failed:
            await speaker.think(f"{offer.said} does not help: {first_line(outcome.text)}")
        else:
            await speaker.think(f"{offer.said} answers: {first_line(outcome.text)}")
            answers.append(Answer(tool=offer.said, text=outcome.text, value=_value(outcome)))
    return tuple(answers)


async def return_result(
    offer: Offer, findings: Findings, stated: JsonObject | None, speaker: Speaker
) -> None:
    """Return a result. `stated` is its schema if the prompt has it, and not the tool."""
    filler = Filler(findings)
    outcome = await _call(offer, _result_schema(offer.tool.schema, stated), filler, speaker)
    if outcome is None:
        await speaker.say("I have no result that fits.")
    elif outcome.failed:
        await speaker.say(f"My result was not accepted: {first_line(outcome.text)}")
    else:
        await speaker.say("The result is in.")


async def _call(offer: Offer, schema: JsonObject, filler: Filler, speaker: Speaker) -> ToolOutcome | None:
    """Call a tool, and again with corrected arguments if it refuses them.

    ``None``: they could not be computed.
    """
    outcome: ToolOutcome | None = None
    for _ in range(ATTEMPTS):
        try:
            arguments = filler.fill({"type": "object", **schema})
        except UnfillableError as exc:
            await speaker.think(f"I cannot call {offer.said}: {first_line(str(exc))}.")
            return outcome
        except Exception as exc:  # the schema comes from a stranger, and may be anything
            await speaker.think(
                f"I cannot call {offer.said}: its schema makes no sense ({type(exc).__name__})."
            )
            return outcome
        for reason in filler.take_reasons():
            await speaker.think(reason)
        outcome = await _call_once(offer, arguments, speaker)
        if not outcome.failed or not filler.correct(_inside(schema, corrections(outcome.text))):
            return outcome
        await speaker.think(f"{offer.said} refuses that, so I correct it: {first_line(outcome.text)}")
    return outcome


async def _call_once(offer: Offer, arguments: JsonObject, speaker: Speaker) -> ToolOutcome:
    server, tool = offer.server, offer.tool
    title = server.title(tool)
    waits = not server.ours
    if tool.name == RESULT_TOOL:
        call = await speaker.write_tool(title, arguments, waits=waits)
    else:
        call = speaker.start_tool(title, "other", name=title, arguments=arguments, waits=waits)
    try:
        if server.ours or await speaker.may_call(call):
            outcome = await server.call(tool.name, arguments)
        else:
            outcome = ToolOutcome(text="I was not given the permission to call it", failed=True)
    except McpTrouble as exc:
        outcome = ToolOutcome(text=exc.reason, failed=True)
    await speaker.end_tool(call, outcome.text, failed=outcome.failed, output=outcome.structured)
    return outcome


def _value(outcome: ToolOutcome) -> JsonValue:
    """Return an answer as JSON, if it is JSON."""
    value = outcome.structured
    if value is None:
        try:
            value = json.loads(outcome.text)
        except (ValueError, RecursionError):
            return None
    envelope = as_object(value)
    return envelope["result"] if set(envelope) == {"result"} else value


def _result_schema(offered: JsonObject, stated: JsonObject | None) -> JsonObject:
    """Return the schema of the arguments, with that of the prompt if the tool leaves `result` open."""
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
    """Return the corrections by paths from the arguments. Errors name those within a lone `result`."""
    if set(schema.get("properties", {})) != {"result"}:
        return found
    return {
        path if path == "result" or path.startswith("result.") else f"result.{path}".rstrip("."): correction
        for path, correction in found.items()
    }
