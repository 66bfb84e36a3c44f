"""What an agent may do when it asks: nothing but call our own tools, unless the program says otherwise."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

from thinkwell.events import JsonValue, ToolKind

if TYPE_CHECKING:
    from thinkwell_acp import schema as s

PermissionPolicy: TypeAlias = Literal["deny", "ask", "allow"]
"""``deny``: refuse everything but our own tools. ``ask``: let `on_question` decide. ``allow``: allow everything."""

Verdict: TypeAlias = Literal["allow", "allow_always", "deny", "deny_always"]
"""What a handler may answer."""


class PermissionQuestion(Struct, frozen=True, kw_only=True):
    """An agent asks whether it may do something. Everything in it comes from the agent and is not to be trusted."""

    id: str
    title: str
    kind: ToolKind
    input: JsonValue
    tool_id: str
    options: tuple[str, ...]
    """The kinds of the offered options."""


QuestionHandler: TypeAlias = Callable[[PermissionQuestion], Awaitable[Verdict | None]]
"""Decides about a question; ``None`` leaves it to the default, which is to deny."""

_WANTED: dict[Verdict, Sequence[str]] = {
    "allow": ("allow_once", "allow_always"),
    "allow_always": ("allow_always", "allow_once"),
    "deny": ("reject_once", "reject_always"),
    "deny_always": ("reject_always", "reject_once"),
}


def choose(options: Sequence[s.PermissionOption], verdict: Verdict) -> s.PermissionOption | None:
    """Return the offered option for a verdict: by kind, never by position. ``None``: there is none of that sense."""
    for kind in _WANTED[verdict]:
        for option in options:
            if option.kind == kind:
                return option
    return None


def is_own_tool(call: s.ToolCallUpdate, server: str, tools: Sequence[str], known_calls: frozenset[str] | set[str]) -> bool:
    """Return whether a permission request is for a tool of ours.

    The server's name cannot be guessed, but the model knows it and may put it into a shell command. So only exact forms
    count: a call already known as ours, structured input or `_meta` that name server and tool, or a title that is one of
    the renderings that agents use for MCP tools. See `own_renderings`.
    """
    if call.tool_call_id in known_calls:
        return True
    raw = call.raw_input
    if isinstance(raw, dict):
        if raw.get("server") == server and raw.get("tool") in tools:
            return True
        if "command" in raw:
            return False
    renderings = own_renderings(server, tools)
    vendor = (call.meta or {}).get("claudeCode")
    if isinstance(vendor, dict) and "toolName" in vendor:
        return vendor["toolName"] in renderings
    return call.title in renderings


def own_renderings(server: str, tools: Sequence[str]) -> frozenset[str]:
    """Return the titles under which agents show our tools, as seen with claude-agent-acp, gemini-cli, opencode and codex."""
    return frozenset(
        form
        for tool in tools
        for form in (f"mcp__{server}__{tool}", f"{tool} ({server} MCP Server)", f"{server}_{tool}", f"mcp.{server}.{tool}")
    )
