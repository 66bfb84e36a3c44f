"""Which tool calls are of our own tools, going by what an agent shows of them."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from thinkwell._json_schema import AGENT_EXTRAS, declared, is_object
from thinkwell._policy.arguments import command_line
from thinkwell._prompt import RESULT_TOOL
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Mapping

    from thinkwell.events import JsonValue, ToolKind
    from thinkwell_acp.mcp import ToolServer, ToolSpec

CODEX_INPUT: Final = frozenset(("server", "tool", "arguments"))
"""What codex-acp shows as the arguments of every call of an MCP tool."""

NAMES: Final = ("toolName", "tool_name")
"""Where agents that give a tool's name in `_meta` have it. They write that, and their models do not."""

FORMS_KEPT: Final = 256
"""Tools whose names are kept in all of their forms."""

_PREFIXES: Final = ("", "mcp__", "mcp_", "mcp.", "mcp:", "mcp-", "mcp/", "MCP: ", "Tool: ")
_JOINTS: Final = ("_", "__", ".", "-", ":", "/", ": ")


class _Own(NamedTuple):
    """A call of ours that goes on."""

    tool: ToolSpec
    kind: ToolKind | None
    sure: bool
    """Whether its arguments have been shown, or its title cannot be the path of a program."""
    bare: bool
    """Whether nothing has shown the server, but the tool's name alone: then it may be no command."""
    named: bool
    """Whether its arguments have named the server and the tool, as agents made of codex show them."""


class OwnCalls:
    """Knows which of a session's tool calls are ours, by the whole of what was shown of each.

    The server's name cannot be guessed, but the model knows it, and may put it into a title or an argument of
    another tool. So only exact forms count: the tool's name in `_meta`, which agents write themselves; else a
    title in one of the renderings of `own_renderings`, with the kind that goes with it and no arguments that
    the tool does not have. Nothing that the call shows may speak against it: another name, or a file that it
    is about.

    Ids come from the agent and not from its model, so a call that is known by its id stays what it was when
    it was announced: a later title, which the model may have written, makes no foreign call ours. Some
    agents use an id again, so a call is known no longer than it lasts, and none of a turn in the next one.
    """

    def __init__(self, server: ToolServer) -> None:
        self._server = server
        self._known: dict[str, _Own | None] = {}
        """Each call that goes on; ``None``: it is not ours."""
        self._generation = -1
        """Of the server's tools: the one that the titles are of."""
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
        id_ = call.tool_call_id
        own = self._is_still_own(call) if id_ in self._known else self._meet(call)
        known = self._known.get(id_)
        return own and known is not None and known.sure

    def _meet(self, call: s.ToolCallFields | s.ToolCallPatch) -> bool:
        if self._generation != self._server.generation:  # they change from turn to turn
            self._generation = self._server.generation
            name, tools = self._server.name, self._server.tools
            self._titles = {title: tool for tool in tools for title in own_renderings(name, tool.name)}
        tool = _own_tool(call, self._server.name, self._titles)
        if tool is not None:
            self._known[call.tool_call_id] = _Own(
                tool,
                call.kind,
                sure=_is_sure(call),
                bare=_is_bare(call, tool),
                named=_is_codex_input(call.raw_input, self._server.name, tool),
            )
        elif _says_something(call):
            self._known[call.tool_call_id] = None
        return tool is not None

    def _is_still_own(self, call: s.ToolCallPatch) -> bool:
        known = self._known.get(call.tool_call_id)
        if known is None:
            # qwen-code announces the tool through which its model calls others, and then the other one.
            return bool(named_in_meta(call)) and is_object(call.raw_input) and self._meet(call)
        tool, kind = known.tool, known.kind
        server = self._server.name
        raw: JsonValue = call.raw_input
        names = named_in_meta(call)
        fits = _fits(raw, tool.input_schema) and not (known.bare and command_line(raw) is not None)
        if (
            call.kind in (None, "other", kind)
            and all(name in own_names(server, tool.name) for name in names)
            and (raw is None or names or fits or (known.named and _is_about(raw, server, tool)))
            and _shows_nothing_foreign(call, server, tool)
        ):
            self._known[call.tool_call_id] = known._replace(sure=known.sure or raw is not None)
            return True
        self._known[call.tool_call_id] = None
        return False


def _own_tool(
    call: s.ToolCallFields | s.ToolCallPatch, server: str, titles: Mapping[str, ToolSpec]
) -> ToolSpec | None:
    names = named_in_meta(call)
    title = names[0] if names else call.title
    tool = titles.get(title) if isinstance(title, str) else None
    if tool is None or not _shows_nothing_foreign(call, server, tool):
        return None
    # What the agent names so is what it calls: wrong arguments are refused there, in words that help.
    own = own_names(server, tool.name)
    fits = all(name in own for name in names) if names else _looks_like(call, server, tool)
    return tool if fits else None


def _is_sure(call: s.ToolCallFields | s.ToolCallPatch) -> bool:
    """Return whether a call in a form of ours cannot be a program that the model has put at such a path."""
    return bool(named_in_meta(call)) or "/" not in (call.title or "") or call.raw_input is not None


def _says_something(call: s.ToolCallFields | s.ToolCallPatch) -> bool:
    """Return whether a call can be told from others already; some are announced before that."""
    known = (call.title, call.raw_input, call.name, call.locations, call.content, named_in_meta(call))
    return any(known) or call.kind not in (None, "other")


def named_in_meta(call: s.ToolCallFields | s.ToolCallPatch) -> tuple[JsonValue, ...]:
    """Return what some agents give as the tool's name beside the title, text or not."""
    meta: Mapping[str, JsonValue] = call.meta or {}
    vendor = meta.get("claudeCode")
    places = (meta, vendor) if is_object(vendor) else (meta,)
    return tuple(place[key] for place in places for key in NAMES if key in place)


def _looks_like(call: s.ToolCallFields | s.ToolCallPatch, server: str, tool: ToolSpec) -> bool:
    raw: JsonValue = call.raw_input
    if _is_codex_input(raw, server, tool):
        return True
    if call.title == _codex_title(server, tool.name):
        return False
    if _is_bare(call, tool) and command_line(raw) is not None:
        return False
    return call.kind in (None, "other") and (raw is None or _fits(raw, tool.input_schema))


def _is_bare(call: s.ToolCallFields | s.ToolCallPatch, tool: ToolSpec) -> bool:
    return call.title == tool.name and not named_in_meta(call)


def _is_about(raw: JsonValue, server: str, tool: ToolSpec) -> bool:
    """Return whether what is shown of a known call names our server, and is no command."""
    return _is_codex_input(raw, server, tool) or (
        is_object(raw) and raw.get("server_name") == server and command_line(raw) is None
    )


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


@lru_cache(FORMS_KEPT)  # asked for with each update of a call
def own_names(server: str, tool: str) -> tuple[str, ...]:
    """Return the names that agents make of a tool of ours and its server: one word each."""
    return tuple(name for name in _joined(server, tool) if " " not in name)


@lru_cache(FORMS_KEPT)
def own_renderings(server: str, tool: str) -> tuple[str, ...]:
    """Return the titles under which agents show a tool of ours: whole, and nothing around them.

    No agent's name stands behind any of them: an agent may join the server's name and the tool's as it likes.
    The name of the tool for the result counts alone too, for agents that do not show the server: nothing else
    is called that, and all that it can do is to return a result.
    """
    alone = (tool,) if tool == RESULT_TOOL else ()
    return (*_joined(server, tool), f"{tool} ({server} MCP Server)", f"{tool} ({server})", *alone)


def _joined(server: str, tool: str) -> tuple[str, ...]:
    return tuple(f"{prefix}{server}{joint}{tool}" for prefix in _PREFIXES for joint in _JOINTS)


def _codex_title(server: str, tool: str) -> str:
    return f"mcp.{server}.{tool}"
