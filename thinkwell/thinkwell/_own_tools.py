"""Which tool calls are of our own tools, going by what an agent shows of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from thinkwell._json_schema import AGENT_EXTRAS, declared, is_object
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from thinkwell.events import JsonValue, ToolKind
    from thinkwell_acp.mcp import ToolServer, ToolSpec

CODEX_INPUT: Final = frozenset(("server", "tool", "arguments"))
"""What codex-acp shows as the arguments of every call of an MCP tool."""


class OwnCalls:
    """Knows which of a session's tool calls are ours, by the whole of what was shown of each.

    Ids come from the agent and not from its model, so a call that is known by its id stays what it was when
    it was announced: a later title, which the model may have written, makes no foreign call ours. Some
    agents use an id again, so a call is known no longer than it lasts, and none of a turn in the next one.
    """

    def __init__(self, server: ToolServer) -> None:
        self._server = server
        self._known: dict[str, tuple[ToolSpec, ToolKind | None] | None] = {}
        """The tool and the kind of each call that goes on; ``None``: it is not ours."""
        self._tools: Sequence[ToolSpec] = ()
        self._titles: dict[str, ToolSpec] = {}

    def forget(self) -> None:
        """Begin a new turn."""
        self._known.clear()

    def note(self, call: s.ToolCallStart | s.ToolCallProgress) -> bool:
        """Learn from an update, and return whether the call is ours."""
        id_ = call.tool_call_id
        if isinstance(call, s.ToolCallStart) or (id_ not in self._known and call.title is not None):
            own = self._meet(call)
        else:
            own = self._is_still_own(call)
        if call.status in ("completed", "failed"):
            self._known.pop(id_, None)
        return own

    def asks(self, call: s.ToolCallPatch) -> bool:
        """Return whether a call that permission is asked for is ours."""
        return self._is_still_own(call) if call.tool_call_id in self._known else self._meet(call)

    def _meet(self, call: s.ToolCallFields | s.ToolCallPatch) -> bool:
        if self._tools is not self._server.tools:  # they change from turn to turn
            self._tools = self._server.tools
            name = self._server.name
            self._titles = {title: tool for tool in self._tools for title in own_renderings(name, tool.name)}
        tool = _own_tool(call, self._server.name, self._titles)
        if tool is not None:
            self._known[call.tool_call_id] = (tool, call.kind)
        elif _says_something(call):
            self._known[call.tool_call_id] = None
        return tool is not None

    def _is_still_own(self, call: s.ToolCallPatch) -> bool:
        known = self._known.get(call.tool_call_id)
        if known is None:
            return False
        tool, kind = known
        server = self._server.name
        vendor = _vendor_name(call)
        raw: JsonValue = call.raw_input
        if (
            call.kind in (None, "other", kind)
            and vendor in (None, f"mcp__{server}__{tool.name}")
            and (raw is None or _is_codex_input(raw, server, tool) or _fits(raw, tool.input_schema))
            and _shows_nothing_foreign(call, server, tool)
        ):
            return True
        self._known[call.tool_call_id] = None
        return False


def is_own_tool(call: s.ToolCallFields | s.ToolCallPatch, server: str, tools: Sequence[ToolSpec]) -> bool:
    """Return whether a tool call is of a tool of ours, going by what the agent shows of it at once.

    The server's name cannot be guessed, but the model knows it, and may put it into a title or an argument of
    another tool. So only exact forms count: the tool's name in claude-agent-acp's `_meta`; else a title in
    one of the renderings of `own_renderings`, with the kind that goes with it and no arguments that the tool
    does not have. Nothing that the call shows may speak against it: another name, or a file that it is about.
    """
    titles = {title: tool for tool in tools for title in own_renderings(server, tool.name)}
    return _own_tool(call, server, titles) is not None


def _own_tool(
    call: s.ToolCallFields | s.ToolCallPatch, server: str, titles: Mapping[str, ToolSpec]
) -> ToolSpec | None:
    vendor = _vendor_name(call)
    if vendor is not None:
        tool = titles.get(vendor) if vendor.startswith(f"mcp__{server}__") else None
        fits = True
    else:
        tool = titles.get(call.title or "")
        fits = tool is not None and _looks_like(call, server, tool)
    return tool if tool is not None and fits and _shows_nothing_foreign(call, server, tool) else None


def _says_something(call: s.ToolCallFields | s.ToolCallPatch) -> bool:
    """Return whether a call can be told from others already; some are announced before that."""
    known = (call.title, call.raw_input, call.name, call.locations, call.content, _vendor_name(call))
    return any(known) or call.kind not in (None, "other")


def _vendor_name(call: s.ToolCallFields | s.ToolCallPatch) -> str | None:
    """Return the tool's name as claude-agent-acp gives it beside the title."""
    vendor = (call.meta or {}).get("claudeCode")
    return str(vendor["toolName"]) if is_object(vendor) and "toolName" in vendor else None


def _looks_like(call: s.ToolCallFields | s.ToolCallPatch, server: str, tool: ToolSpec) -> bool:
    raw: JsonValue = call.raw_input
    if call.title == _codex_title(server, tool.name):
        return _is_codex_input(raw, server, tool)
    return call.kind in (None, "other") and (raw is None or _fits(raw, tool.input_schema))


def _is_codex_input(raw: JsonValue, server: str, tool: ToolSpec) -> bool:
    return (
        is_object(raw) and raw.keys() == CODEX_INPUT and (raw["server"], raw["tool"]) == (server, tool.name)
    )


def _shows_nothing_foreign(call: s.ToolCallFields | s.ToolCallPatch, server: str, tool: ToolSpec) -> bool:
    return (
        call.name in (None, tool.name, *own_renderings(server, tool.name))
        and not call.locations
        and all(content.__struct_config__.tag == "content" for content in call.content or ())
    )


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
