"""Which tool calls are of our own tools, going by what an agent shows of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from thinkwell._json_schema import AGENT_EXTRAS, declared, is_object

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from thinkwell.events import JsonValue
    from thinkwell_acp import schema as s
    from thinkwell_acp.mcp import ToolSpec

CODEX_INPUT: Final = frozenset(("server", "tool", "arguments"))
"""What codex-acp shows as the arguments of every call of an MCP tool."""


def is_own_tool(call: s.ToolCallFields | s.ToolCallPatch, server: str, tools: Sequence[ToolSpec]) -> bool:
    """Return whether a tool call is of a tool of ours, going by what the agent shows of it.

    The server's name cannot be guessed, but the model knows it, and may put it into a title or an argument of
    another tool. So only exact forms count: the tool's name in claude-agent-acp's `_meta`; else a title in
    one of the renderings of `own_renderings`, with the kind that goes with it and no arguments that the tool
    does not have. Nothing that the call shows may speak against it: another name, or a file that it is about.
    """
    tool = _tool_of(call, server, tools)
    return (
        tool is not None
        and call.name in (None, tool.name, *own_renderings(server, tool.name))
        and not call.locations
        and all(content.__struct_config__.tag == "content" for content in call.content or ())
    )


def _tool_of(
    call: s.ToolCallFields | s.ToolCallPatch, server: str, tools: Sequence[ToolSpec]
) -> ToolSpec | None:
    vendor = (call.meta or {}).get("claudeCode")
    if is_object(vendor) and "toolName" in vendor:
        return next((tool for tool in tools if vendor["toolName"] == f"mcp__{server}__{tool.name}"), None)
    tool = next((tool for tool in tools if call.title in own_renderings(server, tool.name)), None)
    if tool is None:
        return None
    raw: JsonValue = call.raw_input
    if call.title == _codex_title(server, tool.name):
        fits = (
            is_object(raw)
            and raw.keys() == CODEX_INPUT
            and (raw["server"], raw["tool"]) == (server, tool.name)
        )
    else:
        fits = call.kind in (None, "other") and (raw is None or _fits(raw, tool.input_schema))
    return tool if fits else None


def _fits(raw: JsonValue, schema: Mapping[str, JsonValue]) -> bool:
    keys = declared(schema)
    return is_object(raw) and (keys.open or set(raw) <= keys.names | AGENT_EXTRAS)


def own_renderings(server: str, tool: str) -> tuple[str, ...]:
    """Return the titles under which agents show a tool of ours.

    They were seen with claude-agent-acp, gemini-cli, opencode and codex-acp.
    """
    return (
        f"mcp__{server}__{tool}",
        f"{tool} ({server} MCP Server)",
        f"{server}_{tool}",
        _codex_title(server, tool),
    )


def _codex_title(server: str, tool: str) -> str:
    return f"mcp.{server}.{tool}"
